//! Options for opening a store.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use vesta_service::lease::{StoreError, Timing};

/// Options for opening a store, in addition to those of its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// True if missing tables, keys and znodes are created. Otherwise a missing one is an error
    /// that says how to create it.
    pub auto_init: bool,
    /// Timeout of one request; `None` for the store's default, from
    /// [`KvStore::timing`](vesta_service::lease::KvStore::timing).
    pub request_timeout: Option<Duration>,
    /// Location of segment tags; `None` for the store's default: Leaf's table where the store supports
    /// it.
    pub segment_table: Option<SegmentTable>,
    /// State directory of this host, in which a pool server's identity is kept; `None` to compare identities only
    /// within this process.
    pub state_dir: Option<PathBuf>,
    /// True if a database file on a network file system is accepted with a warning.
    pub network_fs: bool,
    /// Operator's statement that only one of two databases replicating from each other is ever written
    /// at a time. A store that replicates from another is then doubted instead of refused.
    pub one_writer: bool,
}

/// Location of segment tags in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentTable {
    /// Leaf's table `leaf_alloc`, in MySQL, MariaDB and PostgreSQL.
    Leaf,
    /// Another table with the same columns, in the same databases.
    LeafLike {
        /// Its name.
        table: &'static str,
        /// The column with the time of the last change.
        changed: &'static str,
    },
    /// Tinyid's table `tiny_id_info`, in MySQL and MariaDB.
    Tinyid,
    /// CosId's table `cosid`, in MySQL and MariaDB.
    Cosid,
    /// Entries beside those of machine IDs, in any store that keeps acknowledged writes.
    Kv,
}

impl FromStr for SegmentTable {
    type Err = &'static str;

    /// `leaf`, `leaf:TABLE` (with the column `update_time`), `leaf:TABLE:COLUMN`, `tinyid`, `cosid` or `kv`.
    /// Names are leaked, because statement texts have a static lifetime.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_name = |name: &&str| {
            name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit())
        };
        Ok(match text.split(':').collect::<Vec<_>>()[..] {
            ["leaf"] => Self::Leaf,
            ["leaf", ref names @ ..] if names.len() < 3 && names.iter().all(is_name) => {
                let changed = *names.get(1).unwrap_or(&"update_time");
                let [table, changed] = [names[0], changed].map(|name| &*name.to_owned().leak());
                Self::LeafLike { table, changed }
            }
            ["tinyid"] => Self::Tinyid,
            ["cosid"] => Self::Cosid,
            ["kv"] => Self::Kv,
            _ => return Err(TABLES),
        })
    }
}

const TABLES: &str = "must be leaf, leaf:TABLE, leaf:TABLE:COLUMN (names of ASCII letters, digits and _), \
    tinyid, cosid or kv";

/// Purpose for which a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "some builds have no backend")]
pub(crate) enum Purpose {
    /// Machine IDs: their claims keep a distance from changes that the store may forget.
    Leases,
    /// Segment tags: forgotten ranges would be handed out again, so a store is refused if its
    /// configuration allows losses.
    Segments,
    /// A legacy system's table of segment tags.
    SegmentTable(SegmentTable),
    /// uid-generator's table of worker nodes.
    WorkerNodes,
    /// Data of a legacy system, read only, so its crash behavior does not matter.
    Import,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            auto_init: true,
            request_timeout: None,
            segment_table: None,
            state_dir: None,
            network_fs: false,
            one_writer: false,
        }
    }
}

#[allow(dead_code, reason = "some builds have no backend")]
impl Options {
    /// Timeout of one request to a store with this timing.
    pub(crate) fn limit(&self, timing: Timing) -> Duration {
        self.request_timeout.unwrap_or(timing.request_timeout)
    }

    /// Refuses the first entry of a namespace unless it may be created.
    ///
    /// # Errors
    /// A permanent [`StoreError`] that says how to create it.
    pub(crate) fn check_put(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
    ) -> Result<(), StoreError> {
        match area.strip_prefix("lease/") {
            Some(namespace) if !self.auto_init && key == "namespace" && old.is_none() => {
                Err(not_prepared(&format!("namespace `{namespace}`")))
            }
            _ => Ok(()),
        }
    }
}

/// The error for something that does not exist and may not be created.
#[allow(dead_code, reason = "some builds have no backend")]
pub(crate) fn not_prepared(what: &str) -> StoreError {
    StoreError::permanent(format!(
        "{what} does not exist, and auto_init is off; create it with `vesta store init`. If it \
         existed before, restore it instead: an empty one can repeat IDs"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_like_leafs_is_named_with_its_time_column() {
        let like = |table, changed| Ok(SegmentTable::LeafLike { table, changed });
        assert_eq!("leaf".parse(), Ok(SegmentTable::Leaf));
        assert_eq!(
            "leaf:t_leaf_alloc".parse(),
            like("t_leaf_alloc", "update_time")
        );
        assert_eq!(
            "leaf:t_leaf_alloc:updated_at".parse(),
            like("t_leaf_alloc", "updated_at")
        );
        let others = ["", "Leaf", "leaf:a:b:c", "kv:a", "leaf_alloc"];
        let names = [
            "leaf:",
            "leaf:a b",
            "leaf:a;--",
            "leaf:1a",
            "leaf:a:",
            "leaf:a:b'",
            "leaf:d.t",
        ];
        for text in others.into_iter().chain(names) {
            assert_eq!(text.parse::<SegmentTable>(), Err(TABLES), "{text}");
        }
    }
}
