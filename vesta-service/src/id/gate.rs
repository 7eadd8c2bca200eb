//! Gate of the fast path.

#[cfg(all(test, loom))]
mod races;

use crate::populator::Populator;
use crate::sequence::Claim;
use crate::sync::{AtomicU64, Ordering};

/// While the cheap clock reading equals that of the last slow-path claim, every position below `end` is
/// valid; `batch_end` is the same for claims of more than one. Rarely written, so every core keeps it cached.
///
/// Every end ever stored is within the durable bound and within the cap of a slice that had been
/// reached, so it may be read before or after `shown` changes, or stale. `shown` is stored after the
/// slow path's claim: a caller that sees it finds the position no further back than the clock.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Gate {
    shown: AtomicU64,
    end: AtomicU64,
    batch_end: AtomicU64,
}

impl Gate {
    /// A gate that lets nothing pass: no position is below its end.
    pub(crate) fn closed() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            shown: zero(),
            end: zero(),
            batch_end: zero(),
        }
    }

    /// Exclusive upper bound for a claim of one, while the clock reading is unchanged.
    #[inline(always)] // on the path of every ID: a call would be measurable
    pub(crate) fn end(&self, shown: u64) -> Option<u64> {
        // Acquire: pairs with the releases in `open`.
        let open = self.shown.load(Ordering::Acquire) == shown;
        open.then(|| self.end.load(Ordering::Acquire))
    }

    /// Fast path: takes up to `want` positions without re-evaluating the clock.
    #[inline]
    pub(crate) fn pass(&self, populator: &Populator, shown: u64, want: u32) -> Option<Claim> {
        let end = self.end(shown)?;
        let end = match want {
            1 => end,
            _ => self.batch_end.load(Ordering::Acquire),
        };
        populator.take(want, end)
    }

    /// Opens the fast path after a slow-path claim.
    pub(crate) fn open(&self, shown: u64, end: u64, batch_end: u64) {
        let ends = [(&self.end, end), (&self.batch_end, batch_end)];
        for (word, value) in ends.into_iter().chain([(&self.shown, shown)]) {
            if word.load(Ordering::Relaxed) != value {
                // Release: a reader that sees the value also sees the claim, and the bound above it.
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
