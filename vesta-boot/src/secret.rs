//! Passwords stay out of logs, errors and `Debug`.

use std::fmt;

/// The URL of a store. `Debug` and `Display` hide its password.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// Takes a URL as it was typed.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The URL with its password, for the one who connects.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for StoreUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&vesta_store::redact(&self.0))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", vesta_store::redact(&self.0))
    }
}

/// Whether a text may be the URL of a store, wherever it was typed. One without `//` is one, too.
pub(crate) fn may_be_url(text: &str) -> bool {
    text.contains("://") || text.contains('@')
}

/// Hides the passwords of every URL inside a text: what was typed into the wrong setting ends up in
/// error messages too.
pub(crate) fn hide(text: &str) -> String {
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
    fn no_form_of_showing_a_url_shows_its_password() {
        let url = StoreUrl::new("mysql://vesta:s3cret@db:3306/ids");
        let shown = format!("{url} {url:?} {}", hide(&format!("x: \"{}\", y", url.expose())));
        assert!(!shown.contains("s3cret"), "{shown}");
        assert_eq!(shown.matches("db:3306/ids").count(), 3, "{shown}");
        assert!(url.expose().contains("s3cret"));
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
