//! The embedded segment service.

use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, check_tag};

use super::buffer::{Health, SHUT_DOWN};
use super::builder::SegmentBuilder;
use super::core::{Core, READ_AGAIN};
use super::handle::Segment;
use super::names::Names;
use super::status::SegmentStatus;
use super::store::create;
use super::store::{NewSegmentTag, SegmentStore, SegmentTag};
use crate::Created;
use vesta_service::BuildError;
use vesta_service::inside::ask_store;
use vesta_service::lease::StoreError;

/// Issues the numbers of segment tags: increasing, with few gaps, fetched from a database ahead of
/// need. One per process is enough; share it behind an [`Arc`].
///
/// ```
/// use std::sync::Arc;
/// use vesta_service::ErrorKind;
/// use vesta_numbers::segment::{NewSegmentTag, SegmentService};
/// use vesta_numbers::testing::MemorySegmentStore;
///
/// let store = Arc::new(MemorySegmentStore::new()); // or a database of vesta-store
/// let ids = SegmentService::builder(store).build()?;
/// ids.create(&NewSegmentTag::new("orders", 1000)?)?;
///
/// let orders = ids.segment("orders")?; // looked up once: keep it
/// assert_eq!(orders.next()?, 1);
/// let run = orders.next_run(50)?;
/// assert_eq!((run.first, run.count), (2, 50));
/// assert_eq!(ids.segment("users").unwrap_err().kind(), ErrorKind::NotFound);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The guarantee
/// No number of a tag is issued twice, by this process or by any other on the same table. A number is issued
/// only after the database has counted it, and only if it is above all that this process had before. Within a
/// process the numbers of a tag increase: a call that starts after another has returned gets a larger number.
/// Each process has its own ranges. [`close`](Self::close) gives fetched but unissued numbers back to the
/// database, unless another process has taken a range since. A killed process leaves a gap: at most twice the
/// numbers used in the 10 s before the fetch, and two steps of the table.
///
/// # The path of a number
/// Taking a number of a [`Segment`] is one compare-and-swap: no lock, no allocation, no clock. Threads of the service
/// fetch the next range when a tenth of the present one is used, or earlier if the rest would not last for a few
/// fetches. Each request brings what the callers need for a second at their pace, in whole **steps** of the table. The
/// use in the last 10 s and [`step_cap`](SegmentBuilder::step_cap) bound its size. A burst that is faster than the
/// database waits for up to [`max_wait`](SegmentBuilder::max_wait); it does not fail.
///
/// # Failures
/// A failed fetch is retried after a second at the latest. Calls are served from the available
/// numbers, then wait, then fail with [`IdError::Unavailable`], whose source is the database's
/// error. If only the reply was lost, its range is lost with it, and the next fetch gets another
/// one. A database that offers numbers that this process already had (a backup was restored,
/// `max_id` was set back) is refused until an operator has set `max_id` above them.
///
/// Dropping the service closes it, which may take as long as [`close`](Self::close).
#[derive(Debug)]
pub struct SegmentService {
    pub(super) core: Arc<Core>,
    /// The tags that were requested before.
    pub(super) named: Names<Segment>,
}

impl SegmentService {
    /// Builder of a service on this database.
    pub fn builder(store: Arc<dyn SegmentStore>) -> SegmentBuilder {
        SegmentBuilder::new(store)
    }

    /// A tag, for taking numbers from it. A clone of it can be kept without the service. A tag that
    /// was requested before is found without a lock or reading the clock. An unknown tag is looked up in the table,
    /// once a second for all unknown tags together; the call waits for that, for up to
    /// [`max_wait`](SegmentBuilder::max_wait).
    ///
    /// # Errors
    /// - [`IdError::NotFound`]: the tag does not exist; the table was read during this call, or less
    ///   than a second ago for another missing tag.
    /// - [`IdError::NotReady`], [`IdError::Unavailable`]: the table was not read in time, or cannot be.
    /// - [`IdError::Sealed`]: the service was closed.
    /// - [`IdError::Invalid`]: no tag can have this name.
    #[inline]
    pub fn segment(&self, key: &str) -> Result<&Segment, IdError> {
        match self.named.get(key) {
            Some(segment) => Ok(segment),
            None => self.open_segment(key),
        }
    }

    #[cold]
    #[inline(never)]
    fn open_segment(&self, key: &str) -> Result<&Segment, IdError> {
        let since = self.core.now();
        let listed = &self.core.listed;
        self.core.wait(listed).until(|| self.find(key, since))
    }

    /// [`segment`](Self::segment) without waiting: a read of the table within the last second counts.
    ///
    /// # Errors
    /// The same.
    #[inline]
    pub fn try_segment(&self, key: &str) -> Result<&Segment, IdError> {
        match self.named.get(key) {
            Some(segment) => Ok(segment),
            None => self.find(key, self.core.now().saturating_sub(READ_AGAIN)),
        }
    }

    pub(super) fn find(&self, key: &str, since: Duration) -> Result<&Segment, IdError> {
        check_tag(key)?;
        let segment = Segment {
            key: self.core.find(key, since)?,
            core: self.core.clone(),
        };
        Ok(self.named.get_or_add(key, segment))
    }

    /// Status of each tag in the table in this process, by name.
    pub fn status(&self) -> Vec<SegmentStatus> {
        let now = self.core.now();
        let keys = self.core.keys();
        let listed = keys
            .iter()
            .filter(|key| key.state.lock().health != Health::NoTag);
        listed.map(|key| key.status(now)).collect()
    }

    /// The rows of the table, freshly read. Blocks as long as the store does.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        self.core.settings.store.tags()
    }

    /// Adds a tag to the table, and to this service at once, unless one of its name exists. Blocks as long as the
    /// store does.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer: it is then unknown whether the tag was added.
    pub fn create(&self, tag: &NewSegmentTag) -> Result<Created, StoreError> {
        let created = ask_store(|| create(&*self.core.settings.store, tag))?;
        self.core.read_tags()?;
        Ok(created)
    }

    /// Reads the tags now, which otherwise happens every minute. Blocks as long as the store does.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer: the service then continues with the known tags.
    pub fn refresh(&self) -> Result<(), StoreError> {
        self.core.read_tags()
    }

    /// Time since the table was read; `None` if it never was.
    pub fn last_refresh_age(&self) -> Option<Duration> {
        let read_at = self.core.known.lock().read_at?;
        Some(self.core.now().saturating_sub(read_at))
    }

    /// The reason why the service as a whole issues no numbers, if that is so: it was closed, or the
    /// table was never read. Each tag reports its own state.
    pub fn not_ready_because(&self) -> Option<String> {
        let known = self.core.known.lock();
        if known.closed {
            return Some(
                IdError::Sealed {
                    reason: SHUT_DOWN.into(),
                }
                .to_string(),
            );
        }
        let failure = known
            .failure
            .as_ref()
            .map_or(String::new(), |error| format!(": {error}"));
        let unread = format!("the segment tags have not been read yet{failure}");
        known.read_at.is_none().then_some(unread)
    }

    /// The reason why the database may forget acknowledged writes, if it may, as seen when the
    /// table was last read. A crash or a fail-over could then hand out numbers again.
    pub fn doubt(&self) -> Option<String> {
        self.core.known.lock().doubt.clone()
    }

    /// Display name of the database, without secrets.
    pub fn describe(&self) -> String {
        self.core.settings.store.describe()
    }

    /// Performs due fetches, if no thread does, as with
    /// [`Drive::ByHand`](vesta_service::options::Drive::ByHand). Returns the time until the next job.
    pub fn maintain(&self) -> Option<Duration> {
        self.core.maintain()
    }

    /// Ends the service: no tag issues any more numbers. Fetched but unissued numbers are given back to the
    /// store if no other process has taken a range since; otherwise they are lost. Nothing is given back to a
    /// store that may [forget](Self::doubt). Waits for the store for up to 2 s. Calling it again does nothing.
    pub fn close(&self) {
        self.core.close();
    }
}

impl SegmentBuilder {
    /// Builds the service without waiting for the store: calls wait for its answer, and fail if none
    /// comes. [`SegmentService::refresh`] requests it.
    ///
    /// # Errors
    /// [`BuildError`] if a setting is out of range, no thread can be started, or the local record
    /// of this host is damaged.
    pub fn build(self) -> Result<SegmentService, BuildError> {
        IdError::check("step_cap", self.step_cap, 1, u64::MAX)?;
        if self.refresh_every < Duration::from_millis(1) {
            return Err(IdError::invalid("refresh_every", "it must be 1 ms or more").into());
        }
        Ok(SegmentService {
            named: Names::default(),
            core: Core::start(self)?,
        })
    }
}

impl Drop for SegmentService {
    fn drop(&mut self) {
        self.close();
    }
}
