//! Tag status, for health checks, metrics and people.

use std::ops::Range;
use std::time::Duration;

/// Status of one tag in this process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SegmentStatus {
    /// The tag's name.
    pub key: String,
    /// Its description in the table.
    pub description: Option<String>,
    /// The range whose numbers are given out now.
    pub current: Option<Range<u64>>,
    /// The first number that was not given out.
    pub position: u64,
    /// The ranges that were fetched ahead.
    pub next: Vec<Range<u64>>,
    /// Numbers given out since the service was built, with those that were given up because the tag was
    /// removed.
    pub taken_total: u64,
    /// Numbers that were taken for batches which then failed. They are never given out.
    pub lost_total: u64,
    /// Numbers given out a second: the pace of the last part of a range, or of the present one if
    /// that lasts for more than a second.
    pub rate: u64,
    /// From one number of the tag to the next: more than 1 if the database has only some of its
    /// numbers.
    pub delta: u64,
    /// The step in the table.
    pub table_step: u64,
    /// The numbers that the next fetch would bring: one step of the table or several.
    pub step: u64,
    /// Set while a fetch is under way.
    pub fetching: bool,
    /// Time since the last range came.
    pub last_fetch_age: Option<Duration>,
    /// Duration of that fetch, from the moment it was due.
    pub last_fetch_took: Option<Duration>,
    /// Fetches that brought a range.
    pub fetches_ok: u64,
    /// Fetches that failed.
    pub fetches_failed: u64,
    /// The last error, also if it is over.
    pub last_error: Option<String>,
    /// Why numbers cannot be expected for the next seconds, if that is so.
    pub not_ready_because: Option<String>,
}
