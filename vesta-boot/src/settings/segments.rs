//! Segment mode: off, or a database with tags.

use std::sync::Arc;

use clap::Args;

use super::Serials;
use super::parse::{Parsed, choice, number, store_url, truth};
use crate::error::Error;
use vesta_store::{SegmentTable, Spread, StoreUrl};

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

    /// Databases that share segment tags
    ///
    /// In the place of segment.store, with Tinyid's table; separated by commas. Each has a row of the tag with
    /// the same `delta`, which is at least the number of databases, and a `remainder` of its own; the start
    /// compares them.
    ///
    /// Example: mysql://user:password@host1:3306/tinyid,mysql://user:password@host2:3306/tinyid
    #[arg(id = "segment.stores", value_name = "URLS", value_parser = store_urls, global = true)]
    pub stores: Option<StoreUrls>,

    /// Database of several that numbers come from: kept or random
    ///
    /// `kept`: the one that gave the last numbers of the tag; the next one if it fails. `random`: any, as in
    /// Tinyid. Numbers of one server increase either way: a database that lags behind skips some.
    #[arg(id = "segment.spread", value_name = "NAME", default_value = "kept")]
    #[arg(value_parser = choice([("kept", Spread::Kept), ("random", Spread::Random)]))]
    pub spread: Spread,

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

/// The URLs of databases that share tags: two or more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreUrls(Arc<[StoreUrl]>);

fn store_urls(text: &str) -> Parsed<StoreUrls> {
    let urls: Arc<[StoreUrl]> = vesta_store::several(text).map(store_url).collect::<Parsed<_>>()?;
    match urls.len() {
        0 | 1 => Err("must be two URLs or more, separated by commas".to_owned()),
        _ => Ok(StoreUrls(urls)),
    }
}

impl Segments {
    /// The databases of tags; none if segment mode is off.
    pub fn urls(&self) -> Vec<&StoreUrl> {
        match &self.stores {
            Some(stores) => stores.0.iter().collect(),
            None => self.store.iter().collect(),
        }
    }

    /// Refuses settings of segment mode while it is off, of which two are for serials too, and those that do
    /// not go together.
    pub(super) fn check(&self, serials: &Serials) -> Result<(), Error> {
        let alone = serials.store.is_none();
        let tinyid = self.table == Some(SegmentTable::Tinyid);
        if self.stores.is_some() && self.store.is_some() {
            return Error::refuse("segment.store and segment.stores exclude each other; set one");
        }
        if self.stores.is_some() && !tinyid {
            return Error::refuse(
                "segment.stores needs a table with strides; set segment.table = tinyid too",
            );
        }
        if self.spread != Spread::default() && self.stores.is_none() {
            return Error::refuse(
                "segment.spread is for several databases; set segment.stores too",
            );
        }
        let idle = [
            ("segment.table", self.table.is_some()),
            ("segment.require_durable", self.require_durable && alone),
            ("segment.max_step", self.max_step != LARGEST_STEP && alone),
        ];
        match idle.into_iter().find(|(_, set)| *set && self.urls().is_empty()) {
            Some((name, _)) => Error::refuse(format!(
                "{name} is for segment mode, which is off; set segment.store too"
            )),
            None => Ok(()),
        }
    }
}
