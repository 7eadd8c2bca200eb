//! Segment mode: off, or a database with tags.

use super::Serials;
use super::parse::{number, store_url, truth};
use crate::error::Error;
use vesta_store::{SegmentTable, StoreUrl};

/// Refusal while segment mode is off.
pub const SEGMENTS_OFF: &str = "segment mode is off; set segment.store (--segment-store)";

/// Maximum numbers per fetch.
const LARGEST_STEP: u64 = 1_000_000;

section! {
    /// Segment mode: the database of tags, and the size of fetches.
    #[non_exhaustive]
    "Segments" pub struct Segments |values, _layout| {
        /// Database of segment tags; turns segment mode on
        ///
        /// Same URLs as `machine.store`. A Redis store must keep every acknowledged write.
        ///
        /// Example: mysql://user:password@host:3306/database
        pub store: Option<StoreUrl> = "segment.store" "URL" for commands, store_url;

        /// Table of segment tags: leaf, tinyid, cosid or kv
        ///
        /// `leaf`: Leaf's own `leaf_alloc`, in MySQL, MariaDB and PostgreSQL, where it is the default; `leaf:TABLE` is
        /// another table with the same columns, `leaf:TABLE:COLUMN` one with another name for `update_time`. `tinyid`,
        /// `cosid`: `tiny_id_info` of Tinyid and `cosid` of CosId, in MySQL and MariaDB. `kv`: Vesta's own entries, in
        /// any store; the default in the other stores.
        ///
        /// Example: kv
        pub table: Option<SegmentTable> = "segment.table" "NAME" for commands, str::parse::<SegmentTable>;

        /// Maximum numbers of a tag per fetch
        ///
        /// 1 to 1000000; also applies to serials. A larger step in the table is kept.
        pub max_step: u64 = "segment.max_step" "N" or "1000000", number(1..=LARGEST_STEP);

        /// Refuse a database that may forget segment numbers
        ///
        /// Also refuses serials. A database with asynchronous replicas may hand out numbers again after a fail-over.
        /// Without this setting, only the start-up summary, the log and the metric `vesta_segments_doubt` warn
        /// about it.
        pub require_durable: bool = "segment.require_durable" "BOOL" or "false", truth();
    }
}

impl Segments {
    /// Refuses settings of segment mode while it is off; two of them also apply to serials.
    pub(super) fn check(&self, serials: &Serials) -> Result<(), Error> {
        let alone = serials.store.is_none();
        let idle = [
            ("segment.table", self.table.is_some()),
            ("segment.require_durable", self.require_durable && alone),
            ("segment.max_step", self.max_step != LARGEST_STEP && alone),
        ];
        match idle
            .into_iter()
            .find(|(_, set)| *set && self.store.is_none())
        {
            Some((name, _)) => Error::refuse(format!(
                "{name} is for segment mode, which is off; set segment.store too"
            )),
            None => Ok(()),
        }
    }
}
