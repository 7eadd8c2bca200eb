//! Common parts of segments and serials.

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;
use vesta_numbers::segment::SegmentStatus;

use super::Doubt;
use crate::ticks::millis;

/// Segment mode or serials as a whole.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Whole {
    /// The store.
    pub store: String,
    /// True if the tags have been read and are served.
    pub ready: bool,
    /// The reason why they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready_because: Option<String>,
    /// Why the store may hand out numbers again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// Time since the tags were last read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_refresh_age_ms: Option<u64>,
    /// Number of tags.
    pub tag_count: usize,
    /// Names of tags that are not ready.
    pub not_ready: Vec<String>,
}

impl Whole {
    /// The whole of tags of which some are not ready.
    pub(crate) fn new(
        store: String,
        not_ready_because: Option<String>,
        doubt: Option<String>,
        last_refresh_age: Option<Duration>,
        tag_count: usize,
        not_ready: Vec<String>,
    ) -> Self {
        Self {
            store,
            ready: not_ready_because.is_none(),
            not_ready_because,
            doubt: doubt.map(Doubt::because),
            last_refresh_age_ms: last_refresh_age.map(millis),
            tag_count,
            not_ready,
        }
    }
}

/// Successes and failures.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Outcomes {
    /// Successes.
    pub ok: u64,
    /// Failures.
    pub failed: u64,
}

/// Numbers available for a tag, and its fetches.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Supply {
    /// Fetched numbers that are still unused.
    pub left: u64,
    /// Numbers handed out since the start.
    pub taken: u64,
    /// Numbers lost to failed batches.
    pub lost: u64,
    /// Numbers handed out per second.
    pub per_second: u64,
    /// Step in the table.
    pub table_step: u64,
    /// Numbers that the next fetch takes.
    pub step: u64,
    /// True while a fetch is in flight.
    pub fetching: bool,
    /// Time since the last fetch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_fetch_age_ms: Option<u64>,
    /// Duration of the last fetch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_fetch_took_ms: Option<u64>,
    /// Fetches by outcome.
    pub fetches: Outcomes,
    /// The last error, even if it has since recovered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl From<&SegmentStatus> for Supply {
    fn from(tag: &SegmentStatus) -> Self {
        let (ok, failed) = (tag.fetches_ok, tag.fetches_failed);
        Self {
            left: left(tag),
            taken: tag.taken_total,
            lost: tag.lost_total,
            per_second: tag.rate,
            table_step: tag.table_step,
            step: tag.step,
            fetching: tag.fetching,
            last_fetch_age_ms: tag.last_fetch_age.map(millis),
            last_fetch_took_ms: tag.last_fetch_took.map(millis),
            fetches: Outcomes { ok, failed },
            last_error: tag.last_error.clone(),
        }
    }
}

/// Available numbers: the rest of the current range, and all of the next ones.
pub(crate) fn left(tag: &SegmentStatus) -> u64 {
    let rest = tag
        .current
        .as_ref()
        .map_or(0, |range| range.end.saturating_sub(tag.position));
    tag.next.iter().map(length).fold(rest, u64::saturating_add) / tag.delta
}

pub(crate) const fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}
