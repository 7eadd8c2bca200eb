//! Machine slot: holds one machine ID at a time, and the state that its callers and its keeper
//! share.

#[cfg(all(test, loom))]
mod races;

use std::sync::Arc;
use std::time::Duration;

use super::held::{HeldLease, HeldLeases};
use super::signals::Signals;
use crate::lease::{Doubt, LONGEST_RETRY_AFTER};
use crate::sync::Mutex;
use crate::wait::RETRY_AFTER;
use vesta_intf::{NotReady, NotReadyReason};

/// Slot for one machine ID at a time, with the state shared with its keeper.
#[derive(Debug)]
pub(crate) struct MachineSlot {
    pub(crate) leases: HeldLeases,
    pub(crate) state: Mutex<SlotState>,
    pub(crate) keeper: Arc<Signals>,
}

/// State of a slot, shared with its keeper, with counts of events so far.
#[derive(Debug, Default)]
pub(crate) struct SlotState {
    stop: bool,
    over: bool,
    /// The process that holds the machine ID, for people, while this one stands by.
    pub(crate) holder: Option<String>,
    /// Reason why the last search for a machine ID, or the last renewal, failed.
    pub(crate) failure: Option<String>,
    pub(crate) renewals_ok: u64,
    pub(crate) renewals_failed: u64,
    pub(crate) fenced: u64,
    pub(crate) went_back: u64,
    /// Claims of another machine ID, or of the same one again, while running.
    pub(crate) rehomed: u64,
    /// Doubt about the store, as the namespace records it.
    pub(crate) doubt: Option<Doubt>,
    /// Time of the claim or of the last acknowledged renewal, on the monotonic clock.
    pub(crate) renewed_at: Duration,
    /// Time of the first unanswered request since the last answered one, on the monotonic clock.
    pub(super) away_since: Option<Duration>,
    /// Time of the next request to the store, on the monotonic clock; if it has passed, of the
    /// request in flight.
    pub(super) next_attempt: Duration,
}

/// Retry delay while another process holds the machine ID: this one looks for a release as often.
const STANDBY_RETRY_AFTER: Duration = Duration::from_millis(100);

impl SlotState {
    /// Records a failed renewal. Returns true if it is the first since the last answered request.
    pub(super) fn renewal_failed(&mut self, failure: String, now: Duration) -> bool {
        (self.renewals_failed, self.failure) = (self.renewals_failed + 1, Some(failure));
        self.away_since
            .replace(self.away_since.unwrap_or(now))
            .is_none()
    }

    /// Records a failed search. Returns true if the reason differs from the previous one.
    pub(super) fn search_failed(&mut self, failure: String, now: Duration) -> bool {
        self.away_since.get_or_insert(now);
        let before = self.failure.replace(failure);
        before != self.failure
    }

    /// "Not ready" for a caller without a lease.
    fn not_ready(&self, now: Duration) -> NotReady {
        let retry_after = self.retry_after(now);
        match self.holder {
            Some(_) => NotReady {
                retry_after: retry_after.max(STANDBY_RETRY_AFTER),
                why: NotReadyReason::NotHolder,
            },
            None => NotReady {
                retry_after,
                why: NotReadyReason::AwaitingLease,
            },
        }
    }

    /// Retry delay for a caller without a window. While the store is unreachable, the delay lasts
    /// at least until the next request, and grows with the outage.
    fn retry_after(&self, now: Duration) -> Duration {
        let Some(since) = self.away_since else {
            return RETRY_AFTER;
        };
        let by_age = (now.saturating_sub(since) / 4).clamp(RETRY_AFTER, LONGEST_RETRY_AFTER);
        by_age.max(self.next_attempt.saturating_sub(now))
    }
}

impl MachineSlot {
    pub(crate) fn new(first: HeldLease, claimed_at: Duration, keeper: Arc<Signals>) -> Self {
        Self {
            leases: HeldLeases::new(first),
            state: Mutex::new(SlotState {
                renewed_at: claimed_at,
                ..SlotState::default()
            }),
            keeper,
        }
    }

    /// Puts a new lease in force. The one before must be sealed.
    pub(super) fn follow(&self, next: HeldLease) {
        // Under the lock: a caller that asks to stop either finds this lease in force, or the lease
        // is sealed before it comes into force.
        let state = self.state.lock();
        if state.stop {
            next.seal("it was shut down");
        }
        self.leases.follow(next);
    }

    /// Asks the keeper to seal, save the bound and release.
    pub(crate) fn request_stop(&self) {
        self.state.lock().stop = true;
        self.keeper.wake();
    }

    /// True if a sealed lease will have a successor: no stop was requested, and the keeper has not
    /// given up.
    pub(crate) fn will_follow(&self) -> bool {
        let state = self.state.lock();
        !state.stop && !state.over
    }

    /// Makes the keeper check at once whether anything is due.
    pub(crate) fn wake_keeper(&self) {
        self.keeper.wake();
    }

    /// "Not ready" for a caller that was refused for lack of a window or a lease.
    pub(crate) fn not_ready(&self, now: Duration) -> NotReady {
        self.state.lock().not_ready(now)
    }

    pub(super) fn next_attempt_at(&self, moment: Duration) {
        self.state.lock().next_attempt = moment;
    }

    pub(super) fn stopping(&self) -> bool {
        self.state.lock().stop
    }

    /// Marks the slot as given up by the keeper.
    pub(super) fn end(&self) {
        self.state.lock().over = true;
    }
}
