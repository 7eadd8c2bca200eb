//! Async twins of the segment service. Needs no runtime: a task is woken when numbers
//! come, or by one timer thread at the end of its patience.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_timer::Delay;
use vesta_intf::{IdError, IdRun};

use super::handle::{Segment, as_run};
use super::notify::Notify;
use super::service::SegmentService;

impl SegmentService {
    /// [`segment`](Self::segment) for tasks.
    ///
    /// # Errors
    /// The same.
    pub async fn segment_async(&self, key: &str) -> Result<Segment, IdError> {
        self.found(key, &mut None).await
    }

    async fn found(&self, key: &str, deadline: &mut Option<Duration>) -> Result<Segment, IdError> {
        let core = &self.core;
        let attempt = || Ok(Segment { key: core.find(key)?, core: core.clone() });
        core.await_for(&core.registry.notify, deadline, attempt).await
    }

    /// [`next_id`](Self::next_id) for tasks. Dropped before it is ready, it takes no number.
    ///
    /// # Errors
    /// The same.
    pub async fn next_id_async(&self, key: &str) -> Result<u64, IdError> {
        if let Some(Some(numbers)) = self.core.registry.with(key, |key| key.take(1)) {
            return Ok(numbers.start);
        }
        let mut deadline = None;
        let segment = self.found(key, &mut deadline).await?;
        Ok(segment.next_within(1, &mut deadline).await?.first)
    }

    /// `count` new numbers of a tag, ascending. Dropped before it is ready, the numbers that it had
    /// taken are never given out.
    ///
    /// # Errors
    /// As [`next_ids`](Self::next_ids).
    pub async fn next_ids_async(&self, key: &str, count: u32) -> Result<Vec<u64>, IdError> {
        let runs = self.next_runs_async(key, count).await?;
        Ok(runs.iter().flat_map(IdRun::iter).collect())
    }

    /// [`next_run`](Self::next_run) for tasks. Dropped before it is ready, it takes no number.
    ///
    /// # Errors
    /// The same.
    pub async fn next_run_async(&self, key: &str, want: u32) -> Result<IdRun, IdError> {
        IdError::check("count", want.into(), 1, u32::MAX.into())?;
        let mut deadline = None;
        let segment = self.found(key, &mut deadline).await?;
        segment.next_within(want, &mut deadline).await
    }

    /// `count` new numbers of a tag as runs, ascending. See [`next_ids_async`](Self::next_ids_async).
    ///
    /// # Errors
    /// As [`next_ids`](Self::next_ids).
    pub async fn next_runs_async(&self, key: &str, count: u32) -> Result<Vec<IdRun>, IdError> {
        let mut deadline = None;
        let segment = self.found(key, &mut deadline).await?;
        segment.runs_within(count, &mut deadline).await
    }
}

impl Segment {
    /// [`next_id`](Self::next_id) for tasks. Dropped before it is ready, it takes no number.
    ///
    /// # Errors
    /// The same.
    pub async fn next_id_async(&self) -> Result<u64, IdError> {
        Ok(self.next_within(1, &mut None).await?.first)
    }

    /// `count` new numbers as runs, ascending. Dropped before it is ready, the numbers that it had
    /// taken are never given out.
    ///
    /// # Errors
    /// As [`next_ids`](Self::next_ids).
    pub async fn next_runs_async(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        self.runs_within(count, &mut None).await
    }

    async fn next_within(
        &self,
        want: u32,
        deadline: &mut Option<Duration>,
    ) -> Result<IdRun, IdError> {
        let attempt = || Ok(as_run(&self.core.take(&self.key, want.into())?));
        self.core.await_for(&self.key.notify, deadline, attempt).await
    }

    async fn runs_within(
        &self,
        count: u32,
        deadline: &mut Option<Duration>,
    ) -> Result<Vec<IdRun>, IdError> {
        let mut runs: Vec<IdRun> = Vec::new();
        let mut left = count;
        let attempt = || {
            while left > 0 {
                let run = as_run(&self.core.take(&self.key, left.into())?);
                left -= run.count;
                match runs.last_mut() {
                    Some(last) if last.continues_with(&run) => last.count += run.count,
                    _ => runs.push(run),
                }
            }
            Ok(())
        };
        let filled = self.core.await_for(&self.key.notify, deadline, attempt).await;
        if let Err(error) = filled {
            self.key.lost((count - left).into());
            return Err(error);
        }
        // A task that went on in another thread has runs of several stripes in relaxed mode.
        runs.sort_unstable_by_key(|run| run.first);
        Ok(runs)
    }
}

impl super::core::Core {
    /// [`wait_for`](Self::wait_for) for tasks.
    async fn await_for<T>(
        self: &std::sync::Arc<Self>,
        notify: &Notify,
        deadline: &mut Option<Duration>,
        mut attempt: impl FnMut() -> Result<T, IdError>,
    ) -> Result<T, IdError> {
        loop {
            let seen = notify.changes();
            let error = match attempt() {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let Some(mut left) = self.time_left(&error, deadline) else { return Err(error) };
            if let Some(pause) = self.maintain() {
                left = left.min(pause); // nobody else does what is due then
            }
            notify.changed(seen, left).await;
        }
    }
}

impl Notify {
    /// Ready when the count is another one than `seen`, or after `limit`.
    async fn changed(&self, seen: u64, limit: Duration) {
        let mut delay = Delay::new(limit);
        let mut waiter =
            Waiter { notify: self, number: NEXT_WAITER.fetch_add(1, Ordering::Relaxed) };
        poll_fn(|cx: &mut Context<'_>| {
            if waiter.register(seen, cx.waker()) {
                Pin::new(&mut delay).poll(cx)
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }
}

static NEXT_WAITER: AtomicU64 = AtomicU64::new(0);

/// A task's place among those who wait; given back when it is dropped.
struct Waiter<'a> {
    notify: &'a Notify,
    number: u64,
}

impl Waiter<'_> {
    /// Has the task woken when the count is another one than `seen`; `false` if it already is.
    fn register(&mut self, seen: u64, waker: &Waker) -> bool {
        let mut tasks = self.notify.tasks.lock();
        let waits = self.notify.changes() == seen;
        if waits {
            tasks.insert(self.number, waker.clone());
        }
        waits
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.notify.tasks.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn a_task_that_gives_up_leaves_no_waker_behind() {
        let notify = Notify::default();
        let mut context = Context::from_waker(Waker::noop());
        {
            let mut first = pin!(notify.changed(0, Duration::MAX));
            let mut second = pin!(notify.changed(0, Duration::from_secs(300)));
            for _ in 0..3 {
                assert!(first.as_mut().poll(&mut context).is_pending());
                assert!(second.as_mut().poll(&mut context).is_pending());
            }
            assert_eq!(notify.tasks.lock().len(), 2);
        }
        assert_eq!(notify.tasks.lock().len(), 0);
    }

    #[test]
    fn a_ring_between_the_look_and_the_wait_is_not_missed() {
        let notify = Notify::default();
        let mut context = Context::from_waker(Waker::noop());
        let seen = notify.changes();
        let mut late = pin!(notify.changed(seen, Duration::from_secs(300)));
        notify.notify();
        assert!(late.as_mut().poll(&mut context).is_ready());
        notify.wait(seen, Duration::from_secs(300));
    }
}
