//! Serials of one tag.

use std::ops::Range;
use std::sync::Arc;

use vesta_intf::{IdError, IdRun, ParsedSerial, Shuffle};

use super::definition::{Definition, Present};
use crate::segment::Segment;
use vesta_service::inside::AnyClock;

/// A serial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serial {
    /// Formatted by its pattern: `INV-261122-0000427`.
    pub text: String,
    /// The counter within its period, before shuffling.
    pub counter: u64,
}

/// One tag of a [`SerialService`](super::SerialService). Clones are the same tag. It ends with the service.
#[derive(Debug, Clone)]
pub struct SerialTag {
    pub(super) segment: Segment,
    pub(super) definition: Arc<Definition>,
    pub(super) shuffle: Option<Arc<Shuffle>>,
    pub(super) clock: AnyClock,
}

impl SerialTag {
    /// The tag's name.
    pub fn name(&self) -> &str {
        &self.definition.tag
    }

    /// A new serial. May wait for the store, for up to the segments' `max_wait`.
    ///
    /// # Errors
    /// - [`IdError::NotReady`]: no serial was available in time.
    /// - [`IdError::Unavailable`]: the store fails, was rolled back, or has a clock far behind this host's
    ///   at the beginning of a period; or the counter has used up its digits, until the next period.
    /// - [`IdError::OutOfRange`] for `year`: the pattern cannot express it.
    /// - [`IdError::NotFound`]: the tag was removed from the store.
    /// - [`IdError::Sealed`]: the service was closed.
    pub fn next(&self) -> Result<Serial, IdError> {
        match self.try_next() {
            Err(error) if error.retry_after().is_some() => {
                self.segment.wait().until(|| self.try_next())
            }
            done => done,
        }
    }

    /// A new serial without waiting.
    ///
    /// # Errors
    /// [`IdError::NotReady`], with the delay after which to retry, if none is available. Otherwise
    /// as [`next`](Self::next).
    pub fn try_next(&self) -> Result<Serial, IdError> {
        let (now, run) = self.take(1)?;
        self.serial(run.first, &now)
    }

    /// `count` new serials, in the order of their counters. May wait, for up to `max_wait`. A batch that
    /// spans midnight may have serials of two days.
    ///
    /// # Errors
    /// As [`next`](Self::next). Counters that had been taken are then given back, unless another call has taken
    /// later ones.
    pub fn next_many(&self, count: u32) -> Result<Vec<Serial>, IdError> {
        let mut batch = Batch::new(self, count);
        self.segment.wait().until(|| batch.fill())?;
        Ok(batch.finish())
    }

    /// Parses a serial of this tag, with its counter before shuffling.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `serial`, with the position of the mismatch, or if its check symbol is wrong.
    pub fn parse(&self, serial: &str) -> Result<ParsedSerial, IdError> {
        let mut parsed = self.definition.pattern.parse(serial)?;
        if let Some(shuffle) = &self.shuffle {
            parsed.counter = shuffle.restore(parsed.counter);
        }
        Ok(parsed)
    }

    /// The next 1 to `want` positions, all of one period, and the clock reading: the period is the
    /// present one or, if the clock is behind, a later one.
    #[inline]
    fn take(&self, want: u32) -> Result<(Present, IdRun), IdError> {
        let now = self.definition.present(self.clock.wall());
        let start = self.definition.start(&now);
        loop {
            match self.segment.try_next_run(want) {
                Ok(run) if run.first >= start => return Ok((now, run)),
                // The period has ended: the rest of its numbers is given up too.
                Ok(_) => {
                    self.segment.skip_below(start);
                }
                Err(_) if self.segment.is_used_up() && self.segment.skip_below(start) => {}
                Err(error) => return Err(self.explain(error)),
            }
        }
    }

    /// The serial of a position.
    #[inline]
    fn serial(&self, position: u64, now: &Present) -> Result<Serial, IdError> {
        let (n, date) = self.definition.split(position, now);
        let counter = self
            .shuffle
            .as_ref()
            .map_or(n, |shuffle| shuffle.shuffle(n));
        Ok(Serial {
            text: self.definition.pattern.format(&date, counter)?,
            counter: n,
        })
    }

    #[cold]
    fn explain(&self, error: IdError) -> IdError {
        if !self.segment.is_used_up() {
            return error;
        }
        let Definition { tag, pattern, .. } = &*self.definition;
        let last = pattern.end_of_counters() - 1;
        let reason = |until| {
            let what = format!("its counter reached {last}, the maximum of {pattern}");
            format!("tag `{tag}` has no more serials{until}: {what}").into()
        };
        match self.definition.reset() {
            super::Reset::Never => IdError::UsedUp {
                reason: reason(String::new()),
            },
            reset => IdError::Unavailable {
                reason: reason(format!(" until the next {reset}")),
                retry_after: None,
                source: None,
            },
        }
    }
}

#[cfg(feature = "async")]
impl SerialTag {
    /// [`next`](Self::next) without blocking the thread. Dropped before it is ready, it takes no counter.
    ///
    /// # Errors
    /// The same.
    pub async fn next_async(&self) -> Result<Serial, IdError> {
        self.segment.wait().until_async(|| self.try_next()).await
    }

    /// [`next_many`](Self::next_many) without blocking the thread. Dropped before it is ready, the counters
    /// it has taken are never issued.
    ///
    /// # Errors
    /// The same.
    pub async fn next_many_async(&self, count: u32) -> Result<Vec<Serial>, IdError> {
        let mut batch = Batch::new(self, count);
        self.segment.wait().until_async(|| batch.fill()).await?;
        Ok(batch.finish())
    }
}

/// A batch in progress. If it is dropped before it is complete, it gives back the counters after which no other call has
/// taken any.
struct Batch<'a> {
    tag: &'a SerialTag,
    serials: Vec<Serial>,
    /// The positions that were taken last, without a gap.
    last: Range<u64>,
    wanted: usize,
}

impl<'a> Batch<'a> {
    fn new(tag: &'a SerialTag, count: u32) -> Self {
        Self {
            tag,
            serials: Vec::new(),
            last: 0..0,
            wanted: usize::try_from(count).unwrap_or(usize::MAX),
        }
    }

    /// Takes serials, without waiting, until the batch is complete.
    fn fill(&mut self) -> Result<(), IdError> {
        while let left @ 1.. = self.wanted - self.serials.len() {
            let (now, run) = self.tag.take(u32::try_from(left).unwrap_or(u32::MAX))?;
            let start = match self.last.end == run.first {
                true => self.last.start,
                false => run.first,
            };
            self.last = start..run.first + run.step * u64::from(run.count);
            for position in run.iter() {
                self.serials.push(self.tag.serial(position, &now)?);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Vec<Serial> {
        self.wanted = 0;
        std::mem::take(&mut self.serials)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.serials.len() < self.wanted {
            let taken = self.serials.len() as u64;
            self.tag.segment.give_up(taken, &self.last);
        }
    }
}
