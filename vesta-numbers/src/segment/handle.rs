//! Numbers of one tag.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, IdRun};

use super::core::Core;
use super::key::Key;
use super::status::SegmentStatus;
use super::store::LentRange;
use vesta_service::inside::Wait;
use vesta_service::inside::sync::Ordering;

/// One tag of a [`SegmentService`](super::SegmentService). Clones are the same tag.
///
/// It ends with the service. If the tag is removed from the table, calls fail with
/// [`IdError::NotFound`] until it is back.
#[derive(Debug, Clone)]
pub struct Segment {
    pub(super) core: Arc<Core>,
    pub(super) key: Arc<Key>,
}

impl Segment {
    /// The tag's name.
    pub fn key(&self) -> &str {
        &self.key.name
    }

    /// A new number. May wait for the database, for up to the service's `max_wait`.
    ///
    /// # Errors
    /// - [`IdError::NotFound`]: the tag was removed from the table.
    /// - [`IdError::NotReady`]: no number came within `max_wait`.
    /// - [`IdError::Unavailable`]: the database fails, or was rolled back behind issued numbers.
    /// - [`IdError::UsedUp`]: the tag has used up its last number, or its 63-bit numbers.
    /// - [`IdError::Sealed`]: the service was closed.
    #[inline]
    pub fn next(&self) -> Result<u64, IdError> {
        match self.key.take(1) {
            Some(numbers) => Ok(numbers.start),
            None => self.wait().until(|| self.try_next()),
        }
    }

    /// A new number without waiting.
    ///
    /// # Errors
    /// [`IdError::NotReady`], with the delay after which to retry, if none is available. Otherwise
    /// as [`next`](Self::next).
    #[inline]
    pub fn try_next(&self) -> Result<u64, IdError> {
        Ok(self.take(1)?.start)
    }

    /// 1 to `want` new numbers in one run. May wait for the first of them, for up to the service's `max_wait`.
    ///
    /// # Errors
    /// As [`next`](Self::next); [`IdError::OutOfRange`] if `want` is 0.
    pub fn next_run(&self, want: u32) -> Result<IdRun, IdError> {
        self.wait().until(|| self.try_next_run(want))
    }

    /// 1 to `want` new numbers in one run, without waiting.
    ///
    /// # Errors
    /// As [`try_next`](Self::try_next); [`IdError::OutOfRange`] if `want` is 0.
    pub fn try_next_run(&self, want: u32) -> Result<IdRun, IdError> {
        IdError::check("count", want.into(), 1, u32::MAX.into())?;
        let numbers = self.take(want.into())?;
        Ok(self.run_of(&numbers, want))
    }

    /// At most `want` numbers as a run.
    fn run_of(&self, numbers: &Range<u64>, want: u32) -> IdRun {
        let step = self.key.stride();
        IdRun {
            first: numbers.start,
            step,
            count: u32::try_from((numbers.end - numbers.start).div_ceil(step)).unwrap_or(want),
        }
    }

    /// `count` new numbers as runs, ascending. May wait, for up to the service's `max_wait`.
    ///
    /// # Errors
    /// As [`next`](Self::next). Numbers that had been taken are then given back, unless another call has taken
    /// later ones.
    pub fn next_runs(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        let mut batch = Batch::new(self, count);
        self.wait().until(|| batch.fill())?;
        Ok(batch.finish())
    }

    /// Takes the next range of the tag, one step of the table, for another system to issue. Blocks as long as
    /// the store does. [`next`](Self::next) and the other calls issue numbers of other ranges.
    ///
    /// # Errors
    /// As [`next`](Self::next), but it waits for nothing except the store.
    pub fn lend(&self) -> Result<LentRange, IdError> {
        self.core.check_process()?;
        let (step, above) = self.key.state.lock().before_lending()?;
        let reply = self.core.ask(&self.key, step);
        let lent = self.key.state.lock().on_lent(above, reply);
        self.core.remember_soon();
        lent
    }

    /// Status of the tag in this process.
    pub fn status(&self) -> SegmentStatus {
        self.key.status(self.core.now())
    }

    /// The next 1 to `want` numbers, without waiting.
    #[inline]
    fn take(&self, want: u64) -> Result<Range<u64>, IdError> {
        match self.key.take(want) {
            Some(numbers) => Ok(numbers),
            None => self.core.take_slowly(&self.key, want),
        }
    }

    /// Gives back the numbers that a batch took last, unless later ones were taken; the others of the `taken` count
    /// as lost.
    pub(crate) fn give_up(&self, taken: u64, last: &Range<u64>) {
        // In the child of a fork a thread of the parent may hold the lock.
        if taken == 0 || self.core.check_process().is_err() {
            return;
        }
        let back = match self.key.give_back(last) {
            true => (last.end - last.start).div_ceil(self.key.stride()),
            false => 0,
        };
        let lost = taken.saturating_sub(back);
        self.key.lost.fetch_add(lost, Ordering::Relaxed); // a statistic
    }

    #[cold]
    pub(crate) fn wait(&self) -> Wait<'_, impl Fn() -> Option<Duration>> {
        self.core.wait(&self.key.notify)
    }
}

/// A batch in progress. If it is dropped before it is complete, it gives back the numbers after which no other call has
/// taken any; the others are lost.
pub(super) struct Batch<'a> {
    segment: &'a Segment,
    runs: Vec<IdRun>,
    /// The numbers that were taken last, without a gap.
    last: Range<u64>,
    wanted: u32,
    left: u32,
}

impl<'a> Batch<'a> {
    pub(super) const fn new(segment: &'a Segment, wanted: u32) -> Self {
        Self {
            segment,
            runs: Vec::new(),
            last: 0..0,
            wanted,
            left: wanted,
        }
    }

    /// Takes numbers, without waiting, until the batch is complete.
    pub(super) fn fill(&mut self) -> Result<(), IdError> {
        while self.left > 0 {
            let numbers = self.segment.take(self.left.into())?;
            let run = self.segment.run_of(&numbers, self.left);
            self.left -= run.count;
            self.last = match self.last.end == numbers.start {
                true => self.last.start..numbers.end,
                false => numbers,
            };
            run.append_to(&mut self.runs);
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Vec<IdRun> {
        std::mem::take(&mut self.runs)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.left > 0 {
            let taken = (self.wanted - self.left).into();
            self.segment.give_up(taken, &self.last);
        }
    }
}
