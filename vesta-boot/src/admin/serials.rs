//! Serials on the admin listener: the status of each tag.

use serde_json::{Value, json};
use vesta_numbers::serial::{SerialService, SerialStatus};

use super::tags::{Whole, joined, lines, supply};

/// Status of serials, behind `GET /serials` and the page.
pub(super) fn status(serials: &SerialService) -> Value {
    let mut status = whole(serials).summary();
    status["serials"] = serials.status().iter().map(tag_status).collect();
    status
}

/// The same without tags, for `GET /status`.
pub(super) fn whole(serials: &SerialService) -> Whole {
    let tags = serials.status();
    let not_ready = tags.iter().filter(|tag| trouble(tag).is_some());
    let not_ready = not_ready.map(|tag| tag.segment.key.clone());
    Whole {
        store: serials.describe(),
        not_ready_because: serials.not_ready_because(),
        doubt: serials.doubt(),
        last_refresh_age: serials.last_refresh_age(),
        tags: tags.len(),
        not_ready: not_ready.collect(),
    }
}

/// Lines about faults, for `GET /readyz`.
pub(super) fn troubles(serials: &SerialService) -> String {
    let tags = serials.status();
    lines(
        "serials",
        serials.not_ready_because(),
        tags.iter().filter_map(trouble),
    )
}

pub(super) fn trouble(tag: &SerialStatus) -> Option<String> {
    tag.key_trouble
        .clone()
        .or_else(|| tag.segment.not_ready_because.clone())
}

/// Counters left until the tag exceeds its digits.
pub(super) fn room(tag: &SerialStatus) -> u64 {
    (tag.last + 1).saturating_sub(tag.next)
}

/// Counters are text: they may exceed the range of JSON numbers.
fn tag_status(tag: &SerialStatus) -> Value {
    let trouble = trouble(tag);
    let own = json!({
        "tag": tag.segment.key,
        "description": tag.segment.description,
        "pattern": tag.pattern,
        "reset": tag.reset,
        "zone": tag.zone,
        "fingerprint": tag.key,
        "period": tag.period,
        "next": tag.next.to_string(),
        "last": tag.last.to_string(),
        "room": room(tag),
        "ready": trouble.is_none(),
        "notReadyBecause": trouble.as_deref(),
    });
    joined(own, supply(&tag.segment))
}
