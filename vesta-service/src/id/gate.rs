//! The short way to a position.

#[cfg(all(test, loom))]
mod races;

use crate::populator::Populator;
use crate::sequence::Claim;
use crate::sync::{AtomicU64, Ordering};

/// While a glance at the clock shows what it showed when somebody took the long way, positions below
/// `end` are as good as that one's. Hardly ever written, so that every core has it at hand.
///
/// Every `end` that was ever stored lies below the durable bound and the cap of a slice that was
/// reached, so that it may be read before or after `shown` changes, and late. `shown` is stored after
/// the long way's claim: whoever sees it finds the line no further back than the clock.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Gate {
    shown: AtomicU64,
    end: AtomicU64,
}

impl Gate {
    /// Nothing lies below its end.
    pub(crate) const fn closed() -> Self {
        Self { shown: AtomicU64::new(0), end: AtomicU64::new(0) }
    }

    /// Takes up to `want` positions without judging the time.
    #[inline(always)] // on the way of every ID: a call would show
    pub(crate) fn pass(&self, populator: &Populator, shown: u64, want: u32) -> Option<Claim> {
        // Acquire, with the releases in `open`.
        if self.shown.load(Ordering::Acquire) != shown {
            return None;
        }
        populator.take(want, self.end.load(Ordering::Acquire))
    }

    /// Lets others pass after a claim that was judged.
    pub(crate) fn open(&self, shown: u64, end: u64) {
        for (word, value) in [(&self.end, end), (&self.shown, shown)] {
            if word.load(Ordering::Relaxed) != value {
                // Release: whoever sees it sees the claim, and the bound that it is below.
                word.store(value, Ordering::Release);
            }
        }
    }
}
