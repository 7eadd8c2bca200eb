//! One slot: a place for one machine ID at a time, and what its callers and its keeper tell each other.

#[cfg(all(test, loom))]
mod races;

use std::sync::Arc;
use std::time::Duration;

use super::held::{HeldLease, HeldLeases};
use super::signals::Signals;
use crate::lease::{Doubt, LONGEST_RETRY_AFTER, RETRY_AFTER};
use crate::sync::Mutex;

/// A place for one machine ID at a time, and what its keeper is told.
#[derive(Debug)]
pub(crate) struct MachineSlot {
    pub(crate) leases: HeldLeases,
    pub(crate) state: Mutex<SlotState>,
    pub(crate) keeper: Arc<Signals>,
}

/// The state of a slot, as its keeper is told and says, and counts of events so far.
#[derive(Debug, Default)]
pub(crate) struct SlotState {
    stop: bool,
    over: bool,
    /// The reason why the last search for a machine ID failed, or the last renewal.
    pub(crate) failure: Option<String>,
    pub(crate) renewals_ok: u64,
    pub(crate) renewals_failed: u64,
    pub(crate) fenced: u64,
    pub(crate) went_back: u64,
    /// Claims of another machine ID, or of the same one anew, while running.
    pub(crate) rehomed: u64,
    /// Why the store may forget, as is written down there.
    pub(crate) doubt: Option<Doubt>,
    /// Monotonic clock of the claim, or of the last acknowledged renewal.
    pub(crate) renewed_at: Duration,
    /// Monotonic clock of the first request without an answer since the last one with one.
    pub(super) away_since: Option<Duration>,
    /// Monotonic clock of the next request to the store; of the one under way, if it has passed.
    pub(super) next_attempt: Duration,
}

impl SlotState {
    /// Returns whether it is the first since the last request with an answer.
    pub(super) fn renewal_failed(&mut self, failure: String, now: Duration) -> bool {
        (self.renewals_failed, self.failure) = (self.renewals_failed + 1, Some(failure));
        self.away_since
            .replace(self.away_since.unwrap_or(now))
            .is_none()
    }

    /// Returns whether it is the first for this reason.
    pub(super) fn search_failed(&mut self, failure: String, now: Duration) -> bool {
        self.away_since.get_or_insert(now);
        let before = self.failure.replace(failure);
        before != self.failure
    }

    /// When to look again for a window: while the store is away not before it is asked again, and the
    /// later, the longer it has been away.
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
        // Under the lock: whoever asks to stop finds this lease in force, or it comes sealed.
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

    /// True if a sealed lease will have a successor: nobody asked to stop, and the keeper has not
    /// given up.
    pub(crate) fn will_follow(&self) -> bool {
        let state = self.state.lock();
        !state.stop && !state.over
    }

    /// Has the keeper look at once whether there is something to do.
    pub(crate) fn wake_keeper(&self) {
        self.keeper.wake();
    }

    /// When a caller who was refused for want of a window should come back.
    pub(crate) fn retry_after(&self, now: Duration) -> Duration {
        self.state.lock().retry_after(now)
    }

    pub(super) fn next_attempt_at(&self, moment: Duration) {
        self.state.lock().next_attempt = moment;
    }

    pub(super) fn stopping(&self) -> bool {
        self.state.lock().stop
    }

    /// Says that the keeper has given up this slot.
    pub(super) fn end(&self) {
        self.state.lock().over = true;
    }
}
