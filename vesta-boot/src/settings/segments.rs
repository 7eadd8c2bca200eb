//! Segment mode: off, or a database with tags.

use super::Serials;
use super::parse::{number, store_url, truth};
use crate::start::error::Error;
use vesta_store::{SegmentTable, StoreUrl};

/// The most numbers that may be fetched at a time.
const LARGEST_STEP: u64 = 1_000_000;

section! {
    /// Segment mode: the database of tags, and how many numbers are fetched.
    #[non_exhaustive]
    "Segments" pub struct Segments |values, _layout| {
        /// Database of segment tags; turns segment mode on
        ///
        /// As for `machine.store`. A Redis has to be one that forgets nothing that it acknowledged.
        ///
        /// Example: mysql://user:password@host:3306/database
        pub store: Option<StoreUrl> = "segment.store" "URL" for commands, store_url;

        /// Table of segment tags: leaf, tinyid, cosid or kv
        ///
        /// `leaf`: Leaf's own `leaf_alloc`, in MySQL, MariaDB and PostgreSQL, where it is the default; `leaf:TABLE` is
        /// another table with its columns, `leaf:TABLE:COLUMN` one with another name for `update_time`. `tinyid`,
        /// `cosid`: `tiny_id_info` of Tinyid and `cosid` of CosId, in MySQL and MariaDB. `kv`: entries of Vesta's
        /// own, in any store; the default in the others.
        ///
        /// Example: kv
        pub table: Option<SegmentTable> = "segment.table" "NAME" for commands, str::parse::<SegmentTable>;

        /// Most numbers of a tag that are fetched at a time
        ///
        /// 1 to 1000000, of serials too. A larger step in the table stays.
        pub max_step: u64 = "segment.max_step" "N" or "1000000", number(1..=LARGEST_STEP);

        /// Refuse a database that may forget segment numbers
        ///
        /// Or serials. A database with asynchronous replicas may hand out numbers again after a fail-over. Without this
        /// setting the start, the log and the metric `vesta_segments_may_forget` only warn of it.
        pub require_durable: bool = "segment.require_durable" "BOOL" or "false", truth();
    }
}

impl Segments {
    /// Refuses settings of segment mode while it is off, of which two are for serials too.
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
