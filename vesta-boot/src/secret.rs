//! Passwords in texts, which stay out of logs and errors.

use vesta_intf::plain_lines;

/// True if a text may be the URL of a store, wherever it was typed. One without `//` is one, too.
pub(crate) fn may_be_url(text: &str) -> bool {
    text.contains("://") || text.contains('@')
}

/// The text without the passwords of the URLs inside it, and without controls: what was typed into the
/// wrong setting ends up in error messages too, and so does what others wrote into a store.
pub(crate) fn hide(text: &str) -> String {
    let text = &plain_lines(text);
    let is_edge = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
    text.split_inclusive(is_edge)
        .map(|piece| {
            let word = piece.trim_end_matches(is_edge);
            let edge = &piece[word.len()..];
            if word.contains("://") { vesta_store::redact(word) + edge } else { piece.to_owned() }
        })
        .collect()
}

/// As [`hide`], for a text that quotes arguments of the command line: a URL among them may contain
/// what looks like its end.
pub(crate) fn hide_typed(text: &str, typed: impl Iterator<Item = String>) -> String {
    let values = typed.map(|arg| match arg.split_once('=') {
        Some((flag, value)) if flag.starts_with("--") => value.to_owned(),
        _ => arg,
    });
    let urls = values.filter(|value| may_be_url(value));
    hide(&urls.fold(text.to_owned(), |text, url| text.replace(&url, &vesta_store::redact(&url))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_inside_a_text_shows_without_its_password() {
        let said = hide("x: \"mysql://vesta:s3cret@db:3306/ids\", y");
        assert_eq!(said, "x: \"mysql://vesta:***@db:3306/ids\", y");
    }

    #[test]
    fn an_argument_that_is_quoted_is_hidden_as_a_whole() {
        let url = "mysql://u:it's a `s3cret`@h/d";
        let quoted = format!("error: unexpected argument '{url}' found");
        for typed in [url.to_owned(), format!("--machine-id={url}")] {
            let said = hide_typed(&quoted, ["--x".to_owned(), typed].into_iter());
            assert_eq!(said, "error: unexpected argument 'mysql://u:***@h/d' found");
        }
    }

    #[test]
    fn other_text_stays_as_it_is() {
        for text in ["", "line 2: `a b`, 10.0.0.1=1", " two  spaces\n"] {
            assert_eq!(hide(text), text);
        }
    }
}
