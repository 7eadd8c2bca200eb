//! Requests of a connection. Requests in flight keep its permit; a connection without any is closed, even if
//! the protocol fills the silence with pings.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep_until};

/// Request counter of one connection. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct Requests(Arc<Counts>);

// Relaxed: both numbers are independent. A stale view lets a connection live for one timeout more.
#[derive(Debug, Default)]
struct Counts {
    begun: AtomicU64,
    ended: AtomicU64,
    /// Permits of long answers; made with the first one.
    long: OnceLock<Arc<Semaphore>>,
}

impl Requests {
    /// Starts a request, which ends when the result is dropped.
    pub fn begin(&self) -> InFlight {
        self.0.begun.fetch_add(1, Relaxed);
        InFlight(self.clone())
    }

    /// Waits until no other long answer is on its way over this connection.
    pub async fn long(&self) -> Option<OwnedSemaphorePermit> {
        let permits = self.0.long.get_or_init(|| Arc::new(Semaphore::new(1)));
        Arc::clone(permits).acquire_owned().await.ok()
    }

    /// The number of requests so far, or `None` if one is in flight.
    pub(super) fn quiet_since(&self) -> Option<u64> {
        let (ended, begun) = (self.0.ended.load(Relaxed), self.0.begun.load(Relaxed));
        (ended == begun).then_some(begun)
    }
}

/// A request in flight.
#[derive(Debug)]
pub struct InFlight(Requests);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.0.ended.fetch_add(1, Relaxed);
    }
}

/// Detects a connection without a request in flight for a timeout, after one to two timeouts.
/// Requests pay for no timer; only its expiry checks whether there were any.
pub(super) struct IdleWatch {
    requests: Requests,
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// The number of requests when the timer was set, if none was in flight.
    seen: Option<u64>,
}

impl IdleWatch {
    /// `Duration::MAX` disables the timeout.
    pub(super) fn new(limit: Duration, requests: Requests) -> Self {
        Self {
            requests,
            limit,
            timer: None,
            seen: None,
        }
    }

    pub(super) const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Ready once the connection has been idle for too long.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.limit == Duration::MAX {
            return Poll::Pending;
        }
        loop {
            if let Some(timer) = &mut self.timer {
                ready!(timer.as_mut().poll(cx));
                if self.seen.is_some() && self.seen == self.requests.quiet_since() {
                    return Poll::Ready(());
                }
            }
            self.seen = self.requests.quiet_since();
            let end = Instant::now() + self.limit;
            self.timer
                .get_or_insert_with(|| Box::pin(sleep_until(end)))
                .as_mut()
                .reset(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(300);

    async fn is_over_after(watch: &mut IdleWatch, wait: Duration) -> bool {
        tokio::time::advance(wait).await;
        std::future::poll_fn(|cx| Poll::Ready(watch.poll(cx).is_ready())).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_requests_ends_after_one_to_two_limits() {
        let mut watch = IdleWatch::new(LIMIT, Requests::default());
        assert!(!is_over_after(&mut watch, Duration::ZERO).await);
        assert!(!is_over_after(&mut watch, LIMIT / 2).await);
        drop(watch.requests().begin());
        assert!(
            !is_over_after(&mut watch, LIMIT / 2).await,
            "there was a request"
        );
        assert!(!is_over_after(&mut watch, LIMIT / 2).await);
        assert!(is_over_after(&mut watch, LIMIT / 2).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_flight_keeps_it_open_however_long_it_lasts() {
        let mut watch = IdleWatch::new(LIMIT, Requests::default());
        let stream = watch.requests().begin();
        for _ in 0..9 {
            assert!(!is_over_after(&mut watch, LIMIT).await);
        }
        drop(stream);
        assert!(
            !is_over_after(&mut watch, LIMIT).await,
            "idle for less than the limit"
        );
        assert!(is_over_after(&mut watch, LIMIT).await);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_it_never_ends() {
        let mut watch = IdleWatch::new(Duration::MAX, Requests::default());
        assert!(!is_over_after(&mut watch, LIMIT * 1_000_000).await);
    }
}
