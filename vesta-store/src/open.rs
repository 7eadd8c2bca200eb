//! From a URL to a store.

use std::sync::Arc;

use vesta_service::{LeaseStore, SegmentStore, StoreError, WorkerNodeStore};

use crate::{Options, etcd, mysql, postgres, redis, sqlite, zookeeper};

type Open<T> = fn(&str, &Options) -> Result<Arc<T>, OpenError>;

/// A backend, as this build has it.
struct Backend {
    /// Its name, which is also its cargo feature.
    name: &'static str,
    schemes: &'static [&'static str],
    built_in: bool,
    open: Open<dyn LeaseStore>,
    /// `None` if it is no SQL database.
    open_worker_nodes: Option<Open<dyn WorkerNodeStore>>,
    /// `None` if it keeps no segment tags.
    open_segments: Option<Open<dyn SegmentStore>>,
}

macro_rules! backend {
    ($name:ident, $schemes:expr, $worker_nodes:expr, $segments:expr) => {
        Backend {
            name: stringify!($name),
            schemes: &$schemes,
            built_in: $name::BUILT_IN,
            open: $name::open,
            open_worker_nodes: $worker_nodes,
            open_segments: $segments,
        }
    };
}

const BACKENDS: [Backend; 6] = [
    backend!(sqlite, ["sqlite"], Some(sqlite::open_worker_nodes), Some(sqlite::open_segments)),
    backend!(
        mysql,
        ["mysql", "mariadb"],
        Some(mysql::open_worker_nodes),
        Some(mysql::open_segments)
    ),
    backend!(
        postgres,
        ["postgres", "postgresql"],
        Some(postgres::open_worker_nodes),
        Some(postgres::open_segments)
    ),
    backend!(redis, ["redis", "rediss"], None, Some(redis::open_segments)),
    backend!(zookeeper, ["zookeeper"], None, None),
    backend!(etcd, ["etcd", "etcds"], None, None),
];

/// Why a URL opened no store. No message shows a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text has no scheme.
    #[error(
        "`{typed}` is not the URL of a store; write for example sqlite:vesta-data/vesta.db or \
         mysql://user:password@host/database"
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
    /// Rows of worker nodes need an SQL database.
    #[error(
        "the {backend} backend has no worker-node table; the strategy `disposable` needs sqlite, \
         mysql or postgres"
    )]
    NoWorkerNodes {
        /// The backend.
        backend: &'static str,
    },
    /// Segment tags need a database that has them.
    #[error(
        "the {backend} backend keeps no segment tags; segment mode needs sqlite, mysql, postgres or \
         redis"
    )]
    NoSegments {
        /// The backend.
        backend: &'static str,
    },
    /// The part after the scheme makes no sense.
    #[error("{reason}; write {example}")]
    Malformed {
        /// What is wrong with it, without secrets.
        reason: String,
        /// How such a URL looks.
        example: &'static str,
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
    BACKENDS.map(|backend| backend.name).join(", ")
}

fn built_in() -> String {
    let names: Vec<_> = BACKENDS.iter().filter(|b| b.built_in).map(|b| b.name).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

fn find(scheme: &str) -> Option<&'static Backend> {
    let is = |known: &&str| known.eq_ignore_ascii_case(scheme);
    BACKENDS.iter().find(|backend| backend.schemes.iter().any(is))
}

/// The backend that a scheme belongs to.
pub(crate) fn backend_of(scheme: &str) -> Option<&'static str> {
    find(scheme).map(|backend| backend.name)
}

fn backend_for(url: &str) -> Result<&'static Backend, OpenError> {
    let Some((scheme, _)) = url.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
        return Err(OpenError::NotAUrl { typed: crate::redact(url) });
    };
    match find(scheme) {
        Some(backend) if backend.built_in => Ok(backend),
        Some(backend) => Err(OpenError::FeatureOff { feature: backend.name }),
        None => Err(OpenError::UnknownScheme { scheme: scheme.into() }),
    }
}

/// Opens the store that a URL names, with the default [`Options`].
///
/// | store | URL |
/// |---|---|
/// | SQLite | `sqlite:PATH`, relative or absolute (`sqlite:///PATH` is absolute) |
/// | MySQL, MariaDB | `mysql://user:password@host:3306/database` |
/// | PostgreSQL | `postgres://user:password@host:5432/database` |
/// | Redis | `redis://:password@host:6379/0`, `rediss://…` with TLS |
/// | ZooKeeper | `zookeeper://host:2181,host:2181/path` |
/// | etcd | `etcd://host:2379,host:2379`, `etcds://…` with TLS |
///
/// # Errors
/// [`OpenError`]; every case says what to do. A store that only does not answer at the moment is no
/// error here: the claim of a machine ID asks it again.
pub fn open(url: &str) -> Result<Arc<dyn LeaseStore>, OpenError> {
    open_with(url, &Options::default())
}

/// Opens the store that a URL names.
///
/// # Errors
/// As [`open`].
pub fn open_with(url: &str, options: &Options) -> Result<Arc<dyn LeaseStore>, OpenError> {
    (backend_for(url)?.open)(url, options)
}

/// Opens the table of worker nodes in the SQL database that a URL names, for machine IDs that are
/// used once.
///
/// # Errors
/// As [`open`], and [`OpenError::NoWorkerNodes`].
pub fn open_worker_nodes(
    url: &str,
    options: &Options,
) -> Result<Arc<dyn WorkerNodeStore>, OpenError> {
    let backend = backend_for(url)?;
    match backend.open_worker_nodes {
        Some(open) => open(url, options),
        None => Err(OpenError::NoWorkerNodes { backend: backend.name }),
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Opens the segment tags in the database that a URL names: an SQL database, or a Redis that forgets
/// nothing.
///
/// # Errors
/// As [`open`], and [`OpenError::NoSegments`].
pub fn open_segments(url: &str, options: &Options) -> Result<Arc<dyn SegmentStore>, OpenError> {
    let backend = backend_for(url)?;
    match backend.open_segments {
        Some(open) => open(url, options),
        None => Err(OpenError::NoSegments { backend: backend.name }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        open(url).expect_err(url).to_string()
    }

    #[test]
    fn a_backend_that_was_left_out_names_its_feature() {
        for Backend { name, .. } in BACKENDS.iter().filter(|backend| !backend.built_in) {
            let said = refusal(&format!("{name}://user:hunter2@db:1/x?password=hunter3"));
            let start =
                format!("this build of Vesta was made without its {name} backend; build it");
            assert!(said.starts_with(&start), "{said}");
            assert!(said.contains(&format!("--features {name}`")), "{said}");
            assert!(!said.contains("hunter"), "{said}");
        }
    }

    #[test]
    fn schemes_are_found_in_any_case() {
        assert_eq!(backend_of("PostgreSQL"), Some("postgres"));
        assert_eq!(backend_of("rediss"), Some("redis"));
    }

    #[test]
    fn what_is_no_sql_database_has_no_worker_nodes() {
        let error = open_worker_nodes("redis://h", &Options::default()).expect_err("refused");
        assert!(matches!(error, OpenError::NoWorkerNodes { .. } | OpenError::FeatureOff { .. }));
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
            assert!(
                said.contains("is not the URL of a store; write for example sqlite:"),
                "{said}"
            );
        }
        assert!(!refusal("//root:hunter2@db").contains("hunter2"));
    }
}
