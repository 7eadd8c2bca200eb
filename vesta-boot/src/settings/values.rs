//! Raw settings: text with its origin.

use std::collections::BTreeMap;
use std::fmt;

use vesta_intf::LayoutSpec;

use super::section::Parser;
use crate::api::Api;
use crate::error::Error;
use vesta_net::Token;

/// Origin of a value that was not set.
pub(super) const DEFAULT: &str = "default";

/// Raw value of a setting. `Debug` hides passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct Value {
    /// The text.
    pub text: String,
    /// `flag --layout`, `env VESTA_LAYOUT`, `file vesta.toml line 1` or `default`.
    pub origin: String,
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({})", shown("", &self.text), self.origin)
    }
}

/// Typed text in quotes, for an error; a URL loses its password.
pub fn quoted(typed: &str) -> String {
    format!("`{}`", shown("", typed))
}

/// The text of a setting, with passwords hidden.
pub(crate) fn shown(name: &str, text: &str) -> String {
    match name {
        name if name.ends_with(".store") || may_be_url(text) => vesta_store::redact(text),
        _ => text.to_owned(),
    }
}

/// True if a text may be the URL of a store, wherever it was typed. URLs without `//` count too.
pub(super) fn may_be_url(text: &str) -> bool {
    text.contains("://") || text.contains('@')
}

/// Raw settings of a program; flags win over the environment, the environment over the file, the
/// file over defaults.
#[derive(Debug, Clone)]
pub struct Values {
    /// APIs that the program serves.
    pub apis: Vec<Api>,
    pub(super) values: BTreeMap<String, Value>,
    pub(super) custom: Option<LayoutSpec>,
    pub(super) tokens: Vec<Token>,
}

impl Values {
    /// The value of a setting, if it has one.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).map_or("", |value| value.text.as_str())
    }

    /// True if a setting has a value other than its default.
    pub fn is_explicit(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.origin != DEFAULT)
    }

    /// The value of a setting, parsed.
    pub(super) fn read<P: Parser>(&self, name: &str, by: P) -> Result<Option<P::Value>, Error> {
        let value = self.get(name);
        let parsed = value.map(|value| by.parse(&value.text)).transpose();
        parsed.map_err(|must| self.refuse(name, must))
    }

    /// A refusal that names the setting, the valid values, its value and its origin.
    pub(super) fn refuse(&self, name: &str, must: impl fmt::Display) -> Error {
        let origin = self.get(name).map_or(DEFAULT, |value| &value.origin);
        let value = shown(name, self.text(name));
        Error::setting(format!("{name} {must}, but is `{value}` ({origin})"))
    }
}
