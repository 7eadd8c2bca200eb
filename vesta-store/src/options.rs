//! The options that a store is opened with.

use std::time::Duration;

use vesta_service::{StoreError, Timing};

/// The options that a store is opened with, beside those of its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// True if tables, keys and znodes that are missing are created. Otherwise a missing one is an
    /// error that says how to create it.
    pub auto_init: bool,
    /// The time that one request may take; `None` for the store's own default, which is
    /// [`KvStore::timing`](vesta_service::KvStore::timing)'s.
    pub request_timeout: Option<Duration>,
    /// The place of segment tags; `None` for the store's own default: Leaf's table where the store can
    /// have it.
    pub segment_table: Option<SegmentTable>,
    /// True if a database file may be on a network file system, which is then warned about.
    pub network_fs: bool,
    /// True if of two databases that replicate from each other only one is ever written at a time, by an
    /// operator's word. One that replicates from another is then doubted; otherwise it is refused.
    pub one_writer: bool,
}

/// The place of segment tags in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentTable {
    /// Leaf's table `leaf_alloc`, in MySQL, MariaDB and PostgreSQL.
    Leaf,
    /// Tinyid's table `tiny_id_info`, in MySQL and MariaDB.
    Tinyid,
    /// CosId's table `cosid`, in MySQL and MariaDB.
    Cosid,
    /// Entries beside those of machine IDs, in any store that keeps what it acknowledged.
    Kv,
}

impl SegmentTable {
    /// Every place.
    pub const ALL: [Self; 4] = [Self::Leaf, Self::Tinyid, Self::Cosid, Self::Kv];

    /// The name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::Tinyid => "tinyid",
            Self::Cosid => "cosid",
            Self::Kv => "kv",
        }
    }
}

/// The data that a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "some builds have no backend")]
pub(crate) enum Purpose {
    /// Entries about machine IDs, whose claims keep a distance from changes that the store may forget.
    Leases,
    /// Entries about segment tags, whose ranges would be handed out again: a store is refused where its
    /// losses are part of how it is set up.
    Segments,
    /// The table of segment tags of another system.
    SegmentTable(SegmentTable),
    /// uid-generator's table of worker nodes.
    WorkerNodes,
    /// The data of another system, which is only read, whatever becomes of it in a crash.
    Import,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            auto_init: true,
            request_timeout: None,
            segment_table: None,
            network_fs: false,
            one_writer: false,
        }
    }
}

#[allow(dead_code, reason = "some builds have no backend")]
impl Options {
    /// The time that one request may take in a store with this timing.
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

/// The error for something that is missing and may not be created.
#[allow(dead_code, reason = "some builds have no backend")]
pub(crate) fn not_prepared(what: &str) -> StoreError {
    StoreError::permanent(format!(
        "{what} does not exist, and auto_init is off; have it created by `vesta-server store init`. If it \
         existed before, put it back instead: an empty one can repeat IDs"
    ))
}
