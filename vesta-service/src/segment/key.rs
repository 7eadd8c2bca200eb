//! One tag: its numbers, its state, and those who wait for it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, NotReady, NotReadyReason};

use super::SegmentMode;
use super::allocator::Allocator;
use super::buffer::{Buffer, Health, Refusal};
use super::notify::Notify;
use super::status::SegmentStatus;
use super::store::{NextRange, SegmentTag};
use crate::StoreError;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// One tag. Never removed from a service: its memory of what was given out must not be lost.
#[derive(Debug)]
pub(crate) struct Key {
    name: String,
    numbers: Allocator,
    /// Also the lock of the shared line.
    state: Mutex<State>,
    /// Rung when numbers came, and when it is known that none will.
    pub(crate) notify: Notify,
    lost: AtomicU64,
}

#[derive(Debug)]
struct State {
    buffer: Buffer,
    description: Option<String>,
}

/// Next duty of the thread that reported the store's answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    /// A fetch is due and counts as queued.
    Fetch,
    /// Look again after this pause.
    Pause(Duration),
}

impl Key {
    pub(crate) fn new(tag: &SegmentTag, mode: SegmentMode, cap: u64) -> Self {
        let numbers = match mode {
            SegmentMode::Strict => Allocator::strict(),
            SegmentMode::Relaxed => Allocator::relaxed(),
        };
        let state = State { buffer: Buffer::new(tag, cap), description: tag.description.clone() };
        Self {
            name: tag.key.clone(),
            numbers,
            state: Mutex::new(state),
            notify: Notify::default(),
            lost: AtomicU64::new(0),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The next 1 to `want` numbers, if some are at hand.
    #[inline]
    pub(crate) fn take(&self, want: u64) -> Option<Range<u64>> {
        self.numbers.take(want)
    }

    /// As [`take`](Self::take), when that found nothing. The second value says whether a fetch became
    /// due, which is also possible when there were numbers.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_slowly(
        &self,
        want: u64,
        now: Duration,
    ) -> (Result<Range<u64>, IdError>, bool) {
        let mut due = false;
        let taken = self.numbers.take_from(want, |cursor, want| {
            let mut state = self.state.lock();
            if let Some(taken) = cursor.take(want) {
                return Ok(taken); // somebody else was quicker
            }
            let chunk = state.buffer.next_chunk(now);
            due = state.buffer.ask(now);
            match chunk {
                Ok(chunk) => {
                    self.numbers.set_chunk_size(chunk.end - chunk.start);
                    Ok(cursor.refill(chunk, want))
                }
                Err(refusal) => Err(self.explain(refusal, &state.buffer)),
            }
        });
        (taken, due)
    }

    fn explain(&self, refusal: Refusal, buffer: &Buffer) -> IdError {
        let name = &self.name;
        match refusal {
            Refusal::NotYet(retry_after) => {
                NotReady { retry_after, why: NotReadyReason::AwaitingLease }.into()
            }
            Refusal::Failing(retry_after) => {
                let error = buffer.failing_because();
                // What the store said is the source: it can name hosts and tables, which is not for
                // callers from afar.
                IdError::Unavailable {
                    reason: format!("the store does not give numbers of tag `{name}`").into(),
                    // Waiting helps unless somebody has to repair something first.
                    retry_after: error.is_none_or(|e| !e.is_permanent()).then_some(retry_after),
                    source: error.map(|e| Arc::new(e.clone()) as _),
                }
            }
            Refusal::Never(Health::NoTag) => not_found(name),
            Refusal::Never(Health::Closed) => closed(),
            Refusal::Never(Health::UsedUp) => {
                let reason = format!("tag `{name}` has no more numbers of 63 bits");
                IdError::Sealed { reason: reason.into() }
            }
            Refusal::Never(_) => IdError::Unavailable {
                reason: self.trouble(buffer).unwrap_or_default().into(),
                retry_after: None,
                source: None,
            },
        }
    }

    /// Why no more numbers will come by themselves.
    fn trouble(&self, buffer: &Buffer) -> Option<String> {
        let name = &self.name;
        match buffer.health() {
            Health::Good => None,
            Health::NoTag => Some(format!("tag `{name}` is not in the table")),
            Health::BadRow => {
                Some(format!("the row of tag `{name}` needs a step above 0 and no negative max_id"))
            }
            Health::UsedUp => Some(format!("tag `{name}` has no more numbers of 63 bits")),
            Health::WentBack => {
                let highest = buffer.highest();
                Some(format!(
                    "the store went back: set max_id of tag `{name}` above {highest}, and above \
                     everything that any server gave out"
                ))
            }
            Health::Closed => Some("it was shut down".into()),
        }
    }

    /// A thread turns to the fetch that is queued: how many numbers to ask for.
    pub(crate) fn begin(&self, now: Duration) -> Option<u64> {
        self.state.lock().buffer.begin(now)
    }

    /// Takes in its outcome.
    pub(crate) fn on_reply(&self, now: Duration, reply: Result<NextRange, StoreError>) -> Then {
        let then = self.change(now, |buffer| buffer.on_reply(now, reply));
        self.notify.notify();
        then
    }

    /// Returns `true` if a fetch is due, which then counts as queued.
    pub(crate) fn ask(&self, now: Duration) -> bool {
        self.state.lock().buffer.ask(now)
    }

    /// The tag is in the table, like this. Returns whether a fetch is due.
    pub(crate) fn on_listed(&self, tag: &SegmentTag, now: Duration) -> bool {
        {
            let mut state = self.state.lock();
            if state.description != tag.description {
                state.description.clone_from(&tag.description);
            }
        }
        let then = self.change(now, |buffer| {
            buffer.on_listed(tag);
            None
        });
        then == Then::Fetch
    }

    /// The tag is not in the table, or no longer.
    pub(crate) fn on_missing(&self, now: Duration) {
        self.end(now, Health::NoTag);
    }

    /// No more numbers, ever.
    pub(crate) fn close(&self, now: Duration) {
        self.end(now, Health::Closed);
    }

    fn end(&self, now: Duration, health: Health) {
        self.change(now, |buffer| {
            if buffer.health() != health {
                buffer.drop_all(health);
            }
            None
        });
        self.notify.notify();
    }

    /// Changes the state and draws the conclusions.
    fn change(&self, now: Duration, by: impl FnOnce(&mut Buffer) -> Option<Duration>) -> Then {
        let mut state = self.state.lock();
        let before = state.buffer.health();
        let pause = by(&mut state.buffer);
        let health = state.buffer.health();
        // Also if it had ended before: whoever ended it may not have come to the stripes yet.
        let stops = matches!(health, Health::NoTag | Health::Closed);
        if stops {
            self.numbers.shared().stop();
        }
        let then = match pause {
            Some(pause) => Then::Pause(pause),
            None if state.buffer.ask(now) => Then::Fetch,
            None => Then::Nothing,
        };
        if health != before {
            match self.trouble(&state.buffer) {
                Some(trouble) if health != Health::Closed => {
                    tracing::warn!(tag = self.name, "{trouble}");
                }
                _ => {}
            }
        }
        drop(state);
        if stops {
            self.numbers.stop_stripes();
        }
        then
    }

    /// Notes that so many numbers were taken and will never be given out.
    pub(crate) fn lost(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed); // a statistic
    }

    /// `true` if the last fetch failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.state.lock().buffer.failing_because().is_some()
    }

    /// `true` if the tag is in the table, as far as is known.
    pub(crate) fn exists(&self) -> bool {
        self.state.lock().buffer.health() != Health::NoTag
    }

    pub(crate) fn status(&self, now: Duration) -> SegmentStatus {
        let state = self.state.lock();
        let position = self.numbers.shared().position();
        let snapshot = state.buffer.snapshot(now, position);
        let (at, took) = snapshot.last_fetch.unzip();
        let last_error = snapshot.error.map(|error| error.to_string());
        let failing = last_error.clone().filter(|_| snapshot.failing);
        SegmentStatus {
            key: self.name.clone(),
            description: state.description.clone(),
            current: snapshot.current,
            position,
            next: snapshot.next,
            taken_total: snapshot.taken,
            lost_total: self.lost.load(Ordering::Relaxed),
            rate: snapshot.rate,
            table_step: snapshot.table_step,
            step: snapshot.step,
            fetching: snapshot.fetching,
            last_fetch_age: at.map(|at| now.saturating_sub(at)),
            last_fetch_took: took,
            fetches_ok: snapshot.fetches,
            fetches_failed: snapshot.failures,
            last_error,
            not_ready_because: self.trouble(&state.buffer).or(failing),
        }
    }
}

pub(crate) fn not_found(key: &str) -> IdError {
    // Callers from afar choose the name: no more of it than a tag can have.
    let key: String = key.chars().take(super::NewSegmentTag::MAX_KEY).collect();
    IdError::NotFound { what: format!("segment tag `{key}`").into() }
}

pub(crate) fn closed() -> IdError {
    IdError::Sealed { reason: "it was shut down".into() }
}
