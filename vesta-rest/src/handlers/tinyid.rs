//! Tinyid-compatible endpoints, for its clients: always status 200, with an error in the body.

use std::fmt;

use tokio::sync::Semaphore;
use vesta_intf::{IdError, IdRun};

use super::{Answer, json, no_store, text};
use crate::dto::tinyid::OK;
use crate::dto::{TinyidNumbers, TinyidRange, TinyidSegment};
use crate::problem::{Problem, quoted};
use crate::state::Call;

/// The most numbers of one call.
const MOST: i32 = 100_000;

/// Ranges that are fetched for clients at the same time: each needs a connection to the database.
static FETCHES: Semaphore = Semaphore::const_new(4);

/// An error, as Tinyid's clients are told of it.
enum Refusal {
    Token,
    NoSuchTag(String),
    Other(String),
}

impl Refusal {
    fn of(error: &IdError, tag: &str) -> Self {
        match error {
            IdError::NotFound { .. } => Self::NoSuchTag(tag.to_owned()),
            error => Self::Other(error.to_string()),
        }
    }

    const fn code(&self) -> u16 {
        match self {
            Self::Token => 5,
            Self::NoSuchTag(_) | Self::Other(_) => 6,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token => f.write_str("token is error"),
            Self::NoSuchTag(tag) => write!(f, "can not find biztype:{tag}"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

pub(crate) async fn next_id(call: Call) -> Answer {
    let (data, code, message) = match numbers(&call).await? {
        Ok(numbers) => (Some(numbers), OK, String::new()),
        Err(refusal @ Refusal::NoSuchTag(_)) => {
            (None, refusal.code(), format!("error query segmentId: {refusal}"))
        }
        Err(refusal) => (None, refusal.code(), refusal.to_string()),
    };
    Ok(no_store(json(&TinyidNumbers { data, code, message })))
}

pub(crate) async fn next_id_simple(call: Call) -> Answer {
    let numbers = numbers(&call).await?.unwrap_or_default();
    let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
    Ok(no_store(text(numbers.join(","))))
}

pub(crate) async fn next_segment_id(call: Call) -> Answer {
    let (data, code, message) = match range(&call).await? {
        Ok(range) => (Some(range), OK, String::new()),
        Err(refusal) => (None, refusal.code(), refusal.to_string()),
    };
    Ok(no_store(json(&TinyidSegment { data, code, message })))
}

pub(crate) async fn next_segment_id_simple(call: Call) -> Answer {
    let range = range(&call).await?.ok();
    Ok(no_store(text(range.map_or(String::new(), |range| range.simple()))))
}

/// New numbers of the tag, ascending.
async fn numbers(call: &Call) -> Result<Result<Vec<u64>, Refusal>, Problem> {
    let count = batch_size(call)?;
    let tag = match tag(call)? {
        Ok(tag) => tag,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let running = call.running();
    let service = running.segments()?;
    let runs = async { service.segment_async(tag).await?.next_runs_async(count).await };
    Ok(match running.within(None, runs).await {
        Ok(runs) => Ok(runs.iter().flat_map(IdRun::iter).collect()),
        Err(error) => Err(Refusal::of(&error, tag)),
    })
}

/// The next range of the tag.
async fn range(call: &Call) -> Result<Result<TinyidRange, Refusal>, Problem> {
    let tag = match tag(call)? {
        Ok(tag) => tag,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let running = call.running();
    let service = running.segments()?;
    let lent = async {
        let segment = service.segment_async(tag).await?;
        let turn = FETCHES.acquire().await.expect("it is never closed");
        let lend = move || {
            let _turn = turn; // also if the client does not wait for it
            segment.lend()
        };
        tokio::task::spawn_blocking(lend).await.unwrap_or(Err(IdError::DeadlineExceeded))
    };
    Ok(match running.within(None, lent).await {
        Ok(lent) => Ok(lent.into()),
        Err(error) => Err(Refusal::of(&error, tag)),
    })
}

/// The tag, if the token is good for it.
fn tag(call: &Call) -> Result<Result<&str, Refusal>, Problem> {
    let [tag, token] = ["bizType", "token"].map(|name| call.params.text(name).unwrap_or_default());
    let unread = "the tokens (tiny_id_token) have not been read yet; try again later";
    Ok(match call.running().tinyid()?.allows(token, tag) {
        Some(true) => Ok(tag),
        Some(false) => Err(Refusal::Token),
        None => Err(Refusal::Other(unread.to_owned())),
    })
}

/// The number of numbers, as Tinyid reads it.
fn batch_size(call: &Call) -> Result<u32, Problem> {
    let given = call.params.text("batchSize").map(str::trim).filter(|text| !text.is_empty());
    let Some(given) = given else { return Ok(1) };
    let count: i32 = given.parse().map_err(|_| {
        let why = format!("batchSize must be a whole number, but is {}", quoted(given));
        Problem::invalid("batchSize", why)
    })?;
    Ok(u32::try_from(count.min(MOST)).unwrap_or_default())
}
