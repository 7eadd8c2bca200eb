//! Reasons for which a URL opens no store.

use vesta_service::lease::StoreError;

use crate::Kind;

/// The reason for which a URL opened no store. No message shows a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text has no scheme.
    #[error(
        "`{typed}` is not the URL of a store; write for example sqlite:vesta-data/vesta.db or \
         mysql://user:password@host/database"
    )]
    NotAUrl {
        /// The text, passwords hidden.
        typed: String,
    },
    /// No store has the scheme.
    #[error("no store has the scheme `{scheme}`; known ones: {}", known())]
    UnknownScheme {
        /// The scheme.
        scheme: String,
    },
    /// The backend was left out of this build.
    #[error(
        "this build of Vesta was made without its {feature} backend; build it with `--features \
         {feature}`. Built in: {}",
        built_in()
    )]
    FeatureOff {
        /// The cargo feature to enable.
        feature: &'static str,
    },
    /// The store has no such table.
    #[error("the {backend} backend has no {what}")]
    Unsupported {
        /// The backend.
        backend: &'static str,
        /// The table, and what to do.
        what: &'static str,
    },
    /// The part after the scheme makes no sense.
    #[error("{reason}; write {example}")]
    Malformed {
        /// The flaw, without secrets.
        reason: String,
        /// A URL of this kind.
        example: &'static str,
    },
    /// The store is there but cannot be used.
    #[error("{store}: {source}")]
    Store {
        /// Its name, for people.
        store: String,
        /// The flaw, and what to do about it.
        source: StoreError,
    },
}

fn known() -> String {
    Kind::ALL.map(Kind::name).join(", ")
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
