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
    /// The range whose numbers are being issued.
    pub current: Option<Range<u64>>,
    /// The first number that has not been issued.
    pub position: u64,
    /// The ranges fetched ahead.
    pub next: Vec<Range<u64>>,
    /// Numbers issued since the service was built, including those given up because the tag was removed.
    pub taken_total: u64,
    /// Numbers that were taken for batches that failed. They are never issued.
    pub lost_total: u64,
    /// Numbers issued per second: the pace of the last part of a range, or of the present one if
    /// that lasts for more than a second.
    pub rate: u64,
    /// Distance between neighbouring numbers of the tag: more than 1 if the database has only some
    /// of its numbers.
    pub delta: u64,
    /// The last number of the tag, if it has one.
    pub last: Option<u64>,
    /// How much of the numbers up to the last one is handed out to processes, in percent, rounded down.
    pub used_percent: Option<u64>,
    /// The step in the table.
    pub table_step: u64,
    /// Size of the next fetch: one or more steps of the table.
    pub step: u64,
    /// Set while a fetch is in flight.
    pub fetching: bool,
    /// Time since the last range was received.
    pub last_fetch_age: Option<Duration>,
    /// Duration of that fetch, from the moment it was due.
    pub last_fetch_took: Option<Duration>,
    /// Fetches that brought a range.
    pub fetches_ok: u64,
    /// Fetches that failed.
    pub fetches_failed: u64,
    /// The last error, even if later fetches succeeded.
    pub last_error: Option<String>,
    /// The reason why numbers cannot be expected within the next seconds, if that is so.
    pub not_ready_because: Option<String>,
}
