//! Segment numbers: directly from the servers, or prefetched.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use vesta_intf::{IdError, IdRun, MAX_RUN_IDS_PER_CALL};

use super::Client;
use crate::prefetch::{Prefetch, Prefetcher, SegmentStats, Source};
use crate::remote::{Remote, check_count};
use vesta_intf::check_tag;

impl Client {
    /// The next number of a tag, from a server with segment mode. Always calls a server: see
    /// [`segment`](Self::segment) for prefetched numbers.
    ///
    /// The numbers of one server and tag strictly increase; those of several servers never overlap.
    ///
    /// # Errors
    /// * [`IdError::NotFound`]: the servers know no such tag (they learn of new ones within a minute).
    /// * [`IdError::Unsupported`]: the server has no segment mode.
    /// * [`IdError::Invalid`] unless the tag has 1 to 128 characters.
    /// * Otherwise as for [`gen_id`](vesta_intf::AsyncIdService::gen_id).
    pub async fn next_id(&self, tag: &str) -> Result<u64, IdError> {
        self.shared.remote.next_id(tag).await
    }

    /// `count` numbers of a tag as runs with step 1, in ascending order, in one call to a server with
    /// segment mode.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] unless `count` is 1 to 1,048,576; otherwise as for
    /// [`next_id`](Self::next_id).
    pub async fn next_ids(&self, tag: &str, count: u32) -> Result<Vec<IdRun>, IdError> {
        self.shared.remote.next_ids(tag, count).await
    }

    /// A handle that prefetches numbers of a tag: up to 1,000, refilled at 500, without expiry. See
    /// [`segment_with`](Self::segment_with).
    ///
    /// # Errors
    /// The same.
    pub fn segment(&self, tag: &str) -> Result<Segment, IdError> {
        self.segment_with(tag, OF_SEGMENT)
    }

    /// A handle that prefetches numbers of a tag, whether or not the client prefetches IDs. Its buffer
    /// is filled at once, in the background.
    ///
    /// Numbers left in the buffer when the handle is dropped, and those older than `max_age`, are never used and leave
    /// gaps. Keep one handle for each tag.
    ///
    /// # Errors
    /// [`IdError::Invalid`] unless the tag has 1 to 128 characters; [`IdError::OutOfRange`] or `Invalid`
    /// for a [`Prefetch`] with a value out of range. The servers are not asked yet: if they do not know
    /// the tag, the calls of the handle return the error.
    pub fn segment_with(&self, tag: &str, prefetch: Prefetch) -> Result<Segment, IdError> {
        check_tag(tag)?;
        prefetch.check()?;
        let tag: Arc<str> = tag.into();
        let remote = Arc::clone(&self.shared.remote);
        let source = Source::Tag(Arc::clone(&tag));
        let prefetcher =
            Prefetcher::new(&prefetch, source, Arc::clone(&remote), &self.shared.runtime);
        Ok(Segment {
            shared: Arc::new(Shared {
                tag,
                prefetcher,
                remote,
            }),
        })
    }
}

/// Defaults of a segment handle: numbers have few gaps and do not age, so a small buffer keeps gaps small,
/// and nothing expires.
const OF_SEGMENT: Prefetch = Prefetch {
    capacity: 1000,
    low_water: 500,
    max_age: Duration::MAX,
};

/// Handle of one segment tag that prefetches its numbers, created by [`Client::segment`].
///
/// A clone is cheap and shares everything. Prefetching ends when the last one is dropped. The handle outlives the
/// `Client`, and works for as long as the runtime in which the client was built.
///
/// **The numbers of one handle strictly increase for as long as one server serves it**: a call that
/// starts after another has returned gets larger numbers. With several servers the numbers are
/// unique but not ascending, as each server has its own ranges. The same holds for two handles of
/// one tag.
///
/// While every server is down, callers are served from the buffer. The local service
/// ([`fallback`](crate::Builder::fallback)) never takes over: it does not know these numbers.
#[derive(Debug, Clone)]
pub struct Segment {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    tag: Arc<str>,
    prefetcher: Prefetcher,
    remote: Arc<Remote>,
}

impl Segment {
    /// The tag.
    pub fn tag(&self) -> &str {
        &self.shared.tag
    }

    /// The next number: ready at once if the buffer has one, otherwise after a refill.
    ///
    /// # Errors
    /// [`IdError::DeadlineExceeded`], and the errors of a failed refill: those of
    /// [`Client::next_id`].
    #[inline]
    pub async fn next_id(&self) -> Result<u64, IdError> {
        match self.take_one() {
            Some(number) => Ok(number),
            // Boxed, so that the future of the fast path stays small.
            None => Box::pin(self.next_id_slow()).await,
        }
    }

    /// `count` numbers as runs with step 1, in the order of the buffer: ascending, if they come from one server. The
    /// call takes all of them from the buffer, or waits until it holds as many; a failed call takes none.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] unless `count` is 1 to 1,048,576; otherwise as for
    /// [`next_id`](Self::next_id).
    pub async fn next_ids(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        match self.take_batch(count)? {
            Some(runs) => Ok(runs),
            None => self.next_ids_slow(count).await,
        }
    }

    /// The next number without waiting.
    ///
    /// # Errors
    /// Empty buffer: the error of the last refill, until the next one starts; otherwise
    /// [`IdError::NotReady`], as a refill is in progress.
    #[inline]
    pub fn try_next_id(&self) -> Result<u64, IdError> {
        self.take_one()
            .ok_or_else(|| self.shared.prefetcher.why_empty())
    }

    /// Statistics since the creation of the handle. Its calls to the servers are in the client's
    /// [`Stats`](crate::Stats).
    pub fn stats(&self) -> SegmentStats {
        self.shared.prefetcher.stats()
    }

    #[inline]
    pub(crate) fn take_one(&self) -> Option<u64> {
        self.shared.prefetcher.take(1).map(|run| run.first)
    }

    pub(crate) async fn next_id_slow(&self) -> Result<u64, IdError> {
        self.shared.prefetcher.wait_for_one(self.deadline()).await
    }

    pub(crate) fn take_batch(&self, count: u32) -> Result<Option<Vec<IdRun>>, IdError> {
        check_count(count, MAX_RUN_IDS_PER_CALL)?;
        Ok(self.shared.prefetcher.take_batch(count))
    }

    pub(crate) async fn next_ids_slow(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        self.shared
            .prefetcher
            .wait_for_batch(count, self.deadline())
            .await
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.shared.remote.deadline
    }
}
