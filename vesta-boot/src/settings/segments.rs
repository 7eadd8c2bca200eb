//! Segment mode: off, or a database with tags.

use clap::Args;
use vesta_service::SegmentMode;

use super::parse::{choice, number, store_url};
use crate::error::Error;
use vesta_store::StoreUrl;

/// The largest step that a tag may grow to.
const LARGEST_STEP: u64 = 1_000_000;

/// `[segment]`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Segments")]
#[group(skip)]
pub(super) struct Section {
    /// Database of segment tags; turns segment mode on
    ///
    /// `sqlite:PATH`, `mysql://`, `postgres://` or `redis://`, as for `machine.store`.
    ///
    /// Example: mysql://user:password@host:3306/database
    #[arg(id = "segment.store", value_name = "URL", value_parser = store_url, global = true)]
    store: Option<StoreUrl>,

    /// Order of segment numbers: strict or relaxed
    ///
    /// `strict`: the numbers of a tag increase over all calls. `relaxed`: only within each thread of the
    /// program, which is faster under contention.
    #[arg(id = "segment.mode", value_name = "NAME", default_value = "strict")]
    #[arg(value_parser = choice([("strict", SegmentMode::Strict), ("relaxed", SegmentMode::Relaxed)]))]
    mode: SegmentMode,

    /// Largest step that a tag grows to by itself
    ///
    /// 1 to 1000000. A larger step in the table stays.
    #[arg(id = "segment.max_step", value_name = "N", default_value = "1000000")]
    #[arg(value_parser = number(1, LARGEST_STEP))]
    max_step: u64,
}

/// Segment mode: the database of tags, and the order and growth of their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segments {
    /// The database.
    pub store: StoreUrl,
    /// The order in which threads get the numbers of a tag.
    pub mode: SegmentMode,
    /// The largest step that a tag grows to by itself.
    pub max_step: u64,
}

impl Section {
    pub(super) fn check(self) -> Result<Option<Segments>, Error> {
        let Self { store, mode, max_step } = self;
        if let Some(store) = store {
            return Ok(Some(Segments { store, mode, max_step }));
        }
        let idle = [
            ("segment.mode", mode != SegmentMode::default()),
            ("segment.max_step", max_step != LARGEST_STEP),
        ];
        match idle.into_iter().find(|(_, set)| *set) {
            Some((name, _)) => Error::refuse(format!(
                "{name} is for segment mode, which is off; set segment.store too"
            )),
            None => Ok(None),
        }
    }
}
