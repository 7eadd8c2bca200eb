//! Numbers that are over, as those of a day are at its end: what serials need on top of segments.
#![cfg_attr(
    any(loom, shuttle),
    allow(dead_code, reason = "serials are not part of these models")
)]

#[cfg(all(test, loom))]
mod races;

use std::time::Duration;

use super::Segment;
use super::buffer::Health;
use super::key::Key;
use crate::sync::Ordering;

impl Segment {
    /// Gives up all numbers below `cutoff`, for all callers. `false` if there were none.
    pub(crate) fn skip_below(&self, cutoff: u64) -> bool {
        let (skipped, due) = self.key.skip_below(cutoff, self.core.now());
        if due {
            self.core.fetch_soon(&self.key);
        }
        skipped
    }

    /// True if the store has no more numbers above those that were given out.
    pub(crate) fn is_used_up(&self) -> bool {
        self.core.check_process().is_ok() && self.key.state.lock().health == Health::UsedUp
    }

    /// Counts numbers that were taken for a batch which failed.
    pub(crate) fn lose(&self, count: u64) {
        self.key.lost.fetch_add(count, Ordering::Relaxed); // a statistic
    }
}

impl Key {
    /// Gives up all numbers below `cutoff`. The first value says whether anything changed, the second
    /// whether a fetch became due.
    fn skip_below(&self, cutoff: u64, now: Duration) -> (bool, bool) {
        let mut state = self.state.lock();
        // Under the lock nobody brings others: what is left from here on is of the chunk below.
        let stopped = self.cursor.position() < cutoff && self.cursor.stop().is_some();
        let skipped = state.skip_below(cutoff) || stopped;
        (skipped, state.ask(now))
    }
}
