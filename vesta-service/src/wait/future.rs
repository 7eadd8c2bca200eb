//! Asynchronous waits. They need no runtime: a task is woken by a change, or by a single timer
//! thread. That thread sleeps while no task waits and is accurate to a fraction of a millisecond;
//! the timers of runtimes round up to whole ones and would lose every other tick.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_timer::Delay;
use vesta_intf::IdError;

use super::{Notify, Wait};

impl<M: Fn() -> Option<Duration>> Wait<'_, M> {
    /// [`until`](Self::until) without blocking the thread.
    pub async fn until_async<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, IdError>,
    ) -> Result<T, IdError> {
        let mut deadline = None;
        loop {
            let seen = self.seen();
            let pause = match attempt() {
                Ok(value) => return Ok(value),
                Err(error) => self.pause(error, &mut deadline)?,
            };
            match self.notify {
                Some(notify) => notify.changed(seen, pause).await,
                None => Delay::new(pause).await,
            }
        }
    }
}

impl Notify {
    /// Ready when the count differs from `seen`, or after `limit`.
    async fn changed(&self, seen: u64, limit: Duration) {
        let mut delay = Delay::new(limit);
        let waiter = Waiter {
            notify: self,
            number: NEXT_WAITER.fetch_add(1, Ordering::Relaxed),
        };
        poll_fn(|cx: &mut Context<'_>| {
            let mut tasks = self.tasks.lock();
            if self.changes() != seen {
                return Poll::Ready(());
            }
            tasks.insert(waiter.number, cx.waker().clone());
            drop(tasks);
            Pin::new(&mut delay).poll(cx)
        })
        .await;
    }
}

static NEXT_WAITER: AtomicU64 = AtomicU64::new(0);

/// A task's entry among the waiters; removed on drop.
struct Waiter<'a> {
    notify: &'a Notify,
    number: u64,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.notify.tasks.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_dropped_task_leaves_no_waker_behind() {
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
    fn a_change_between_the_check_and_the_wait_is_not_missed() {
        let notify = Notify::default();
        let mut context = Context::from_waker(Waker::noop());
        let seen = notify.changes();
        let mut late = pin!(notify.changed(seen, Duration::from_secs(300)));
        notify.notify();
        assert!(late.as_mut().poll(&mut context).is_ready());
        notify.wait(seen, Duration::from_secs(300));
    }
}
