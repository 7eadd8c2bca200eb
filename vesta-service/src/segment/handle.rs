//! Numbers of one tag.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, IdRun};

use super::core::Core;
use super::key::Key;
use super::status::SegmentStatus;
use super::store::LentRange;
use crate::sync::Ordering;
use crate::wait::Wait;

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
    /// - [`IdError::Sealed`]: the service was closed, or the tag has used up its 63-bit numbers.
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
        let step = self.key.stride();
        let count = u32::try_from((numbers.end - numbers.start).div_ceil(step)).unwrap_or(want);
        Ok(IdRun {
            first: numbers.start,
            step,
            count,
        })
    }

    /// `count` new numbers as runs, ascending. May wait, for up to the service's `max_wait`.
    ///
    /// # Errors
    /// As [`next`](Self::next). Numbers that had been taken are then never issued.
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

    #[cold]
    pub(crate) fn wait(&self) -> Wait<'_, impl Fn() -> Option<Duration>> {
        self.core.wait(&self.key.notify)
    }
}

/// A batch in progress. The numbers it has taken are lost if it is dropped before it is complete.
pub(super) struct Batch<'a> {
    segment: &'a Segment,
    runs: Vec<IdRun>,
    wanted: u32,
    left: u32,
}

impl<'a> Batch<'a> {
    pub(super) const fn new(segment: &'a Segment, wanted: u32) -> Self {
        Self {
            segment,
            runs: Vec::new(),
            wanted,
            left: wanted,
        }
    }

    /// Takes numbers, without waiting, until the batch is complete.
    pub(super) fn fill(&mut self) -> Result<(), IdError> {
        while self.left > 0 {
            let run = self.segment.try_next_run(self.left)?;
            self.left -= run.count;
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
            let lost = (self.wanted - self.left).into();
            self.segment.key.lost.fetch_add(lost, Ordering::Relaxed); // a statistic
        }
    }
}
