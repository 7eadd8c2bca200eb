//! Common status of segment tags and serial tags.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};
use vesta_numbers::segment::SegmentStatus;

use crate::ticks::millis;

/// Segment mode or serials as a whole.
pub(super) struct Whole {
    pub(super) store: String,
    pub(super) not_ready_because: Option<String>,
    pub(super) doubt: Option<String>,
    pub(super) last_refresh_age: Option<Duration>,
    pub(super) tags: usize,
    pub(super) not_ready: Vec<String>,
}

impl Whole {
    /// Includes store errors, which any caller of the admin listener may see.
    pub(super) fn summary(&self) -> Value {
        json!({
            "store": self.store,
            "ready": self.not_ready_because.is_none(),
            "notReadyBecause": self.not_ready_because.as_deref(),
            "doubt": self.doubt.as_deref().map(|reason| json!({ "reason": reason })),
            "lastRefreshAgeMs": self.last_refresh_age.map(millis),
            "tags": self.tags,
            "notReady": self.not_ready,
        })
    }
}

/// A line for the whole, and one for each affected tag.
pub(super) fn lines(what: &str, all: Option<String>, tags: impl Iterator<Item = String>) -> String {
    let troubles = all.into_iter().chain(tags.take(MOST_TROUBLES));
    troubles.map(|why| format!("{what}: {why}\n")).collect()
}

/// Maximum tags that `GET /readyz` mentions.
const MOST_TROUBLES: usize = 20;

/// Numbers available for a tag, and its fetches.
pub(super) fn supply(tag: &SegmentStatus) -> Value {
    json!({
        "left": left(tag),
        "taken": tag.taken_total,
        "lost": tag.lost_total,
        "perSecond": tag.rate,
        "tableStep": tag.table_step,
        "step": tag.step,
        "fetching": tag.fetching,
        "lastFetchAgeMs": tag.last_fetch_age.map(millis),
        "lastFetchTookMs": tag.last_fetch_took.map(millis),
        "fetches": { "ok": tag.fetches_ok, "failed": tag.fetches_failed },
        "lastError": tag.last_error.as_deref(),
    })
}

/// Available numbers: the rest of the current range, and all of the next ones.
pub(super) fn left(tag: &SegmentStatus) -> u64 {
    let rest = tag
        .current
        .as_ref()
        .map_or(0, |range| range.end.saturating_sub(tag.position));
    tag.next.iter().map(length).fold(rest, u64::saturating_add) / tag.delta
}

pub(super) const fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// One object with the fields of both.
pub(super) fn joined(mut one: Value, mut other: Value) -> Value {
    if let (Some(one), Some(other)) = (one.as_object_mut(), other.as_object_mut()) {
        one.append(other);
    }
    one
}
