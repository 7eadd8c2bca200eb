//! From a URL to a store.

use std::path::Path;
use std::sync::Arc;

use vesta_service::{LeaseStore, StoreError};

use crate::sqlite;

/// Schemes that Vesta gives a meaning, with the backend each belongs to.
const KNOWN: &[(&str, &str)] = &[
    ("sqlite", "sqlite"),
    ("mysql", "mysql"),
    ("postgres", "postgres"),
    ("postgresql", "postgres"),
    ("redis", "redis"),
    ("rediss", "redis"),
    ("zookeeper", "zookeeper"),
    ("etcd", "etcd"),
];

/// Why a URL opened no store. No message shows a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text has no scheme.
    #[error(
        "`{typed}` is not the URL of a store; write sqlite:PATH, for example sqlite:vesta-data/vesta.db"
    )]
    NotAUrl {
        /// What was given, passwords hidden.
        typed: String,
    },
    /// Nobody knows the scheme.
    #[error("no store has the scheme `{scheme}`; known ones: {}", known())]
    UnknownScheme {
        /// The scheme.
        scheme: String,
    },
    /// The scheme is reserved for a backend that this build does not have.
    #[error("this build of Vesta has no {backend} backend; built-in ones: {}", built_in())]
    NoSuchBackend {
        /// The backend.
        backend: &'static str,
    },
    /// The backend was left out of this build.
    #[error(
        "this build of Vesta was made without its {feature} backend; build it with the feature \
         `{feature}` of vesta-store"
    )]
    FeatureOff {
        /// The cargo feature to enable.
        feature: &'static str,
    },
    /// The part after the scheme makes no sense.
    #[error("{reason}; write sqlite:PATH, for example sqlite:vesta-data/vesta.db")]
    Path {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The store is there but cannot be used.
    #[error("{store}: {source}")]
    Store {
        /// What a person would call it.
        store: String,
        /// What is wrong and what to do.
        source: StoreError,
    },
}

fn known() -> String {
    let mut backends: Vec<_> = KNOWN.iter().map(|(_, backend)| *backend).collect();
    backends.dedup();
    backends.join(", ")
}

fn built_in() -> String {
    if sqlite::BUILT_IN.is_empty() { "none".into() } else { sqlite::BUILT_IN.join(", ") }
}

/// The backend that a scheme belongs to.
pub(crate) fn backend_of(scheme: &str) -> Option<&'static str> {
    let found = KNOWN.iter().find(|(known, _)| known.eq_ignore_ascii_case(scheme));
    found.map(|(_, backend)| *backend)
}

/// Opens the store that a URL names: `sqlite:PATH` with a relative or an absolute path
/// (`sqlite:///PATH` is an absolute one). The database and its folder are created if they do not
/// exist.
///
/// # Errors
/// [`OpenError`]; every case says what to do. A store that only does not answer at the moment is no
/// error here: the claim of a machine ID asks it again.
pub fn open(url: &str) -> Result<Arc<dyn LeaseStore>, OpenError> {
    let Some((scheme, rest)) = url.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
        return Err(OpenError::NotAUrl { typed: crate::redact(url) });
    };
    match backend_of(scheme) {
        Some("sqlite") => sqlite::open(path(rest)?),
        Some(backend) => Err(OpenError::NoSuchBackend { backend }),
        None => Err(OpenError::UnknownScheme { scheme: scheme.into() }),
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn path(rest: &str) -> Result<&Path, OpenError> {
    let path = rest.strip_prefix("//").unwrap_or(rest);
    let flaw = if path.is_empty() {
        "the path of the database is missing"
    } else if path.contains(":memory:") {
        "a pool in memory would forget which machine IDs are taken"
    } else if path.contains('?') {
        "the sqlite URL takes no options, and the path no question mark"
    } else if path.contains('\0') {
        "the path of the database contains a NUL"
    } else {
        return Ok(Path::new(path));
    };
    Err(OpenError::Path { reason: flaw })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        open(url).expect_err(url).to_string()
    }

    #[test]
    fn a_reserved_scheme_says_what_this_build_has() {
        for scheme in ["mysql", "postgres", "redis", "zookeeper", "etcd"] {
            let said = refusal(&format!("{scheme}://user:hunter2@db:1/x?password=hunter3"));
            let start = format!("this build of Vesta has no {scheme} backend; built-in ones: ");
            assert!(said.starts_with(&start), "{said}");
            assert!(!said.contains("hunter"), "{said}");
        }
        assert!(refusal("PostgreSQL://h/x").contains("no postgres backend"));
    }

    #[test]
    fn an_unknown_scheme_lists_the_known_ones() {
        let said = refusal("mongodb://root:hunter2@db/x");
        assert_eq!(
            said,
            "no store has the scheme `mongodb`; known ones: sqlite, mysql, postgres, redis, \
             zookeeper, etcd"
        );
    }

    #[test]
    fn what_is_not_a_url_is_told_how_one_looks() {
        for typed in ["vesta-data/vesta.db", "", "/abs/vesta.db", "1:2", ":x"] {
            let said = refusal(typed);
            assert!(said.contains("is not the URL of a store; write sqlite:PATH"), "{said}");
        }
        assert!(!refusal("//root:hunter2@db").contains("hunter2"));
    }

    #[test]
    fn a_path_that_makes_no_sense_is_refused() {
        for url in ["sqlite:", "sqlite://", "sqlite::memory:", "sqlite:a.db?mode=ro", "sqlite:a\0b"]
        {
            assert!(matches!(open(url), Err(OpenError::Path { .. })), "{url:?}");
        }
    }

    #[test]
    fn two_slashes_after_the_scheme_are_not_part_of_the_path() {
        for (rest, expected) in [
            ("a/b.db", "a/b.db"),
            ("/a/b.db", "/a/b.db"),
            ("///a/b.db", "/a/b.db"),
            ("//a.db", "a.db"),
        ] {
            assert_eq!(path(rest).unwrap(), Path::new(expected));
        }
    }
}
