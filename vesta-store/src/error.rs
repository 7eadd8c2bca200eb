//! Errors of opening a store by its URL.

use vesta_service::lease::StoreError;

use crate::kind::Kind;

/// Why a URL could not be opened. No message shows a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text has no scheme.
    #[error(
        "`{typed}` is not the URL of a store; write for example sqlite:vesta-data/vesta.db or \
         mysql://user:password@host/database"
    )]
    NotAUrl {
        /// The text, with passwords hidden.
        typed: String,
    },
    /// The scheme is unknown.
    #[error("unknown scheme `{scheme}`; expected one of {}", known())]
    UnknownScheme {
        /// The scheme.
        scheme: String,
    },
    /// The backend is not part of this build.
    #[error(
        "this build of Vesta does not include the {feature} backend; rebuild it with `--features \
         {feature}`. Built in: {}",
        built_in()
    )]
    FeatureOff {
        /// The cargo feature to enable.
        feature: &'static str,
    },
    /// The store does not have the requested table.
    #[error("the {backend} backend has no {what}")]
    Unsupported {
        /// The backend.
        backend: &'static str,
        /// The table, and the remedy.
        what: &'static str,
    },
    /// The part after the scheme is invalid.
    #[error("{reason}; write {example}")]
    Malformed {
        /// The fault, without secrets.
        reason: String,
        /// A URL of this kind.
        example: &'static str,
    },
    /// The store is reachable but cannot be used.
    #[error("{store}: {source}")]
    Store {
        /// Display name of the store.
        store: String,
        /// The fault and the remedy.
        source: StoreError,
    },
}

impl OpenError {
    /// The error for a table that this kind does not have, or not in this build.
    pub(crate) const fn no_table(kind: Kind, what: &'static str) -> Self {
        if kind.facts().built_in {
            Self::Unsupported {
                backend: kind.name(),
                what,
            }
        } else {
            Self::FeatureOff {
                feature: kind.name(),
            }
        }
    }
}

fn known() -> String {
    Kind::ALL.map(|kind| kind.facts().schemes[0]).join(", ")
}

fn built_in() -> String {
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.facts().built_in);
    let names: Vec<_> = kinds.map(Kind::name).collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}
