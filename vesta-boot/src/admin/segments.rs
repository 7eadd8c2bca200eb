//! Segment mode on the admin listener: the status of each tag, and new tags.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use vesta_numbers::segment::{NewSegmentTag, SegmentService, SegmentStatus};

use super::responses::{Refusal, off, respond};
use super::state::AdminState;
use super::tags::{Whole, joined, length, lines, supply};
use crate::commands::segment::new_tag;
use crate::settings::SEGMENTS_OFF;

/// Status of segment mode, behind `GET /segments` and the page.
pub(super) fn status(segments: &SegmentService) -> Value {
    let mut status = whole(segments).summary();
    status["segments"] = segments.status().iter().map(tag_status).collect();
    status
}

/// The same without tags, for `GET /status`.
pub(super) fn whole(segments: &SegmentService) -> Whole {
    let tags = segments.status();
    let not_ready = tags.iter().filter(|tag| tag.not_ready_because.is_some());
    let not_ready = not_ready.map(|tag| tag.key.clone());
    Whole {
        store: segments.describe(),
        not_ready_because: segments.not_ready_because(),
        doubt: segments.doubt(),
        last_refresh_age: segments.last_refresh_age(),
        tags: tags.len(),
        not_ready: not_ready.collect(),
    }
}

/// Lines about faults, for `GET /readyz`, whose status code depends on IDs only.
pub(super) fn troubles(segments: &SegmentService) -> String {
    let tags = segments
        .status()
        .into_iter()
        .filter_map(|tag| tag.not_ready_because);
    lines("segments", segments.not_ready_because(), tags)
}

/// Numbers of tags are text: they may exceed the range of JSON numbers.
fn tag_status(tag: &SegmentStatus) -> Value {
    let range = |range: &Range<u64>| json!({ "from": range.start.to_string(), "below": range.end.to_string() });
    let own = json!({
        "tag": tag.key,
        "description": tag.description,
        "ready": tag.not_ready_because.is_none(),
        "current": tag.current.as_ref().map(range),
        "next": tag.position.to_string(),
        "usedPercent": used_percent(tag),
        "last": tag.last.map(|last| last.to_string()),
        "usedPercentOfLast": tag.used_percent,
        "fetched": tag.next.iter().map(range).collect::<Vec<_>>(),
        "notReadyBecause": tag.not_ready_because.as_deref(),
    });
    joined(own, supply(tag))
}

/// Used percentage of the current range.
fn used_percent(tag: &SegmentStatus) -> Option<u64> {
    let range = tag.current.as_ref().filter(|range| length(range) > 0)?;
    let used = tag.position.clamp(range.start, range.end) - range.start;
    u64::try_from(u128::from(used) * 100 / u128::from(length(range))).ok()
}

/// Body of `POST /segments`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    tag: String,
    step: u64,
    #[serde(default = "one")]
    first: u64,
    last: Option<u64>,
    description: Option<String>,
}

const fn one() -> u64 {
    1
}

/// Maximum request body, in bytes.
pub(super) const MOST_BYTES: usize = 16 * 1024;

/// Timeout of a request to a store.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// The service, or the refusal if segment mode is off.
pub(super) fn find(state: &AdminState) -> Result<Arc<SegmentService>, Refusal> {
    state
        .segments()
        .cloned()
        .ok_or_else(|| off(state, SEGMENTS_OFF))
}

/// Adds a tag.
pub(super) async fn create(
    state: &AdminState,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Response, Refusal> {
    let segments = find(state)?;
    // A page in a browser cannot send this content type to another host without a preflight.
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind
        .and_then(|kind| kind.split(';').next())
        .unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case("application/json") {
        return Err((
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send application/json".to_owned(),
        ));
    }
    let tag = read(body).map_err(|reason| (StatusCode::BAD_REQUEST, reason))?;
    let made = spawn_blocking(move || (segments.create(&tag), tag));
    let made = tokio::time::timeout(TIMEOUT, made).await.map_err(|_| {
        let reason = "the store did not answer in time; the tag may or may not have been added";
        (StatusCode::GATEWAY_TIMEOUT, reason.to_owned())
    })?;
    let (created, tag) =
        made.map_err(|panic| (StatusCode::INTERNAL_SERVER_ERROR, panic.to_string()))?;
    let created = created.map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
    let is_new = created
        .is_new(&tag.key)
        .map_err(|error| (StatusCode::CONFLICT, error.to_string()))?;
    if is_new {
        tracing::info!(
            tag = tag.key,
            step = tag.step,
            first = tag.max_id,
            "tag added"
        );
    }
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(respond(
        status,
        joined(shown(&tag), json!({ "created": is_new })),
    ))
}

fn read(body: &[u8]) -> Result<NewSegmentTag, String> {
    let New {
        tag,
        step,
        first,
        last,
        description,
    } = serde_json::from_slice(body).map_err(|error| {
        format!("the body must be like {{\"tag\":\"orders\",\"step\":1000}}: {error}")
    })?;
    new_tag(&tag, step, first, last, description.as_deref()).map_err(|error| error.to_string())
}

fn shown(tag: &NewSegmentTag) -> Value {
    json!({
        "tag": tag.key,
        "step": tag.step,
        "first": tag.max_id.to_string(),
        "last": tag.last.map(|last| last.to_string()),
        "description": tag.description,
    })
}
