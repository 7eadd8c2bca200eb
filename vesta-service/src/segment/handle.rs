//! Numbers of one tag.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, IdRun};

use super::core::Core;
use super::key::Key;
use super::status::SegmentStatus;

/// One tag of a [`SegmentService`](super::SegmentService), looked up once: for callers that take many
/// numbers of it. Clones are the same tag.
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
        self.key.name()
    }

    /// A new number. May wait for the database, at most for the service's `max_wait`.
    ///
    /// # Errors
    /// As [`SegmentService::next_id`](super::SegmentService::next_id).
    #[inline]
    pub fn next_id(&self) -> Result<u64, IdError> {
        match self.key.take(1) {
            Some(numbers) => Ok(numbers.start),
            None => self.next(1, &mut None).map(|numbers| numbers.start),
        }
    }

    /// A new number without waiting.
    ///
    /// # Errors
    /// As [`SegmentService::try_next_id`](super::SegmentService::try_next_id).
    #[inline]
    pub fn try_next_id(&self) -> Result<u64, IdError> {
        Ok(self.core.take(&self.key, 1)?.start)
    }

    /// Fills `out` with new numbers, ascending. May wait, at most for the service's `max_wait`.
    ///
    /// # Errors
    /// As [`SegmentService::next_ids`](super::SegmentService::next_ids).
    #[inline]
    pub fn next_ids(&self, out: &mut [u64]) -> Result<(), IdError> {
        let filled = fill_at_once(&self.key, out);
        if filled == out.len() { Ok(()) } else { self.fill(filled, out, &mut None) }
    }

    /// Fills the beginning of `out` with as many new numbers as there are now, ascending, and says how
    /// many.
    ///
    /// # Errors
    /// As [`try_next_id`](Self::try_next_id), if there is none at all.
    pub fn try_next_ids(&self, out: &mut [u64]) -> Result<usize, IdError> {
        let mut filled = 0;
        while filled < out.len() {
            match self.core.take(&self.key, length(&out[filled..])) {
                Ok(numbers) => filled += write(&numbers, &mut out[filled..]),
                Err(error) if filled == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(filled)
    }

    /// 1 to `want` new numbers in one run. May wait for the first of them, at most for the service's
    /// `max_wait`.
    ///
    /// # Errors
    /// As [`next_id`](Self::next_id); [`IdError::OutOfRange`] if `want` is 0.
    pub fn next_run(&self, want: u32) -> Result<IdRun, IdError> {
        self.run(want, &mut None)
    }

    /// 1 to `want` new numbers in one run, without waiting.
    ///
    /// # Errors
    /// As [`try_next_id`](Self::try_next_id); [`IdError::OutOfRange`] if `want` is 0.
    pub fn try_next_run(&self, want: u32) -> Result<IdRun, IdError> {
        IdError::check("count", want.into(), 1, u32::MAX.into())?;
        Ok(as_run(&self.core.take(&self.key, want.into())?))
    }

    /// Status of the tag in this process.
    pub fn status(&self) -> SegmentStatus {
        self.key.status(self.core.now())
    }

    pub(super) fn run(&self, want: u32, deadline: &mut Option<Duration>) -> Result<IdRun, IdError> {
        IdError::check("count", want.into(), 1, u32::MAX.into())?;
        Ok(as_run(&self.next(want.into(), deadline)?))
    }

    /// The next 1 to `want` numbers, as soon as there are some.
    #[cold]
    #[inline(never)]
    pub(super) fn next(
        &self,
        want: u64,
        deadline: &mut Option<Duration>,
    ) -> Result<Range<u64>, IdError> {
        let attempt = || self.core.take(&self.key, want);
        self.core.wait_for(&self.key.notify, deadline, attempt)
    }

    /// Fills what is not yet filled.
    #[cold]
    #[inline(never)]
    pub(super) fn fill(
        &self,
        mut filled: usize,
        out: &mut [u64],
        deadline: &mut Option<Duration>,
    ) -> Result<(), IdError> {
        let attempt = || {
            while filled < out.len() {
                let numbers = self.core.take(&self.key, length(&out[filled..]))?;
                filled += write(&numbers, &mut out[filled..]);
            }
            Ok(())
        };
        let result = self.core.wait_for(&self.key.notify, deadline, attempt);
        result.inspect_err(|_| self.key.lost(length(&out[..filled])))
    }
}

/// Fills the beginning of `out` with what is at hand in one piece.
#[inline]
pub(super) fn fill_at_once(key: &Key, out: &mut [u64]) -> usize {
    if out.is_empty() { 0 } else { key.take(length(out)).map_or(0, |numbers| write(&numbers, out)) }
}

fn length(out: &[u64]) -> u64 {
    u64::try_from(out.len()).unwrap_or(u64::MAX)
}

/// Writes the numbers, which are no more than `out` has room for. Returns how many they are.
#[inline]
fn write(numbers: &Range<u64>, out: &mut [u64]) -> usize {
    let count = usize::try_from(numbers.end - numbers.start).unwrap_or(out.len());
    for (slot, number) in out[..count].iter_mut().zip(numbers.start..) {
        *slot = number;
    }
    count
}

/// At most `u32::MAX` numbers as a run.
pub(super) fn as_run(numbers: &Range<u64>) -> IdRun {
    let count = u32::try_from(numbers.end - numbers.start).unwrap_or(u32::MAX);
    IdRun { first: numbers.start, step: 1, count }
}
