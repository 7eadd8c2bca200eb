//! Tinyid-compatible endpoints, for its clients: always status 200, with an error in the body.

use tokio::sync::Semaphore;
use vesta_intf::{IdError, IdRun};

use super::{Answer, with_once};
use crate::dto::tinyid::OK;
use crate::dto::{TinyidNumbers, TinyidRange, TinyidSegment};
use crate::problem::{Problem, quoted};
use crate::responses::{JSON, TEXT, json, no_store, text};
use crate::state::Call;

/// Maximum numbers per call.
const MOST: i32 = 100_000;

/// Concurrent range fetches for clients: each needs a database connection.
static FETCHES: Semaphore = Semaphore::const_new(4);

/// An error with the code and text that Tinyid's clients expect; without these, an HTTP error.
struct Refusal {
    problem: Problem,
    told: Option<(u16, String)>,
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            told: None,
        }
    }
}

impl Refusal {
    fn token() -> Self {
        let problem = IdError::Unauthenticated {
            reason: "this token is not valid for the tag".into(),
        };
        Self {
            problem: problem.into(),
            told: Some((5, "token is error".to_owned())),
        }
    }

    /// The error of a tag; `prefix` precedes the text for an unknown tag.
    fn of(error: IdError, tag: &str, prefix: &str) -> Self {
        let told = match &error {
            IdError::NotFound { .. } => format!("{prefix}can not find biztype:{tag}"),
            error => error.to_string(),
        };
        Self {
            problem: error.into(),
            told: Some((6, told)),
        }
    }

    /// JSON whose `data` is null.
    fn in_json(self) -> Problem {
        match self.told {
            Some((code, message)) => {
                let body = serde_json::to_string(&TinyidNumbers {
                    data: None,
                    code,
                    message,
                    once: None,
                })
                .expect("strings and numbers always serialise");
                self.problem.told_as(JSON, body)
            }
            None => self.problem,
        }
    }

    /// An empty body.
    fn in_text(self) -> Problem {
        if self.told.is_some() {
            self.problem.told_as(TEXT, String::new())
        } else {
            self.problem
        }
    }
}

pub(crate) async fn next_id(call: Call) -> Answer {
    let once = call.params.once()?;
    let data = Some(numbers(&call).await.map_err(Refusal::in_json)?);
    Ok(no_store(json(&TinyidNumbers {
        data,
        code: OK,
        message: String::new(),
        once,
    })))
}

pub(crate) async fn next_id_simple(call: Call) -> Answer {
    let once = call.params.once()?;
    let numbers = numbers(&call).await.map_err(Refusal::in_text)?;
    let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
    Ok(no_store(text(with_once(numbers.join(","), once))))
}

pub(crate) async fn next_segment_id(call: Call) -> Answer {
    let once = call.params.once()?;
    let data = Some(range(&call).await.map_err(Refusal::in_json)?);
    Ok(no_store(json(&TinyidSegment {
        data,
        code: OK,
        message: String::new(),
        once,
    })))
}

pub(crate) async fn next_segment_id_simple(call: Call) -> Answer {
    let once = call.params.once()?;
    let range = range(&call).await.map_err(Refusal::in_text)?;
    Ok(no_store(text(with_once(range.simple(), once))))
}

/// New numbers of the tag, ascending.
async fn numbers(call: &Call) -> Result<Vec<u64>, Refusal> {
    let (count, tag) = (batch_size(call)?, tag(call)?);
    let running = call.running();
    let service = running.segments().map_err(Problem::from)?;
    let runs = async {
        service
            .segment_async(tag)
            .await?
            .next_runs_async(count)
            .await
    };
    match running.within(None, runs).await {
        Ok(runs) => Ok(runs.iter().flat_map(IdRun::iter).collect()),
        Err(error) => Err(Refusal::of(error, tag, "error query segmentId: ")),
    }
}

/// The next range of the tag.
async fn range(call: &Call) -> Result<TinyidRange, Refusal> {
    let tag = tag(call)?;
    let running = call.running();
    let service = running.segments().map_err(Problem::from)?;
    let lent = async {
        let segment = service.segment_async(tag).await?.clone();
        let turn = FETCHES.acquire().await.expect("it is never closed");
        let lend = move || {
            let _turn = turn; // held even if the client goes away
            segment.lend()
        };
        tokio::task::spawn_blocking(lend)
            .await
            .unwrap_or(Err(IdError::DeadlineExceeded))
    };
    match running.within(None, lent).await {
        Ok(lent) => Ok(lent.into()),
        Err(error) => Err(Refusal::of(error, tag, "")),
    }
}

/// The tag, if the token is valid for it.
fn tag(call: &Call) -> Result<&str, Refusal> {
    let [tag, token] = ["bizType", "token"].map(|name| call.params.text(name).unwrap_or_default());
    match call
        .running()
        .tinyid()
        .map_err(Problem::from)?
        .allows(token, tag)
    {
        Some(true) => Ok(tag),
        Some(false) => Err(Refusal::token()),
        None => {
            let reason = "the tokens (tiny_id_token) have not been loaded yet; retry later".into();
            let unread = IdError::Unavailable {
                reason,
                retry_after: None,
                source: None,
            };
            Err(Refusal::of(unread, tag, ""))
        }
    }
}

/// The batch size, parsed as Tinyid parses it.
fn batch_size(call: &Call) -> Result<u32, Problem> {
    let given = call
        .params
        .text("batchSize")
        .map(str::trim)
        .filter(|text| !text.is_empty());
    let Some(given) = given else { return Ok(1) };
    let count: i32 = given.parse().map_err(|_| {
        let why = format!("batchSize must be a whole number, but is {}", quoted(given));
        Problem::invalid("batchSize", why)
    })?;
    Ok(u32::try_from(count.min(MOST)).unwrap_or_default())
}
