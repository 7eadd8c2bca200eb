//! Escapes foreign text so that it displays as it is stored.

/// Returns whether a character is a control character or changes the direction of the text around it (the
/// bidirectional controls of Unicode, UAX 9). Such a character makes a text look different from what it is.
#[must_use]
pub const fn is_control(character: char) -> bool {
    matches!(
        character,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Escapes foreign text for people and logs: each [control](is_control) becomes `\u202e` or alike. JSON,
/// whose line ends are escaped already, keeps its value.
///
/// ```
/// assert_eq!(vesta_intf::plain("db\u{202e}1-"), r"db\u202e1-");
/// ```
#[must_use]
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for part in text.split_inclusive(is_control) {
        let shown = part.trim_end_matches(is_control);
        plain += shown;
        plain.extend(
            part[shown.len()..]
                .chars()
                .map(|it| format!("\\u{:04x}", u32::from(it))),
        );
    }
    plain
}

/// Like [`plain`], for a text of several lines.
#[must_use]
pub fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_controls_and_nothing_else_are_escaped() {
        let bidirectional = [
            0x61c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068,
            0x2069,
        ];
        for character in (0..=0x10_ffff).filter_map(char::from_u32) {
            let expected = character.is_control() || bidirectional.contains(&u32::from(character));
            assert_eq!(is_control(character), expected, "{character:?}");
        }
        assert_eq!(plain("web-1 中 אב"), "web-1 中 אב");
        assert_eq!(plain("a\n\u{1b}[2J\u{9b}"), r"a\u000a\u001b[2J\u009b");
        assert_eq!(plain_lines("a\u{2066}\nb\n"), "a\\u2066\nb\n");
    }
}
