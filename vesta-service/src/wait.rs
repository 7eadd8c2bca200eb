//! The bounded wait of a call that cannot succeed yet, blocking or asynchronous.

mod back_off;
#[cfg(feature = "async")]
mod future;
mod notify;

use std::time::Duration;

use vesta_intf::{ErrorKind, IdError, NotReady, NotReadyReason};

use crate::clock::AnyClock;

pub use back_off::{LONGEST_PAUSE, back_off, retry_pause};
pub(crate) use back_off::{give_way, pause_at_lock};
pub use notify::Notify;

/// Retry delay while waiting for a store's answer. Short, because a store usually answers in milliseconds.
pub(crate) const RETRY_AFTER: Duration = Duration::from_millis(10);

/// Driver of background work: renewing a lease, fetching segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Drive {
    /// Threads of the service. The default.
    #[default]
    Thread,
    /// Waiting calls, and `maintain`. No thread is started, so with a
    /// [`ManualClock`](crate::testing::ManualClock) every run is the same.
    ByHand,
}

/// The wait of one call, over all its attempts.
#[derive(Debug)]
pub struct Wait<'a, M> {
    /// Tells when it has taken too long.
    pub clock: &'a AnyClock,
    /// Driver of due work.
    pub drive: Drive,
    /// Maximum duration.
    pub max_wait: Duration,
    /// Notified when a retry makes sense. Without it, the delay comes from the errors.
    pub notify: Option<&'a Notify>,
    /// Performs due work, if no thread does. Returns the time until more is due.
    pub maintain: M,
}

impl<M: Fn() -> Option<Duration>> Wait<'_, M> {
    /// Retries until the attempt succeeds, fails for good, or can no longer succeed in time.
    ///
    /// # Errors
    /// That of the last attempt.
    pub fn until<T>(&self, mut attempt: impl FnMut() -> Result<T, IdError>) -> Result<T, IdError> {
        let mut deadline = None;
        loop {
            let seen = self.seen();
            let pause = match attempt() {
                Ok(value) => return Ok(value),
                Err(error) => self.pause(error, &mut deadline)?,
            };
            match self.notify {
                Some(notify) if self.drive == Drive::Thread => notify.wait(seen, pause),
                Some(_) if self.seen() != seen => {} // the change has just happened
                _ => self.clock.park(pause),
            }
        }
    }

    fn seen(&self) -> u64 {
        self.notify.map_or(0, Notify::changes)
    }

    /// The pause after a failed attempt, or its error if no retry can succeed in time.
    fn pause(&self, error: IdError, deadline: &mut Option<Duration>) -> Result<Duration, IdError> {
        let Some(retry_after) = error.retry_after() else {
            return Err(error);
        };
        if error.kind() == ErrorKind::NotHolder {
            return Err(error); // another server can answer now
        }
        let now = self.clock.monotonic();
        let deadline = *deadline.get_or_insert(now.saturating_add(self.max_wait));
        let guessed = matches!(error, IdError::NotReady(_));
        let retry_after = match error {
            // A caller inside the process may retry as often as the keeper may have an answer.
            IdError::NotReady(NotReady {
                why: NotReadyReason::AwaitingLease,
                ..
            }) => retry_after.min(RETRY_AFTER),
            _ => retry_after,
        };
        let pause = match (self.notify, deadline.checked_sub(now)) {
            (None, Some(left)) if retry_after <= left => retry_after,
            // The duration of a store request is a guess; during the store's back-off, nothing can come
            // before its end.
            (Some(_), Some(left)) if !left.is_zero() && (guessed || retry_after <= left) => left,
            _ => return Err(error),
        };
        // If only waiting calls perform due work, the pause must not delay it.
        Ok((self.maintain)().map_or(pause, |due| due.min(pause)))
    }
}
