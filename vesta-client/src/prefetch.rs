//! IDs, or numbers of a segment key, in memory before they are asked for: a caller takes one at once,
//! and a task fetches more while there still are some.
//!
//! `buffer` decides (pure), `lane` hands out without a lock, and this file is the driver: it holds
//! the lock, the task and the callers that wait.

mod buffer;
mod kept;
mod lane;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout_at};
use vesta_intf::{IdError, IdRun, MAX_RUN_IDS_PER_CALL, NotReady, NotReadyReason};

use self::buffer::{Buffer, split};
pub(crate) use self::kept::{Kept, Source};
use self::lane::{Lane, MOST, Writer};
use crate::remote::Remote;

/// How many IDs (or numbers of a segment key) wait in memory, and for how long.
///
/// The memory is filled when the client or the handle of the key is made and whenever a caller finds it at its low-water
/// mark; nobody asks for more while nobody takes any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefetch {
    /// IDs in memory at most: 1 to 1,048,576, default 10,000. The time for which callers are served
    /// while every server is down is this number divided by the IDs taken per second.
    pub capacity: u32,
    /// More are asked for when this many are left: less than `capacity`, default 5,000. 0 waits
    /// until none is left.
    pub low_water: u32,
    /// IDs that were asked for longer ago are dropped, not handed out. At least 1 ms, default 60 s;
    /// `Duration::MAX` keeps them for ever. It is about order and freshness alone, as an ID stays
    /// unique at any age; it is kept to within a few milliseconds.
    pub max_age: Duration,
}

impl Default for Prefetch {
    fn default() -> Self {
        Self { capacity: 10_000, low_water: 5_000, max_age: Duration::from_secs(60) }
    }
}

impl Prefetch {
    pub(crate) fn check(&self) -> Result<(), IdError> {
        let capacity = u64::from(self.capacity);
        IdError::check("prefetch.capacity", capacity, 1, u64::from(MAX_RUN_IDS_PER_CALL))?;
        IdError::check("prefetch.low_water", u64::from(self.low_water), 0, capacity - 1)?;
        if self.max_age < Duration::from_millis(1) {
            return Err(IdError::invalid("prefetch.max_age", "must be 1 ms or longer"));
        }
        Ok(())
    }
}

/// After a failed refill the next one waits for this long, doubled with each failure.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What a caller that does not wait is told while a refill is on its way: about a round trip.
const REFILL_TIME: Duration = Duration::from_millis(1);

pub(crate) struct Memory {
    lane: Lane,
    state: Mutex<State>,
    /// IDs that go from the buffer to the lane at a time.
    chunk: u32,
    start: Instant,
    /// A caller found too few IDs.
    wanted: Notify,
    /// There are IDs that can become too old.
    stored: Notify,
    /// The result of each refill, for the callers that wait: `None` is success.
    outcome: watch::Sender<Option<IdError>>,
}

struct State {
    buffer: Buffer,
    writer: Writer,
    /// When the run in the lane was asked for.
    lane_asked_at: Duration,
    /// IDs that became too old in the lane.
    lane_stale: u64,
    /// IDs that ever came from the servers.
    stored: u64,
    /// IDs of the batches that wait.
    awaited: u64,
    /// The last refill failed, and the next one does not start before this moment.
    failed: Option<(IdError, Instant)>,
}

/// Numbers for the statistics.
pub(crate) struct Level {
    pub(crate) left: u64,
    pub(crate) handed_out: u64,
    pub(crate) stale: u64,
}

impl Memory {
    fn new(prefetch: &Prefetch) -> Self {
        let (lane, writer) = Lane::new();
        // Small enough that the low-water mark is noticed in time.
        let mark = if prefetch.low_water == 0 { u32::MAX } else { prefetch.low_water / 4 };
        let memory = Self {
            lane,
            state: Mutex::new(State {
                buffer: Buffer::new(prefetch),
                writer,
                lane_asked_at: Duration::ZERO,
                lane_stale: 0,
                stored: 0,
                awaited: 0,
                failed: None,
            }),
            chunk: (prefetch.capacity / 16).min(mark).clamp(1, MOST),
            start: Instant::now(),
            wanted: Notify::new(),
            stored: Notify::new(),
            outcome: watch::Sender::new(None),
        };
        memory.wanted.notify_one();
        memory
    }

    /// Up to `most` IDs of one run, without waiting.
    #[inline]
    pub(crate) fn take(&self, most: u32) -> Option<IdRun> {
        match self.lane.take(most) {
            Some(run) => Some(run),
            None => self.take_and_move_on(most),
        }
    }

    /// The lane has nothing: takes from the buffer, and puts the next run into the lane.
    #[cold]
    fn take_and_move_on(&self, most: u32) -> Option<IdRun> {
        let mut state = self.state.lock();
        // Another caller may have been here first.
        if let Some(run) = self.lane.take(most) {
            return Some(run);
        }
        let State { buffer, writer, lane_asked_at, awaited, .. } = &mut *state;
        let next = buffer.take(self.start.elapsed(), self.chunk.max(most)).map(|aged| {
            let (mine, rest) = split(aged.run, most);
            (mine, rest, aged.asked_at)
        });
        match next {
            Some((_, Some(rest), asked_at)) => {
                // Refused only after 2^38 runs, when the lane has no more turns.
                if let Err(rest) = self.lane.publish(writer, rest) {
                    buffer.put_back(rest, asked_at);
                }
                *lane_asked_at = asked_at;
            }
            // Else callers would add to a used-up turn for ever.
            _ => _ = self.lane.close(writer),
        }
        if buffer.wanted(self.lane.left(writer).into(), *awaited).is_some() {
            self.wanted.notify_one();
        }
        next.map(|(mine, ..)| mine)
    }

    /// Exactly `count` IDs, in the order in which single callers would have got them, or none.
    pub(crate) fn take_batch(&self, count: u32) -> Option<Vec<IdRun>> {
        let mut state = self.state.lock();
        let State { buffer, writer, lane_asked_at, awaited, .. } = &mut *state;
        let there = |buffer: &Buffer, writer: &Writer| {
            buffer.left() + u64::from(self.lane.left(writer)) >= u64::from(count)
        };
        let mut runs = Vec::new();
        if there(buffer, writer) {
            // Others may take from the lane until here, and what is in it can be too old.
            if let Some(rest) = self.lane.take_back(writer) {
                buffer.put_back(rest, *lane_asked_at);
            }
            let now = self.start.elapsed();
            buffer.drop_stale(now);
            let mut missing = if there(buffer, writer) { count } else { 0 };
            while missing > 0 {
                let Some(aged) = buffer.take(now, missing) else { break };
                missing -= aged.run.count;
                append(&mut runs, aged.run);
            }
        }
        if buffer.wanted(self.lane.left(writer).into(), *awaited).is_some() {
            self.wanted.notify_one();
        }
        (!runs.is_empty()).then_some(runs)
    }

    /// An ID; if there is none, as soon as a refill brings one.
    pub(crate) async fn wait_for_one(&self, deadline: Instant) -> Result<u64, IdError> {
        self.wait_for(|| self.take(1), deadline).await.map(|run| run.first)
    }

    /// `count` IDs, as soon as refills have brought as many.
    pub(crate) async fn wait_for_batch(
        &self,
        count: u32,
        deadline: Instant,
    ) -> Result<Vec<IdRun>, IdError> {
        let _awaited = Awaited::add(self, count.into());
        self.wait_for(|| self.take_batch(count), deadline).await
    }

    async fn wait_for<T>(
        &self,
        take: impl Fn() -> Option<T> + Send,
        deadline: Instant,
    ) -> Result<T, IdError> {
        loop {
            // Before looking, so that no result falls between.
            let mut outcome = self.outcome.subscribe();
            if let Some(taken) = take() {
                return Ok(taken);
            }
            if let Some((error, until)) = &self.state.lock().failed
                && *until >= deadline
            {
                let left = until.saturating_duration_since(Instant::now());
                return Err(with_retry_after(error.clone(), left));
            }
            match timeout_at(deadline, outcome.changed()).await {
                Err(_) => return Err(IdError::DeadlineExceeded),
                // The sender lives in `self`.
                Ok(Err(_)) => return Err(IdError::Sealed { reason: "the client is gone".into() }),
                Ok(Ok(())) => {
                    if let Some(error) = outcome.borrow().clone() {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// What to tell a caller that found nothing and does not wait.
    pub(crate) fn why_empty(&self) -> IdError {
        let hold =
            |after| NotReady { retry_after: after, why: NotReadyReason::AwaitingLease }.into();
        match &self.state.lock().failed {
            Some((error, until)) => match until.saturating_duration_since(Instant::now()) {
                Duration::ZERO => hold(REFILL_TIME),
                left => with_retry_after(error.clone(), left),
            },
            None => hold(REFILL_TIME),
        }
    }

    /// IDs in memory.
    pub(crate) fn left(&self) -> u64 {
        let state = self.state.lock();
        state.buffer.left() + u64::from(self.lane.left(&state.writer))
    }

    pub(crate) fn level(&self) -> Level {
        let state = self.state.lock();
        let left = state.buffer.left() + u64::from(self.lane.left(&state.writer));
        let stale = state.buffer.stale() + state.lane_stale;
        Level { left, stale, handed_out: state.stored - left - stale }
    }

    /// Asks for more whenever callers need them. Ends only with its task.
    async fn keep_filled(self: Arc<Self>, source: Source, remote: Arc<Remote>) {
        let mut failures = 0_u32;
        loop {
            self.wanted.notified().await;
            let Some(count) = self.missing() else { continue };
            let asked_at = self.start.elapsed();
            match source.fetch(&remote, count).await {
                Ok(runs) => {
                    failures = 0;
                    self.store(runs, asked_at);
                }
                Err(error) => {
                    let longest = PAUSE.saturating_mul(1 << failures.min(5)).min(LONGEST_PAUSE);
                    failures += 1;
                    let pause = longest / 2 + crate::retry::jitter(longest / 2, remote.random());
                    let pause = pause.max(error.retry_after().unwrap_or_default());
                    let until = Instant::now() + pause.min(Duration::from_secs(3600));
                    self.state.lock().failed = Some((error.clone(), until));
                    self.outcome.send_replace(Some(error));
                    sleep_until(until).await;
                }
            }
        }
    }

    fn missing(&self) -> Option<u32> {
        let state = self.state.lock();
        state.buffer.wanted(self.lane.left(&state.writer).into(), state.awaited)
    }

    fn store(&self, runs: Vec<IdRun>, asked_at: Duration) {
        {
            let mut state = self.state.lock();
            state.failed = None;
            state.stored += runs.iter().map(|run| u64::from(run.count)).sum::<u64>();
            state.buffer.put(runs, asked_at);
        }
        self.stored.notify_one();
        self.outcome.send_replace(None);
    }

    /// Drops what becomes too old. Sleeps until then; with nothing in memory it does not wake up.
    async fn drop_stale(self: Arc<Self>) {
        loop {
            match self.next_expiry() {
                Some(at) => {
                    sleep_until(at).await;
                    self.expire();
                }
                None => self.stored.notified().await,
            }
        }
    }

    fn next_expiry(&self) -> Option<Instant> {
        let state = self.state.lock();
        // What is in the lane came before what is in the buffer.
        let oldest = match self.lane.left(&state.writer) {
            0 => state.buffer.oldest()?,
            _ => state.lane_asked_at,
        };
        self.start.checked_add(state.buffer.expiry(oldest)?)
    }

    fn expire(&self) {
        let now = self.start.elapsed();
        let mut state = self.state.lock();
        let State { buffer, writer, lane_stale, lane_asked_at, .. } = &mut *state;
        if buffer.is_stale(*lane_asked_at, now) {
            *lane_stale += u64::from(self.lane.close(writer));
        }
        buffer.drop_stale(now);
    }
}

/// Adds a run, to the last one if it goes on there: memory cuts what came as one.
fn append(runs: &mut Vec<IdRun>, run: IdRun) {
    match runs.last_mut() {
        Some(last)
            if last.step == run.step
                && last.first.checked_add(u64::from(last.count) * run.step) == Some(run.first) =>
        {
            last.count += run.count;
        }
        _ => runs.push(run),
    }
}

/// IDs that a batch waits for; not any more when this is dropped.
struct Awaited<'a> {
    memory: &'a Memory,
    count: u64,
}

impl<'a> Awaited<'a> {
    fn add(memory: &'a Memory, count: u64) -> Self {
        memory.state.lock().awaited += count;
        Self { memory, count }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.memory.state.lock().awaited -= self.count;
    }
}

fn with_retry_after(error: IdError, left: Duration) -> IdError {
    match error {
        IdError::NotReady(NotReady { why, .. }) => {
            IdError::NotReady(NotReady { retry_after: left, why })
        }
        IdError::Unavailable { reason, source, .. } => {
            IdError::Unavailable { reason, retry_after: Some(left), source }
        }
        other => other,
    }
}
