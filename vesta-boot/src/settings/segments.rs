//! Segment mode: off, or a database with tags.

use clap::Args;

use super::Serials;
use super::parse::{number, store_url, truth};
use crate::start::error::Error;
use vesta_store::{SegmentTable, StoreUrl};

/// The most numbers that may be fetched at a time.
const LARGEST_STEP: u64 = 1_000_000;

/// Segment mode: the database of tags, and how many numbers are fetched.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Segments")]
#[group(skip)]
#[non_exhaustive]
pub struct Segments {
    /// Database of segment tags; turns segment mode on
    ///
    /// As for `machine.store`. A Redis has to be one that forgets nothing that it acknowledged.
    ///
    /// Example: mysql://user:password@host:3306/database
    #[arg(id = "segment.store", value_name = "URL", value_parser = store_url, global = true)]
    pub store: Option<StoreUrl>,

    /// Table of segment tags: leaf, tinyid, cosid or kv
    ///
    /// `leaf`: Leaf's own `leaf_alloc`, in MySQL, MariaDB and PostgreSQL, where it is the default; `leaf:TABLE` is
    /// another table with its columns, `leaf:TABLE:COLUMN` one with another name for `update_time`. `tinyid`,
    /// `cosid`: `tiny_id_info` of Tinyid and `cosid` of CosId, in MySQL and MariaDB. `kv`: entries of Vesta's
    /// own, in any store; the default in the others.
    ///
    /// Example: kv
    #[arg(id = "segment.table", value_name = "NAME", global = true)]
    #[arg(value_parser = str::parse::<SegmentTable>)]
    pub table: Option<SegmentTable>,

    /// Most numbers of a tag that are fetched at a time
    ///
    /// 1 to 1000000, of serials too. A larger step in the table stays.
    #[arg(id = "segment.max_step", value_name = "N", default_value = "1000000")]
    #[arg(value_parser = number(1, LARGEST_STEP))]
    pub max_step: u64,

    /// Refuse a database that may forget segment numbers
    ///
    /// Or serials. One with asynchronous replicas may hand out numbers again after a fail-over. Without this, that is
    /// only told of: at the start, in the log, and by the metric `vesta_segments_may_forget`.
    #[arg(id = "segment.require_durable", value_name = "BOOL", default_value = "false")]
    #[arg(value_parser = truth())]
    pub require_durable: bool,
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
        match idle.into_iter().find(|(_, set)| *set && self.store.is_none()) {
            Some((name, _)) => Error::refuse(format!(
                "{name} is for segment mode, which is off; set segment.store too"
            )),
            None => Ok(()),
        }
    }
}
