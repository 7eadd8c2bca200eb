//! Prefetching of IDs or segment numbers: callers take from memory, and a task refills it ahead of
//! demand.
//!
//! `buffer` decides (pure), `ring` hands out IDs without a lock, and this file is the driver: it
//! has the lock, the tasks and the waiting callers.

mod buffer;
mod ring;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout_at};
use vesta_intf::{IdError, IdRun, MAX_RUN_IDS_PER_CALL, NotReady, NotReadyReason};

use self::buffer::{Buffer, split};
use self::ring::{MAX_RUN, Ring, Writer};
pub(crate) use self::source::{Prefetcher, Source};
use crate::fork;
use crate::remote::Remote;
use crate::retry::backoff;

/// Settings of a prefetch buffer of IDs or segment numbers: its capacity and their maximum age.
///
/// The buffer is filled when the client or segment handle is created, and refilled when a caller
/// finds it at its low-water mark; without callers there are no refills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefetch {
    /// Capacity in IDs: 1 to 1,048,576, default 10,000. Divided by the IDs taken per second, it is the
    /// time for which callers are served while every server is down.
    pub capacity: u32,
    /// Low-water mark, at which a refill starts: less than `capacity`, default 5,000. With 0 a
    /// refill starts only when the buffer is empty.
    pub low_water: u32,
    /// Maximum age: IDs requested longer ago are dropped. At least 1 ms, default 60 s;
    /// `Duration::MAX` keeps them forever. It concerns order and freshness only, as an ID stays unique
    /// at any age; it is exact to a few milliseconds.
    pub max_age: Duration,
}

impl Default for Prefetch {
    fn default() -> Self {
        Self {
            capacity: 10_000,
            low_water: 5_000,
            max_age: Duration::from_secs(60),
        }
    }
}

impl Prefetch {
    pub(crate) fn check(&self) -> Result<(), IdError> {
        let capacity = u64::from(self.capacity);
        IdError::check(
            "prefetch.capacity",
            capacity,
            1,
            u64::from(MAX_RUN_IDS_PER_CALL),
        )?;
        IdError::check(
            "prefetch.low_water",
            u64::from(self.low_water),
            0,
            capacity - 1,
        )?;
        if self.max_age < Duration::from_millis(1) {
            return Err(IdError::invalid(
                "prefetch.max_age",
                "must be 1 ms or longer",
            ));
        }
        Ok(())
    }
}

/// Delay of the next refill after a failed one, doubled with each failure.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Retry hint while a refill is in progress: about a round trip.
const REFILL_TIME: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct PrefetchBuffer {
    ring: Ring,
    state: Mutex<State>,
    /// Number of IDs moved from the buffer to the ring at a time.
    chunk: u32,
    start: Instant,
    /// Process that built the buffer.
    process: u32,
    /// Wakes the refill task: a caller found too few IDs.
    wanted: Notify,
    /// Wakes the expiry task: IDs that can expire were stored.
    stored: Notify,
    /// Result of each refill, for waiting callers: `None` is success.
    outcome: watch::Sender<Option<IdError>>,
}

#[derive(Debug)]
struct State {
    buffer: Buffer,
    writer: Writer,
    /// Request time of the run in the ring.
    ring_asked_at: Duration,
    /// IDs that expired in the ring.
    ring_stale: u64,
    /// Total number of IDs received from the servers.
    stored: u64,
    /// Number of IDs of waiting batches.
    awaited: u64,
    /// Error of the last refill, and the earliest start of the next one.
    failed: Option<(IdError, Instant)>,
}

impl State {
    /// Number of IDs to fetch now.
    fn wanted(&self, ring: &Ring) -> Option<u32> {
        self.buffer
            .wanted(ring.left(&self.writer).into(), self.awaited)
    }
}

/// Statistics of a [`Segment`](crate::Segment) since its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SegmentStats {
    /// Numbers handed out.
    pub handed_out: u64,
    /// Numbers in the buffer now.
    pub left: u64,
    /// Numbers that expired in the buffer and were dropped.
    pub stale: u64,
}

impl PrefetchBuffer {
    fn new(prefetch: &Prefetch) -> Self {
        let (ring, writer) = Ring::new();
        // Small enough that the low-water mark is noticed in time.
        let mark = if prefetch.low_water == 0 {
            u32::MAX
        } else {
            prefetch.low_water / 4
        };
        let this = Self {
            ring,
            state: Mutex::new(State {
                buffer: Buffer::new(prefetch),
                writer,
                ring_asked_at: Duration::ZERO,
                ring_stale: 0,
                stored: 0,
                awaited: 0,
                failed: None,
            }),
            chunk: (prefetch.capacity / 16).min(mark).clamp(1, MAX_RUN),
            start: Instant::now(),
            process: fork::watched_process(),
            wanted: Notify::new(),
            stored: Notify::new(),
            outcome: watch::Sender::new(None),
        };
        this.wanted.notify_one();
        this
    }

    /// Takes up to `most` IDs of one run, without waiting.
    #[inline]
    pub(crate) fn take(&self, most: u32) -> Option<IdRun> {
        match self.ring.take(most) {
            Some(run) => Some(run),
            None => self.take_and_publish(most),
        }
    }

    /// Slow path of an empty ring: takes from the buffer, and publishes the next run.
    #[cold]
    fn take_and_publish(&self, most: u32) -> Option<IdRun> {
        // Checked before locking: a thread that exists only in the parent may hold the lock.
        fork::check(self.process).ok()?;
        let mut state = self.state.lock();
        // Another caller may have refilled the ring already.
        if let Some(run) = self.ring.take(most) {
            return Some(run);
        }
        let State {
            buffer,
            writer,
            ring_asked_at,
            ..
        } = &mut *state;
        let next = buffer
            .take(self.start.elapsed(), self.chunk.max(most))
            .map(|aged| {
                let (mine, rest) = split(aged.run, most);
                (mine, rest, aged.asked_at)
            });
        match next {
            Some((_, Some(rest), asked_at)) => {
                // Fails only after 2^38 runs, when the ring runs out of generations.
                if let Err(rest) = self.ring.publish(writer, rest) {
                    buffer.put_back(rest, asked_at);
                }
                *ring_asked_at = asked_at;
            }
            // Otherwise callers would keep adding to a used-up generation.
            _ => _ = self.ring.close(writer),
        }
        if state.wanted(&self.ring).is_some() {
            self.wanted.notify_one();
        }
        next.map(|(mine, ..)| mine)
    }

    /// Takes exactly `count` IDs, in the order of single takes, or none.
    pub(crate) fn take_batch(&self, count: u32) -> Option<Vec<IdRun>> {
        fork::check(self.process).ok()?;
        let mut state = self.state.lock();
        let State {
            buffer,
            writer,
            ring_asked_at,
            ..
        } = &mut *state;
        let available = |buffer: &Buffer, writer: &Writer| {
            buffer.left + u64::from(self.ring.left(writer)) >= u64::from(count)
        };
        let mut runs = Vec::new();
        if available(buffer, writer) {
            // Other callers may take from the ring up to this point, and its run may have expired.
            if let Some(rest) = self.ring.take_back(writer) {
                buffer.put_back(rest, *ring_asked_at);
            }
            let now = self.start.elapsed();
            buffer.drop_stale(now);
            let mut missing = if available(buffer, writer) { count } else { 0 };
            while missing > 0 {
                let Some(aged) = buffer.take(now, missing) else {
                    break;
                };
                missing -= aged.run.count;
                aged.run.append_to(&mut runs);
            }
        }
        if state.wanted(&self.ring).is_some() {
            self.wanted.notify_one();
        }
        (!runs.is_empty()).then_some(runs)
    }

    /// Takes an ID; if none is left, waits for a refill.
    pub(crate) async fn wait_for_one(&self, deadline: Instant) -> Result<u64, IdError> {
        self.wait_for(|| self.take(1), deadline)
            .await
            .map(|run| run.first)
    }

    /// Takes `count` IDs, waiting for refills until there are as many.
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
            fork::check(self.process)?;
            // Subscribes before taking, so that no result is missed.
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
                Ok(Err(_)) => {
                    return Err(IdError::Sealed {
                        reason: "the client is gone".into(),
                    });
                }
                Ok(Ok(())) => {
                    if let Some(error) = outcome.borrow().clone() {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Error of a call that does not wait and found no ID.
    pub(crate) fn why_empty(&self) -> IdError {
        if let Err(error) = fork::check(self.process) {
            return error;
        }
        let left = |until: &Instant| until.saturating_duration_since(Instant::now());
        match &self.state.lock().failed {
            Some((error, until)) if !left(until).is_zero() => {
                with_retry_after(error.clone(), left(until))
            }
            _ => NotReady {
                retry_after: REFILL_TIME,
                why: NotReadyReason::AwaitingLease,
            }
            .into(),
        }
    }

    /// Number of IDs in the buffer and the ring.
    pub(crate) fn left(&self) -> u64 {
        self.stats().left
    }

    pub(crate) fn stats(&self) -> SegmentStats {
        if fork::check(self.process).is_err() {
            return SegmentStats::default();
        }
        let state = self.state.lock();
        let left = state.buffer.left + u64::from(self.ring.left(&state.writer));
        let stale = state.buffer.stale + state.ring_stale;
        SegmentStats {
            left,
            stale,
            handed_out: state.stored - left - stale,
        }
    }

    /// Refill task: fetches whenever IDs are wanted.
    async fn keep_filled(self: Arc<Self>, source: Source, remote: Arc<Remote>) {
        let mut failures = 0_u32;
        loop {
            self.wanted.notified().await;
            let Some(count) = self.state.lock().wanted(&self.ring) else {
                continue;
            };
            let asked_at = self.start.elapsed();
            match source.fetch(&remote, count).await {
                Ok(runs) => {
                    failures = 0;
                    self.store(runs, asked_at);
                }
                Err(error) => {
                    let pause = backoff(PAUSE, LONGEST_PAUSE, failures, remote.rng.next());
                    failures = failures.saturating_add(1);
                    let pause = pause.max(error.retry_after().unwrap_or_default());
                    let until = Instant::now() + pause.min(Duration::from_secs(3600));
                    self.state.lock().failed = Some((error.clone(), until));
                    self.outcome.send_replace(Some(error));
                    sleep_until(until).await;
                }
            }
        }
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

    /// Expiry task: sleeps until the oldest IDs expire; stays asleep while the buffer is empty.
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
        // The run in the ring is older than those in the buffer.
        let oldest = match self.ring.left(&state.writer) {
            0 => state.buffer.oldest()?,
            _ => state.ring_asked_at,
        };
        self.start.checked_add(state.buffer.expiry(oldest)?)
    }

    fn expire(&self) {
        let now = self.start.elapsed();
        let mut state = self.state.lock();
        let State {
            buffer,
            writer,
            ring_stale,
            ring_asked_at,
            ..
        } = &mut *state;
        if buffer.is_stale(*ring_asked_at, now) {
            *ring_stale += u64::from(self.ring.close(writer));
        }
        buffer.drop_stale(now);
    }
}

/// Registration of a batch that waits for IDs, removed on drop.
struct Awaited<'a> {
    buffer: &'a PrefetchBuffer,
    count: u64,
}

impl<'a> Awaited<'a> {
    fn add(buffer: &'a PrefetchBuffer, count: u64) -> Self {
        buffer.state.lock().awaited += count;
        Self { buffer, count }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.buffer.state.lock().awaited -= self.count;
    }
}

fn with_retry_after(error: IdError, left: Duration) -> IdError {
    match error {
        IdError::NotReady(NotReady { why, .. }) => IdError::NotReady(NotReady {
            retry_after: left,
            why,
        }),
        IdError::Unavailable { reason, source, .. } => IdError::Unavailable {
            reason,
            retry_after: Some(left),
            source,
        },
        other => other,
    }
}
