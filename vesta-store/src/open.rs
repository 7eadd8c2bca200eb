//! Opens stores by their URLs.

use std::sync::Arc;

use vesta_numbers::segment::{KvSegments, SegmentStore};
use vesta_service::lease::KvStore;
use vesta_service::options::WorkerNodeStore;

#[cfg(any(feature = "remote", feature = "sqlite"))]
use crate::backends;
use crate::error::OpenError;
use crate::options::Purpose;
use crate::tinyid::TinyidStore;
use crate::{Kind, Options, SegmentTable, StoreUrl};

/// Opens the store that a URL names, with the default [`Options`].
///
/// ```no_run
/// let store = vesta_store::open(&"sqlite:vesta-data/vesta.db".parse()?)?;
/// # Ok::<(), vesta_store::OpenError>(())
/// ```
///
/// | store | URL |
/// |---|---|
/// | SQLite | `sqlite:PATH`, relative or absolute (`sqlite:///PATH` is absolute) |
/// | MySQL, MariaDB | `mysql://user:password@host:3306/database` |
/// | PostgreSQL | `postgres://user:password@host:5432/database` |
/// | Redis | `redis://:password@host:6379/0`, `rediss://…` with TLS |
/// | ZooKeeper | `zookeeper://host:2181,host:2181/path` |
/// | etcd | `etcd://host:2379,host:2379`, `etcds://…` with TLS |
/// | pool server | `vesta://host:50051,host:50051`, `vestas://…` with TLS: the store of another server |
///
/// # Errors
/// [`OpenError`]; every case states the remedy. An unreachable store is not an error here: the
/// claim of a machine ID connects again.
pub fn open(url: &StoreUrl) -> Result<Arc<dyn KvStore>, OpenError> {
    open_with(url, &Options::default())
}

/// Opens the store that a URL names.
///
/// # Errors
/// As [`open`].
pub fn open_with(url: &StoreUrl, options: &Options) -> Result<Arc<dyn KvStore>, OpenError> {
    open_kv(url, options, Purpose::Leases)
}

#[allow(
    unreachable_code,
    unreachable_patterns,
    reason = "no or every backend may be built in"
)]
fn open_kv(
    url: &StoreUrl,
    options: &Options,
    purpose: Purpose,
) -> Result<Arc<dyn KvStore>, OpenError> {
    let _ = (options, purpose); // for builds without any backend
    Ok(match url.kind() {
        #[cfg(feature = "sqlite")]
        Kind::Sqlite => Arc::new(backends::sqlite::Database::open(url, options)?),
        #[cfg(feature = "redis")]
        Kind::Redis => Arc::new(backends::redis::Store::open(url, options, purpose)?),
        #[cfg(feature = "zookeeper")]
        Kind::Zookeeper => Arc::new(backends::zookeeper::Store::open(url, options, purpose)?),
        #[cfg(feature = "etcd")]
        Kind::Etcd => Arc::new(backends::etcd::Store::open(url, options, purpose)?),
        #[cfg(feature = "mysql")]
        Kind::Mysql => Arc::new(backends::mysql::Store::open(url, options, purpose)?),
        #[cfg(feature = "postgres")]
        Kind::Postgres => Arc::new(backends::postgres::Store::open(url, options, purpose)?),
        #[cfg(feature = "pool-server")]
        Kind::PoolServer => Arc::new(backends::pool_server::Store::open(url, options, purpose)?),
        off => {
            return Err(OpenError::FeatureOff {
                feature: off.name(),
            });
        }
    })
}

/// Opens the table of worker nodes in an SQL database, for machine IDs that are used only once.
///
/// # Errors
/// As [`open`], and [`OpenError::Unsupported`].
#[allow(unreachable_code, reason = "no backend may be built in")]
pub fn open_worker_nodes(
    url: &StoreUrl,
    options: &Options,
) -> Result<Arc<dyn WorkerNodeStore>, OpenError> {
    let purpose = Purpose::WorkerNodes;
    let _ = (options, purpose); // for builds without any backend
    Ok(match url.kind() {
        #[cfg(feature = "sqlite")]
        Kind::Sqlite => Arc::new(backends::sqlite::Database::open(url, options)?),
        #[cfg(feature = "mysql")]
        Kind::Mysql => Arc::new(backends::mysql::Store::open(url, options, purpose)?),
        #[cfg(feature = "postgres")]
        Kind::Postgres => Arc::new(backends::postgres::Store::open(url, options, purpose)?),
        other => {
            return Err(OpenError::no_table(
                other,
                "table of worker nodes; it needs sqlite, mysql or postgres",
            ));
        }
    })
}

/// Opens the segment tags in the store that a URL names, in the location set by the
/// [options](Options::segment_table). A Redis that may forget acknowledged writes refuses every
/// request.
///
/// # Errors
/// As [`open`], and [`OpenError::Unsupported`].
pub fn open_segments(
    url: &StoreUrl,
    options: &Options,
) -> Result<Arc<dyn SegmentStore>, OpenError> {
    let usual = if url.kind().is_sql() {
        SegmentTable::Leaf
    } else {
        SegmentTable::Kv
    };
    Ok(match options.segment_table.unwrap_or(usual) {
        SegmentTable::Kv => Arc::new(KvSegments::new(open_kv(url, options, Purpose::Segments)?)),
        table => segment_table(url, options, table)?,
    })
}

/// Opens Tinyid's tables in the database that a URL names.
///
/// # Errors
/// As [`open`], and [`OpenError::Unsupported`].
pub fn open_tinyid(url: &StoreUrl, options: &Options) -> Result<Arc<dyn TinyidStore>, OpenError> {
    segment_table(url, options, SegmentTable::Tinyid)
}

/// A table of segment tags in an SQL database.
fn segment_table(
    url: &StoreUrl,
    options: &Options,
    table: SegmentTable,
) -> Result<Arc<dyn TinyidStore>, OpenError> {
    let _ = options; // for builds without such a backend
    let opened: Option<Arc<dyn TinyidStore>> = match url.kind() {
        #[cfg(feature = "mysql")]
        Kind::Mysql => {
            backends::mysql::Segments::open(url, options, table)?.map(|it| Arc::new(it) as _)
        }
        #[cfg(feature = "postgres")]
        Kind::Postgres => {
            backends::postgres::Segments::open(url, options, table)?.map(|it| Arc::new(it) as _)
        }
        _ => None,
    };
    opened.ok_or_else(|| {
        OpenError::no_table(url.kind(), match table {
            SegmentTable::Tinyid => "table tiny_id_info; segment.table = tinyid needs mysql",
            SegmentTable::Cosid => "table cosid; segment.table = cosid needs mysql",
            SegmentTable::Leaf | SegmentTable::LeafLike { .. } | SegmentTable::Kv => {
                "table leaf_alloc; segment.table = leaf needs mysql or postgres, segment.table = kv \
                 any store"
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        url.parse()
            .and_then(|url| open(&url))
            .expect_err(url)
            .to_string()
    }

    #[test]
    fn a_disabled_backend_names_its_feature() {
        for kind in Kind::ALL.into_iter().filter(|kind| !kind.facts().built_in) {
            let (name, scheme) = (kind.name(), kind.facts().schemes[0]);
            let said = refusal(&format!("{scheme}://user:hunter2@db:1/x"));
            let start =
                format!("this build of Vesta does not include the {name} backend; rebuild it");
            assert!(said.starts_with(&start), "{said}");
            assert!(said.contains(&format!("--features {name}`")), "{said}");
            assert!(!said.contains("hunter"), "{said}");
        }
    }

    #[test]
    fn schemes_are_case_insensitive() {
        assert_eq!(Kind::of_scheme("PostgreSQL"), Some(Kind::Postgres));
        assert_eq!(Kind::of_scheme("rediss"), Some(Kind::Redis));
    }

    #[test]
    fn stores_without_sql_have_no_worker_nodes() {
        let error = open_worker_nodes(&"redis://h".parse().unwrap(), &Options::default())
            .expect_err("refused");
        assert!(matches!(
            error,
            OpenError::Unsupported { .. } | OpenError::FeatureOff { .. }
        ));
    }

    #[test]
    fn stores_unknown_to_leaf_have_no_leaf_table() {
        let options = Options {
            segment_table: Some(SegmentTable::Leaf),
            ..Options::default()
        };
        for url in ["sqlite:x.db", "redis://h", "zookeeper://h", "etcd://h"] {
            let error = open_segments(&url.parse().unwrap(), &options).expect_err("refused");
            match error {
                OpenError::FeatureOff { .. } => {}
                error => assert!(error.to_string().contains("segment.table = kv"), "{error}"),
            }
        }
    }

    #[test]
    fn an_unknown_scheme_lists_the_known_ones() {
        let said = refusal("mongodb://root:hunter2@db/x");
        assert_eq!(
            said,
            "unknown scheme `mongodb`; expected one of sqlite, mysql, postgres, redis, \
             zookeeper, etcd, vesta"
        );
    }

    #[test]
    fn text_that_is_not_a_url_gets_an_example() {
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
