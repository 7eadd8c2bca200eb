//! The embedded segment service.

use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, IdRun};

use super::builder::SegmentBuilder;
use super::core::Core;
use super::handle::{Segment, fill_at_once};
use super::key::closed;
use super::status::SegmentStatus;
use super::store::{NewSegmentTag, SegmentStore, SegmentTag};
use crate::StoreError;

/// Gives out the numbers of segment tags: dense, growing, fetched from a database ahead of need. One
/// per process is enough; share it behind an [`Arc`].
///
/// ```
/// use std::sync::Arc;
/// use vesta_service::{ErrorKind, MemorySegmentStore, NewSegmentTag, SegmentService};
///
/// let store = Arc::new(MemorySegmentStore::new()); // or a database of vesta-store
/// let ids = SegmentService::builder(store).build()?;
/// ids.create(&NewSegmentTag::new("orders", 1000)?)?;
///
/// assert_eq!(ids.next_id("orders")?, 1);
/// let mut batch = [0; 100];
/// ids.next_ids("orders", &mut batch)?;
/// assert_eq!((batch[0], batch[99]), (2, 101));
///
/// let orders = ids.segment("orders")?; // looked up once: for many numbers
/// assert_eq!(orders.next_id()?, 102);
/// assert_eq!(ids.next_id("users").unwrap_err().kind(), ErrorKind::NotFound);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The promise
/// No number of a tag is given out twice, by this process or by any other over the same table: only
/// what the database has counted away is given out, and nothing below what this process had before.
/// Within a process the numbers of a tag increase (see [`SegmentMode`](crate::SegmentMode)); several
/// processes have ranges of their own. What was fetched and not given out when a process ends is
/// lost: a gap, of the last range or two.
///
/// # The path of a number
/// Looking up a tag that this thread used last, and taking a number of it, is one compare-and-swap:
/// no lock, no allocation, no clock. Threads of the service fetch the next range when a tenth of the
/// present one is used, or earlier if what is left would not last for a few fetches. Each request
/// brings what the pace of the callers needs for a second: one **step** of the table, which doubles
/// while a range lasts less than 15 minutes and is halved when it lasts more than 30 (up to
/// [`step_cap`](SegmentBuilder::step_cap)), or up to 256 steps at once. A burst that is quicker than
/// the database waits, up to [`max_wait`](SegmentBuilder::max_wait); it does not fail.
///
/// # What can go wrong
/// A fetch that fails is repeated every second at the latest. Calls are served from what is at hand,
/// then wait, then fail with [`IdError::Unavailable`], whose source is what the database said. If
/// only the answer was lost, a range is lost with it and the next one is another. A database that
/// offers what this process already had (a backup was restored, somebody set `max_id` back) is
/// refused until somebody has set `max_id` above it.
///
/// Dropping the service closes it.
#[derive(Debug)]
pub struct SegmentService {
    pub(super) core: Arc<Core>,
}

impl SegmentService {
    /// Builder of a service over this database.
    pub fn builder(store: Arc<dyn SegmentStore>) -> SegmentBuilder {
        SegmentBuilder::new(store)
    }

    /// A tag for repeated use. May wait until the table was read for the first time.
    ///
    /// # Errors
    /// [`IdError::NotFound`] if there is no such tag; otherwise as [`next_id`](Self::next_id).
    pub fn segment(&self, key: &str) -> Result<Segment, IdError> {
        self.core.segment(key, &mut None)
    }

    /// A new number of a tag. May wait for the database, at most for `max_wait`.
    ///
    /// # Errors
    /// - [`IdError::NotFound`]: there is no such tag. Added to the table by others, it is known after
    ///   at most one refresh.
    /// - [`IdError::NotReady`]: no number came within `max_wait`.
    /// - [`IdError::Unavailable`]: the database fails, or went back behind numbers that were given out.
    /// - [`IdError::Sealed`]: the service was closed, or the tag has no more numbers of 63 bits.
    #[inline]
    pub fn next_id(&self, key: &str) -> Result<u64, IdError> {
        match self.core.registry.with(key, |key| key.take(1)) {
            Some(Some(numbers)) => Ok(numbers.start),
            _ => self.next_id_slowly(key),
        }
    }

    #[cold]
    #[inline(never)]
    fn next_id_slowly(&self, key: &str) -> Result<u64, IdError> {
        let mut deadline = None;
        let segment = self.core.segment(key, &mut deadline)?;
        Ok(segment.next(1, &mut deadline)?.start)
    }

    /// A new number of a tag without waiting.
    ///
    /// # Errors
    /// [`IdError::NotReady`] if there is none now: it says when. Otherwise as [`next_id`](Self::next_id).
    #[inline]
    pub fn try_next_id(&self, key: &str) -> Result<u64, IdError> {
        match self.core.registry.with(key, |key| key.take(1)) {
            Some(Some(numbers)) => Ok(numbers.start),
            _ => self.try_segment(key)?.try_next_id(),
        }
    }

    /// Fills `out` with new numbers of a tag, ascending. May wait, at most for `max_wait`.
    ///
    /// # Errors
    /// As [`next_id`](Self::next_id). `out` then holds nothing of value; numbers that had been taken
    /// for it are never given out.
    pub fn next_ids(&self, key: &str, out: &mut [u64]) -> Result<(), IdError> {
        match self.core.registry.with(key, |key| fill_at_once(key, out)) {
            Some(filled) if filled == out.len() => Ok(()),
            filled => self.fill(key, filled.unwrap_or(0), out),
        }
    }

    #[cold]
    #[inline(never)]
    fn fill(&self, key: &str, filled: usize, out: &mut [u64]) -> Result<(), IdError> {
        let mut deadline = None;
        let segment = self.core.segment(key, &mut deadline)?;
        segment.fill(filled, out, &mut deadline)
    }

    /// Fills the beginning of `out` with as many new numbers of a tag as there are now, ascending, and
    /// says how many.
    ///
    /// # Errors
    /// As [`try_next_id`](Self::try_next_id), if there is none at all.
    pub fn try_next_ids(&self, key: &str, out: &mut [u64]) -> Result<usize, IdError> {
        self.try_segment(key)?.try_next_ids(out)
    }

    /// 1 to `want` new numbers of a tag in one run. May wait for the first of them, at most for
    /// `max_wait`.
    ///
    /// # Errors
    /// As [`next_id`](Self::next_id); [`IdError::OutOfRange`] if `want` is 0.
    pub fn next_run(&self, key: &str, want: u32) -> Result<IdRun, IdError> {
        let mut deadline = None;
        self.core.segment(key, &mut deadline)?.run(want, &mut deadline)
    }

    /// 1 to `want` new numbers of a tag in one run, without waiting.
    ///
    /// # Errors
    /// As [`try_next_id`](Self::try_next_id); [`IdError::OutOfRange`] if `want` is 0.
    pub fn try_next_run(&self, key: &str, want: u32) -> Result<IdRun, IdError> {
        self.try_segment(key)?.try_next_run(want)
    }

    fn try_segment(&self, key: &str) -> Result<Segment, IdError> {
        Ok(Segment { key: self.core.find(key)?, core: self.core.clone() })
    }

    /// Status of each tag in the table in this process, by name.
    pub fn status(&self) -> Vec<SegmentStatus> {
        let now = self.core.now();
        let keys = self.core.registry.keys();
        let listed = keys.iter().filter(|key| key.exists());
        let mut status: Vec<_> = listed.map(|key| key.status(now)).collect();
        status.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        status
    }

    /// The rows of the table, read now. Blocks as long as the store does.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        self.core.store.tags()
    }

    /// Adds a tag to the table, and to this service at once. `false` if there is one of this name:
    /// then that one stays as it is. Blocks as long as the store does.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer: it is then not known whether it was added.
    pub fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        self.core.create(tag)
    }

    /// Reads now which tags there are, as is otherwise done every minute. Blocks as long as the store
    /// does.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer: what was known goes on being used.
    pub fn refresh(&self) -> Result<(), StoreError> {
        self.core.read_tags()
    }

    /// Time since the table was read; `None` if it never was.
    pub fn last_refresh_age(&self) -> Option<Duration> {
        let read_at = self.core.registry.last_read().0?;
        Some(self.core.now().saturating_sub(read_at))
    }

    /// Why the service as a whole gives out no numbers, if that is so: it was closed, or the table was
    /// never read. A tag says for itself how it is doing.
    pub fn not_ready_because(&self) -> Option<String> {
        if self.core.registry.is_closed() {
            return Some(closed().to_string());
        }
        match self.core.registry.last_read() {
            (Some(_), _) => None,
            (None, failure) => {
                let failure = failure.map_or(String::new(), |failure| format!(": {failure}"));
                Some(format!("the segment tags have not been read yet{failure}"))
            }
        }
    }

    /// Display name of the database, without secrets.
    pub fn describe(&self) -> String {
        self.core.store.describe()
    }

    /// Fetches what is due, if no thread does it, which is so with
    /// [`Drive::ByHand`](crate::Drive::ByHand). Returns how
    /// long there is nothing more to do.
    pub fn maintain(&self) -> Option<Duration> {
        self.core.maintain()
    }

    /// Ends the service: no more numbers, of any tag. What was fetched and not given out is lost.
    /// Does not wait for a store that is being asked. Calling it again does nothing.
    pub fn close(&self) {
        self.core.close();
    }
}

impl Drop for SegmentService {
    fn drop(&mut self) {
        self.close();
    }
}
