//! Segment mode on the admin listener: the status of each tag, and new tags.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use vesta_intf::{ErrorKind, IdError};
use vesta_numbers::segment::SegmentService;

use super::responses::respond;
use super::state::AdminState;
use crate::answers::{Problem, Whole};
use crate::segments::{NewSegment, SegmentNow, SegmentTags, create_segment};
use crate::settings::SEGMENTS_OFF;

/// Status of segment mode, behind `GET /segments` and the page.
pub(super) fn status(segments: &SegmentService) -> SegmentTags {
    SegmentTags {
        whole: whole(segments),
        tags: segments.status().iter().map(SegmentNow::from).collect(),
    }
}

/// The same without tags, for `GET /status`.
pub(super) fn whole(segments: &SegmentService) -> Whole {
    let tags = segments.status();
    let not_ready = tags.iter().filter(|tag| tag.not_ready_because.is_some());
    Whole::new(
        segments.describe(),
        segments.not_ready_because(),
        segments.doubt(),
        segments.last_refresh_age(),
        tags.len(),
        not_ready.map(|tag| tag.key.clone()).collect(),
    )
}

/// Lines about faults, for `GET /readyz`, whose status code depends on IDs only.
pub(super) fn troubles(segments: &SegmentService) -> String {
    let tags = segments
        .status()
        .into_iter()
        .filter_map(|tag| tag.not_ready_because);
    lines("segments", segments.not_ready_because(), tags)
}

/// Maximum tags that `GET /readyz` mentions.
const MOST_TROUBLES: usize = 20;

/// A line for the whole, and one for each affected tag.
pub(super) fn lines(what: &str, all: Option<String>, tags: impl Iterator<Item = String>) -> String {
    let troubles = all.into_iter().chain(tags.take(MOST_TROUBLES));
    troubles.map(|why| format!("{what}: {why}\n")).collect()
}

/// Maximum request body, in bytes.
pub(super) const MOST_BYTES: usize = 16 * 1024;

/// Timeout of a request to a store.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// The service, or the refusal if segment mode is off.
pub(super) fn find(state: &AdminState) -> Result<&Arc<SegmentService>, IdError> {
    state.segments().ok_or_else(|| state.off(SEGMENTS_OFF))
}

/// Adds a tag.
pub(super) async fn create(
    state: &AdminState,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Response, Box<Problem>> {
    let segments = find(state)?;
    // A page in a browser cannot send this content type to another host without a preflight.
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind
        .and_then(|kind| kind.split(';').next())
        .unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case("application/json") {
        return Err(Problem::not_json().into());
    }
    let new: NewSegment = serde_json::from_slice(body).map_err(|error| {
        let example = r#"{"tag":"orders","step":1000}"#;
        Problem::new(
            ErrorKind::Invalid,
            format!("the body must be like {example}: {error}"),
        )
    })?;
    let created = tokio::time::timeout(TIMEOUT, create_segment(segments, new)).await;
    let created = created.unwrap_or_else(|_| {
        Err(IdError::Unavailable {
            reason: "the store did not answer in time; the tag may or may not have been added"
                .into(),
            retry_after: None,
            source: None,
        })
    })?;
    let status = match created.created {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok(respond(status, &created))
}
