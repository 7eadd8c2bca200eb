//! Serials on the admin listener: the status of each tag.

use serde_json::{Value, json};
use vesta_service::serial::{SerialService, SerialStatus};

use super::tags::{Whole, joined, lines, supply, whole};

/// Status of serials, behind `GET /serials`, the page and `/metrics`.
pub(super) fn status(serials: &SerialService) -> Value {
    let mut status = summary(serials);
    status["serials"] = serials.status().iter().map(tag_status).collect();
    status
}

/// The same without the tags, in `GET /status`.
pub(super) fn summary(serials: &SerialService) -> Value {
    let tags = serials.status();
    let not_ready = tags.iter().filter(|tag| trouble(tag).is_some());
    let not_ready = not_ready.map(|tag| tag.segment.key.clone());
    whole(&Whole {
        store: serials.describe(),
        not_ready_because: serials.not_ready_because(),
        doubt: serials.doubt(),
        last_refresh_age: serials.last_refresh_age(),
        tags: tags.len(),
        not_ready: not_ready.collect(),
    })
}

/// Lines about what is not in order, for `GET /readyz`.
pub(super) fn troubles(serials: &SerialService) -> String {
    let tags = serials.status();
    lines("serials", serials.not_ready_because(), tags.iter().filter_map(trouble))
}

fn trouble(tag: &SerialStatus) -> Option<String> {
    tag.key_trouble.clone().or_else(|| tag.segment.not_ready_because.clone())
}

/// Counters are text: they may have more bits than a number in JSON.
fn tag_status(tag: &SerialStatus) -> Value {
    let trouble = trouble(tag);
    let own = json!({
        "key": tag.segment.key,
        "description": tag.segment.description,
        "pattern": tag.pattern,
        "reset": tag.reset,
        "zone": tag.zone,
        "fingerprint": tag.key,
        "period": tag.period,
        "next": tag.next.to_string(),
        "last": tag.last.to_string(),
        "room": (tag.last + 1).saturating_sub(tag.next),
        "ready": trouble.is_none(),
        "notReadyBecause": trouble.as_deref(),
    });
    joined(own, supply(&tag.segment))
}
