//! Expired numbers, such as those of a day that has ended: serials need them in addition to segments.
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

impl Segment {
    /// Gives up all numbers below `cutoff`, for all callers. Returns `false` if there were none.
    pub(crate) fn skip_below(&self, cutoff: u64) -> bool {
        let (skipped, due) = self.key.skip_below(cutoff, self.core.now());
        if due {
            self.core.fetch_soon(&self.key);
        }
        skipped
    }

    /// True if the store has no more numbers above those already issued.
    pub(crate) fn is_used_up(&self) -> bool {
        self.core.check_process().is_ok() && self.key.state.lock().health == Health::UsedUp
    }
}

impl Key {
    /// Gives up all numbers below `cutoff`. The first result is true if anything changed, the second
    /// if a fetch became due.
    fn skip_below(&self, cutoff: u64, now: Duration) -> (bool, bool) {
        let mut state = self.state.lock();
        // Under the lock no other chunk is opened: the rest from here on belongs to the chunk below.
        let stopped = self.cursor.position() < cutoff && self.cursor.stop().is_some();
        let skipped = state.skip_below(cutoff) || stopped;
        (skipped, state.ask(now))
    }
}
