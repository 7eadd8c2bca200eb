//! The short way to a position.

#[cfg(all(test, loom))]
mod races;

use crate::populator::Populator;
use crate::sequence::Claim;
use crate::sync::{AtomicU64, Ordering};

/// While a glance at the clock shows what it showed when somebody took the long way, positions below
/// `end` are as good as that one's; `batch_end` is the end for claims of more than one. Rarely written, so
/// every core keeps it cached.
///
/// Every end that was ever stored lies below the durable bound and the cap of a slice that was
/// reached, so that it may be read before or after `shown` changes, and late. `shown` is stored after
/// the long way's claim: whoever sees it finds the line no further back than the clock.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Gate {
    shown: AtomicU64,
    end: AtomicU64,
    batch_end: AtomicU64,
}

impl Gate {
    /// Nothing lies below its end.
    pub(crate) fn closed() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            shown: zero(),
            end: zero(),
            batch_end: zero(),
        }
    }

    /// One past the last position for a claim of one, while the glance is still the same.
    #[inline(always)] // on the way of every ID: a call would show
    pub(crate) fn end(&self, shown: u64) -> Option<u64> {
        // Acquire, with the releases in `open`.
        let open = self.shown.load(Ordering::Acquire) == shown;
        open.then(|| self.end.load(Ordering::Acquire))
    }

    /// Takes up to `want` positions without judging the time.
    #[inline]
    pub(crate) fn pass(&self, populator: &Populator, shown: u64, want: u32) -> Option<Claim> {
        let end = self.end(shown)?;
        let end = match want {
            1 => end,
            _ => self.batch_end.load(Ordering::Acquire),
        };
        populator.take(want, end)
    }

    /// Lets others pass after a claim that was judged.
    pub(crate) fn open(&self, shown: u64, end: u64, batch_end: u64) {
        let ends = [(&self.end, end), (&self.batch_end, batch_end)];
        for (word, value) in ends.into_iter().chain([(&self.shown, shown)]) {
            if word.load(Ordering::Relaxed) != value {
                // Release: whoever sees it sees the claim, and the bound that it is below.
                word.store(value, Ordering::Release);
            }
        }
    }

    /// Sends every caller to the slow path until the gate is opened again.
    pub(crate) fn close(&self) {
        self.end.store(0, Ordering::Relaxed);
        self.batch_end.store(0, Ordering::Relaxed);
    }
}
