//! Segment mode on the admin listener: the status of each tag, and new tags.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use vesta_service::{NewSegmentTag, SegmentService, SegmentStatus};

use super::state::Program;
use super::status::millis;
use super::{Refusal, json};
use crate::commands::new_tag;
use crate::secret;

/// Refusal while segment mode is off.
const OFF: &str = "segment mode is off; set segment.store (--segment-store)";

/// `GET /segments`. Numbers of tags are text: they may have more bits than a number in JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SegmentsStatus {
    pub(super) store: String,
    pub(super) ready: bool,
    pub(super) not_ready_because: Option<String>,
    /// Since the table was read; `null` if it never was.
    pub(super) last_refresh_age_ms: Option<u64>,
    pub(super) segments: Vec<TagStatus>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TagStatus {
    pub(super) key: String,
    description: Option<String>,
    pub(super) ready: bool,
    pub(super) not_ready_because: Option<String>,
    pub(super) current: Option<Numbers>,
    /// The first number that was not given out.
    pub(super) position: String,
    /// Used part of `current`.
    pub(super) used_percent: Option<u64>,
    next: Vec<Numbers>,
    /// Numbers at hand: the rest of `current`, and all of `next`.
    pub(super) left: u64,
    pub(super) taken: u64,
    pub(super) lost: u64,
    pub(super) per_second: u64,
    table_step: u64,
    pub(super) step: u64,
    fetching: bool,
    last_fetch_age_ms: Option<u64>,
    last_fetch_took_ms: Option<u64>,
    pub(super) fetches_ok: u64,
    pub(super) fetches_failed: u64,
    last_error: Option<String>,
}

/// The numbers from `from` on below `below`.
#[derive(Debug, Serialize)]
pub(super) struct Numbers {
    pub(super) from: String,
    pub(super) below: String,
    #[serde(skip)]
    pub(super) last: u64,
}

impl From<&Range<u64>> for Numbers {
    fn from(range: &Range<u64>) -> Self {
        let last = range.end.saturating_sub(1);
        Self { from: range.start.to_string(), below: range.end.to_string(), last }
    }
}

impl From<SegmentStatus> for TagStatus {
    fn from(status: SegmentStatus) -> Self {
        let SegmentStatus { position, current, next, .. } = &status;
        let length = |range: &Range<u64>| range.end.saturating_sub(range.start);
        let rest = current.as_ref().map_or(0, |it| it.end.saturating_sub(*position));
        let used_percent = current.as_ref().filter(|it| length(it) > 0).and_then(|it| {
            let used = position.clamp(&it.start, &it.end) - it.start;
            u64::try_from(u128::from(used) * 100 / u128::from(length(it))).ok()
        });
        Self {
            ready: status.not_ready_because.is_none(),
            current: current.as_ref().map(Numbers::from),
            position: position.to_string(),
            used_percent,
            left: next.iter().map(length).fold(rest, u64::saturating_add),
            next: next.iter().map(Numbers::from).collect(),
            key: status.key,
            description: status.description,
            not_ready_because: hidden(status.not_ready_because),
            taken: status.taken_total,
            lost: status.lost_total,
            per_second: status.rate,
            table_step: status.table_step,
            step: status.step,
            fetching: status.fetching,
            last_fetch_age_ms: status.last_fetch_age.map(millis),
            last_fetch_took_ms: status.last_fetch_took.map(millis),
            fetches_ok: status.fetches_ok,
            fetches_failed: status.fetches_failed,
            last_error: hidden(status.last_error),
        }
    }
}

/// Errors of stores are shown to any caller.
fn hidden(text: Option<String>) -> Option<String> {
    text.map(|text| secret::hide(&text))
}

/// Segment mode in `GET /status`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    store: String,
    ready: bool,
    not_ready_because: Option<String>,
    /// Tags in the table.
    tags: usize,
    /// Tags whose numbers cannot be expected.
    not_ready: Vec<String>,
}

impl SegmentsStatus {
    pub(super) fn of(segments: &SegmentService) -> Self {
        let not_ready_because = hidden(segments.not_ready_because());
        Self {
            store: segments.describe(),
            ready: not_ready_because.is_none(),
            not_ready_because,
            last_refresh_age_ms: segments.last_refresh_age().map(millis),
            segments: segments.status().into_iter().map(TagStatus::from).collect(),
        }
    }

    pub(super) fn summary(self) -> Summary {
        let Self { store, ready, not_ready_because, segments, .. } = self;
        let tags = segments.len();
        let not_ready = segments.into_iter().filter(|tag| !tag.ready).map(|tag| tag.key).collect();
        Summary { store, ready, not_ready_because, tags, not_ready }
    }
}

/// `POST /segments`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    key: String,
    step: u64,
    #[serde(default = "one")]
    first: u64,
    description: Option<String>,
}

const fn one() -> u64 {
    1
}

/// The longest request that is read, in bytes.
pub(super) const MOST_BYTES: usize = 16 * 1024;

/// Longest request to a store.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// The service, or the refusal of a program without one.
pub(super) fn find(program: &Program) -> Result<Arc<SegmentService>, Refusal> {
    program.segments().cloned().ok_or_else(|| match program.service() {
        Some(_) => (StatusCode::NOT_FOUND, OFF.to_owned()),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the program has not started yet".to_owned()),
    })
}

/// Adds a tag.
pub(super) async fn create(
    program: &Program,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Response, Refusal> {
    let segments = find(program)?;
    // A page in a browser cannot send this type to another host without asking first.
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case("application/json") {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json".to_owned()));
    }
    let tag = read(body).map_err(|reason| (StatusCode::BAD_REQUEST, reason))?;
    let made = spawn_blocking(move || (segments.create(&tag), tag));
    let made = tokio::time::timeout(TIMEOUT, made).await.map_err(|_| {
        let reason = "the store did not answer in time; it is not known whether the tag was added";
        (StatusCode::GATEWAY_TIMEOUT, reason.to_owned())
    })?;
    let (created, tag) =
        made.map_err(|panic| (StatusCode::INTERNAL_SERVER_ERROR, panic.to_string()))?;
    match created {
        Ok(true) => {
            tracing::info!(tag = tag.key(), step = tag.step(), first = tag.first(), "tag added");
            Ok(json(StatusCode::CREATED, &shown(&tag)))
        }
        Ok(false) => Err((StatusCode::CONFLICT, format!("there is a tag `{}` already", tag.key()))),
        Err(error) => Err((StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
    }
}

fn read(body: &[u8]) -> Result<NewSegmentTag, String> {
    let New { key, step, first, description } = serde_json::from_slice(body).map_err(|error| {
        format!("the body must be like {{\"key\":\"orders\",\"step\":1000}}: {error}")
    })?;
    new_tag(&key, step, first, description.as_deref()).map_err(|error| error.to_string())
}

fn shown(tag: &NewSegmentTag) -> serde_json::Value {
    serde_json::json!({
        "key": tag.key(),
        "step": tag.step(),
        "first": tag.first().to_string(),
        "description": tag.description(),
    })
}
