//! Segment mode on the admin listener: the state of each tag, and new tags.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use vesta_service::{NewSegmentTag, SegmentService, SegmentStatus};

use super::View;
use super::status::millis;
use crate::commands::new_tag;
use crate::secret;

/// What is said while segment mode is off.
pub(super) const OFF: &str = "segment mode is off; set segment.store (--segment-store)";

/// `GET /segments`. Numbers of tags are text: they may have more bits than a number in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct State {
    store: String,
    ready: bool,
    not_ready_because: Option<String>,
    /// How long ago the table was read; `null` if it never was.
    last_refresh_age_ms: Option<u64>,
    segments: Vec<TagState>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TagState {
    key: String,
    description: Option<String>,
    ready: bool,
    not_ready_because: Option<String>,
    current: Option<Numbers>,
    /// The first number that was not given out.
    position: String,
    /// How much of `current` is used.
    used_percent: Option<u64>,
    next: Vec<Numbers>,
    taken: u64,
    lost: u64,
    per_second: u64,
    table_step: u64,
    step: u64,
    fetching: bool,
    last_fetch_age_ms: Option<u64>,
    last_fetch_took_ms: Option<u64>,
    fetches_ok: u64,
    fetches_failed: u64,
    last_error: Option<String>,
}

/// The numbers from `from` on below `below`.
#[derive(Serialize)]
struct Numbers {
    from: String,
    below: String,
}

impl From<Range<u64>> for Numbers {
    fn from(range: Range<u64>) -> Self {
        Self { from: range.start.to_string(), below: range.end.to_string() }
    }
}

impl From<SegmentStatus> for TagState {
    fn from(status: SegmentStatus) -> Self {
        Self {
            used_percent: used_percent(&status),
            key: status.key,
            description: status.description,
            ready: status.not_ready_because.is_none(),
            not_ready_because: hidden(status.not_ready_because),
            current: status.current.map(Numbers::from),
            position: status.position.to_string(),
            next: status.next.into_iter().map(Numbers::from).collect(),
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

/// How much of the present range is used, in percent.
pub(super) fn used_percent(status: &SegmentStatus) -> Option<u64> {
    let current = status.current.as_ref()?;
    let length = current.end.checked_sub(current.start).filter(|length| *length > 0)?;
    let used = status.position.clamp(current.start, current.end) - current.start;
    u64::try_from(u128::from(used) * 100 / u128::from(length)).ok()
}

/// The numbers at hand: the rest of the present range, and those fetched ahead.
pub(super) fn left(status: &SegmentStatus) -> u64 {
    let rest = status.current.as_ref().map_or(0, |it| it.end.saturating_sub(status.position));
    let ahead = status.next.iter().map(|range| range.end.saturating_sub(range.start));
    ahead.fold(rest, u64::saturating_add)
}

/// Errors of stores are shown to whoever asks.
fn hidden(text: Option<String>) -> Option<String> {
    text.map(|text| secret::hide(&text))
}

pub(super) fn json(segments: &SegmentService) -> String {
    let reason = segments.not_ready_because();
    let state = State {
        store: segments.describe(),
        ready: reason.is_none(),
        not_ready_because: hidden(reason),
        last_refresh_age_ms: segments.last_refresh_age().map(millis),
        segments: segments.status().into_iter().map(TagState::from).collect(),
    };
    let text = serde_json::to_string_pretty(&state).expect("plain fields are JSON");
    text + "\n"
}

/// A short word on segment mode for `GET /status`.
#[derive(Serialize)]
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

impl Summary {
    pub(super) fn of(segments: &SegmentService) -> Self {
        let reason = segments.not_ready_because();
        let tags = segments.status();
        let troubled = tags.iter().filter(|tag| tag.not_ready_because.is_some());
        Self {
            store: segments.describe(),
            ready: reason.is_none(),
            not_ready_because: hidden(reason),
            not_ready: troubled.map(|tag| tag.key.clone()).collect(),
            tags: tags.len(),
        }
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

/// No request to a store takes longer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

type Answer = (StatusCode, String);

fn refuse(status: StatusCode, reason: impl std::fmt::Display) -> Answer {
    let reason = secret::hide(&reason.to_string());
    (status, serde_json::json!({ "error": reason }).to_string() + "\n")
}

/// Answers that the service has nothing to say to.
pub(super) fn find(view: &View) -> Result<Arc<SegmentService>, Answer> {
    match view.started.get() {
        Some(started) => started.segments.clone().ok_or_else(|| refuse(StatusCode::NOT_FOUND, OFF)),
        None => Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "the program has not started yet")),
    }
}

/// Adds a tag.
pub(super) async fn create(view: &View, headers: &HeaderMap, body: &[u8]) -> Answer {
    let segments = match find(view) {
        Ok(segments) => segments,
        Err(answer) => return answer,
    };
    // A page in somebody's browser cannot send this type to another host without asking first.
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    };
    if !kind.is_some_and(is_json) {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json");
    }
    let tag = match read(body) {
        Ok(tag) => tag,
        Err(reason) => return refuse(StatusCode::BAD_REQUEST, reason),
    };
    let made = spawn_blocking(move || (segments.create(&tag), tag));
    let (created, tag) = match tokio::time::timeout(TIMEOUT, made).await {
        Ok(Ok(made)) => made,
        Ok(Err(_)) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, "creating it panicked"),
        Err(_) => {
            return refuse(
                StatusCode::GATEWAY_TIMEOUT,
                "the store did not answer in time; it is not known whether the tag was added",
            );
        }
    };
    match created {
        Ok(true) => {
            tracing::info!(tag = tag.key(), step = tag.step(), first = tag.first(), "tag added");
            (StatusCode::CREATED, shown(&tag))
        }
        Ok(false) => {
            refuse(StatusCode::CONFLICT, format_args!("there is a tag `{}` already", tag.key()))
        }
        Err(error) => refuse(StatusCode::SERVICE_UNAVAILABLE, error),
    }
}

fn read(body: &[u8]) -> Result<NewSegmentTag, String> {
    let New { key, step, first, description } = serde_json::from_slice(body).map_err(|error| {
        format!("the body must be like {{\"key\":\"orders\",\"step\":1000}}: {error}")
    })?;
    new_tag(&key, step, first, description.as_deref()).map_err(|error| error.to_string())
}

fn shown(tag: &NewSegmentTag) -> String {
    let shown = serde_json::json!({
        "key": tag.key(),
        "step": tag.step(),
        "first": tag.first().to_string(),
        "description": tag.description(),
    });
    shown.to_string() + "\n"
}
