//! Segment mode: off, or a database with tags.

use clap::Args;
use vesta_service::SegmentMode;

use super::Serials;
use super::parse::{choice, number, store_url, truth};
use crate::error::Error;
use vesta_store::{SegmentTable, StoreUrl};

/// The most numbers that may be fetched at a time.
const LARGEST_STEP: u64 = 1_000_000;

/// Segment mode: the database of tags, and the order and growth of their numbers.
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

    /// Table of segment tags: leaf or kv
    ///
    /// `leaf`: Leaf's own `leaf_alloc`, in MySQL, MariaDB and PostgreSQL, where it is the default. `kv`:
    /// entries of Vesta's own, in any store; the default in the others.
    ///
    /// Example: kv
    #[arg(id = "segment.table", value_name = "NAME", global = true)]
    #[arg(value_parser = choice([("leaf", SegmentTable::Leaf), ("kv", SegmentTable::Kv)]))]
    pub table: Option<SegmentTable>,

    /// Order of segment numbers: strict or relaxed
    ///
    /// `strict`: the numbers of a tag increase over all calls. `relaxed`: only within each thread of the
    /// program, which is faster under contention.
    #[arg(id = "segment.mode", value_name = "NAME", default_value = "strict")]
    #[arg(value_parser = choice([("strict", SegmentMode::Strict), ("relaxed", SegmentMode::Relaxed)]))]
    pub mode: SegmentMode,

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
    /// Refuses settings of segment mode while it is off; two of them are for serials too.
    pub(super) fn check(&self, serials: &Serials) -> Result<(), Error> {
        let alone = serials.store.is_none();
        let idle = [
            ("segment.table", self.table.is_some()),
            ("segment.mode", self.mode != SegmentMode::default()),
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
