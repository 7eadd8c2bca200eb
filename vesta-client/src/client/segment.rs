//! Numbers of segment keys: straight from the servers, or from the memory of a key.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use vesta_intf::{IdError, IdRun, MAX_RUN_IDS_PER_CALL};

use super::Client;
use crate::prefetch::{Kept, Prefetch, Source};
use crate::remote::{Remote, check_count, check_key};

impl Client {
    /// The next number of a key, from a server with segment mode. Always asks a server: see
    /// [`segment`](Self::segment) for numbers from memory.
    ///
    /// The numbers of one server and key strictly increase; those of several servers never overlap.
    ///
    /// # Errors
    /// * [`IdError::NotFound`]: the servers know no such key (they learn of new ones within a minute).
    /// * [`IdError::Unsupported`]: the server has no segment mode.
    /// * [`IdError::Invalid`] unless the key has 1 to 128 bytes.
    /// * Otherwise as for [`gen_id`](vesta_intf::AsyncIdService::gen_id).
    pub async fn next_id(&self, key: &str) -> Result<u64, IdError> {
        self.shared.remote.next_id(key).await
    }

    /// `count` numbers of a key as runs with step 1, in ascending order, in one call to a server with
    /// segment mode.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] unless `count` is 1 to 1,048,576; otherwise as for
    /// [`next_id`](Self::next_id).
    pub async fn next_ids(&self, key: &str, count: u32) -> Result<Vec<IdRun>, IdError> {
        self.shared.remote.next_ids(key, count).await
    }

    /// Numbers of a key from memory, with room for 1,000 that are fetched by 500 and kept for ever:
    /// see [`segment_with`](Self::segment_with).
    ///
    /// # Errors
    /// The same.
    pub fn segment(&self, key: &str) -> Result<Segment, IdError> {
        self.segment_with(key, OF_SEGMENT)
    }

    /// Numbers of a key from memory, whether or not the client prefetches IDs. The memory is filled at
    /// once, in the background.
    ///
    /// What the memory holds when the handle is dropped, and what becomes older than `max_age`, is
    /// never used: it leaves a gap in the numbers. So keep one handle for each key.
    ///
    /// # Errors
    /// [`IdError::Invalid`] unless the key has 1 to 128 bytes; [`IdError::OutOfRange`] or `Invalid`
    /// for a [`Prefetch`] with a wrong number. Whether the servers know the key is only seen when they
    /// are asked: the calls of the handle say so.
    pub fn segment_with(&self, key: &str, prefetch: Prefetch) -> Result<Segment, IdError> {
        check_key(key)?;
        prefetch.check()?;
        let key: Arc<str> = key.into();
        let remote = Arc::clone(&self.shared.remote);
        let source = Source::Key(Arc::clone(&key));
        let memory = Kept::new(&prefetch, source, Arc::clone(&remote), &self.shared.runtime);
        Ok(Segment { shared: Arc::new(Shared { key, memory, remote }) })
    }
}

/// Numbers are dense and do not age: a small stock leaves small gaps, and nothing is dropped.
const OF_SEGMENT: Prefetch = Prefetch { capacity: 1000, low_water: 500, max_age: Duration::MAX };

/// The numbers of one segment key, from memory: made by [`Client::segment`].
///
/// A clone is cheap and shares everything. When the last one is dropped, nothing more is fetched. It
/// needs no `Client` to stay, and works for as long as the runtime in which that was built.
///
/// **The numbers of one handle strictly increase for as long as one server serves it**: whoever asks
/// after another caller got its answer gets larger ones. With several servers they are unique, but
/// do not ascend, as each server has ranges of its own; so it is with two handles of one key.
///
/// While every server is down, callers are served from memory. The local service
/// ([`fallback`](crate::Builder::fallback)) never stands in: it does not know these numbers.
#[derive(Clone)]
pub struct Segment {
    shared: Arc<Shared>,
}

struct Shared {
    key: Arc<str>,
    memory: Kept,
    remote: Arc<Remote>,
}

/// What a [`Segment`] has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentStats {
    /// Numbers handed out from memory.
    pub handed_out: u64,
    /// Numbers in memory now.
    pub left: u64,
    /// Numbers that became too old in memory and were dropped.
    pub stale: u64,
}

impl Segment {
    /// The key.
    pub fn key(&self) -> &str {
        &self.shared.key
    }

    /// The next number: ready at once if there is one in memory, otherwise as soon as a refill
    /// brings it.
    ///
    /// # Errors
    /// [`IdError::DeadlineExceeded`], and what a refill failed with: the errors of
    /// [`Client::next_id`].
    #[inline]
    pub async fn next_id(&self) -> Result<u64, IdError> {
        match self.one_from_memory() {
            Some(number) => Ok(number),
            // In a box, so that the future that is ready at once stays small.
            None => Box::pin(self.next_id_slowly()).await,
        }
    }

    /// `count` numbers as runs with step 1, in the order of the memory: ascending, if they come from
    /// one server. It takes all of them from memory or waits until there are as many; a failed call
    /// takes none.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] unless `count` is 1 to 1,048,576; otherwise as for
    /// [`next_id`](Self::next_id).
    pub async fn next_ids(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        match self.batch_from_memory(count)? {
            Some(runs) => Ok(runs),
            None => self.next_ids_slowly(count).await,
        }
    }

    /// The next number without waiting.
    ///
    /// # Errors
    /// Nothing in memory: what the last refill failed with, until the next one starts; otherwise
    /// [`IdError::NotReady`], as a refill is on its way.
    #[inline]
    pub fn try_next_id(&self) -> Result<u64, IdError> {
        self.one_from_memory().ok_or_else(|| self.shared.memory.why_empty())
    }

    /// What the handle has done so far. Its calls to the servers are in the client's
    /// [`Stats`](crate::Stats).
    pub fn stats(&self) -> SegmentStats {
        let level = self.shared.memory.level();
        SegmentStats { handed_out: level.handed_out, left: level.left, stale: level.stale }
    }

    #[inline]
    pub(crate) fn one_from_memory(&self) -> Option<u64> {
        self.shared.memory.take(1).map(|run| run.first)
    }

    pub(crate) async fn next_id_slowly(&self) -> Result<u64, IdError> {
        self.shared.memory.wait_for_one(self.deadline()).await
    }

    pub(crate) fn batch_from_memory(&self, count: u32) -> Result<Option<Vec<IdRun>>, IdError> {
        check_count(count, MAX_RUN_IDS_PER_CALL)?;
        Ok(self.shared.memory.take_batch(count))
    }

    pub(crate) async fn next_ids_slowly(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        self.shared.memory.wait_for_batch(count, self.deadline()).await
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.shared.remote.deadline
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints: Vec<_> = self.shared.remote.endpoints.names().collect();
        f.debug_struct("Segment")
            .field("key", &self.shared.key)
            .field("endpoints", &endpoints)
            .finish_non_exhaustive()
    }
}
