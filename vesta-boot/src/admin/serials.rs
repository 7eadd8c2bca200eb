//! Serials on the admin listener: the status of each tag.

use serde_json::{Value, json};
use vesta_service::{SerialService, SerialStatus};

use super::tags::{joined, lines, supply};
use crate::secret;
use crate::ticks::millis;

/// Status of serials, behind `GET /serials`, the page and `/metrics`.
pub(super) fn status(serials: &SerialService) -> Value {
    // Errors of stores are shown to any caller.
    let not_ready_because = serials.not_ready_because().as_deref().map(secret::hide);
    let (tags, doubt) = (serials.status(), serials.doubt());
    let not_ready = tags.iter().filter(|tag| trouble(tag).is_some());
    json!({
        "store": serials.describe(),
        "ready": not_ready_because.is_none(),
        "notReadyBecause": not_ready_because,
        "mayForget": doubt.is_some(),
        "mayForgetBecause": doubt.as_deref().map(secret::hide),
        "lastRefreshAgeMs": serials.last_refresh_age().map(millis),
        "tags": tags.len(),
        "notReady": not_ready.map(|tag| &tag.segment.key).collect::<Vec<_>>(),
        "serials": tags.iter().map(tag_status).collect::<Vec<_>>(),
    })
}

/// The same without the tags, in `GET /status`.
pub(super) fn summary(serials: &SerialService) -> Value {
    let mut summary = status(serials);
    summary.as_object_mut().and_then(|fields| fields.remove("serials"));
    summary
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
        "notReadyBecause": trouble.as_deref().map(secret::hide),
    });
    joined(own, supply(&tag.segment))
}
