//! Segment numbers for code without `async`.

use vesta_intf::{IdError, IdRun};

use super::{Blocking, Client};
use crate::client::Segment as AsyncSegment;
use crate::prefetch::{Prefetch, SegmentStats};

impl Client {
    /// The next number of a tag, from a server with segment mode: see
    /// [`Client::next_id`](crate::Client::next_id).
    ///
    /// # Errors
    /// The same.
    pub fn next_id(&self, tag: &str) -> Result<u64, IdError> {
        let tag = tag.to_owned();
        self.0
            .wait_for(|client| async move { client.next_id(&tag).await })
    }

    /// `count` numbers of a tag as runs with step 1, in ascending order: see
    /// [`Client::next_ids`](crate::Client::next_ids).
    ///
    /// # Errors
    /// The same.
    pub fn next_ids(&self, tag: &str, count: u32) -> Result<Vec<IdRun>, IdError> {
        let tag = tag.to_owned();
        self.0
            .wait_for(move |client| async move { client.next_ids(&tag, count).await })
    }

    /// A handle that prefetches numbers of a tag: see [`Client::segment`](crate::Client::segment).
    ///
    /// # Errors
    /// The same.
    pub fn segment(&self, tag: &str) -> Result<Segment, IdError> {
        Ok(self.handle(self.0.inner.segment(tag)?))
    }

    /// A handle that prefetches numbers of a tag: see [`Client::segment_with`](crate::Client::segment_with).
    ///
    /// # Errors
    /// The same.
    pub fn segment_with(&self, tag: &str, prefetch: Prefetch) -> Result<Segment, IdError> {
        Ok(self.handle(self.0.inner.segment_with(tag, prefetch)?))
    }

    fn handle(&self, segment: AsyncSegment) -> Segment {
        let background = self.0.background.clone();
        Segment(Blocking {
            inner: segment,
            background,
        })
    }
}

/// Handle of one segment tag: [`Segment`](crate::Segment) for code without `async`, created by
/// [`Client::segment`]. Calls that find enough in the buffer never leave the calling thread; the
/// others wait for the client's deadline at most.
#[derive(Debug, Clone)]
pub struct Segment(Blocking<AsyncSegment>);

impl Segment {
    /// The tag.
    pub fn tag(&self) -> &str {
        self.0.inner.tag()
    }

    /// The next number.
    ///
    /// # Errors
    /// As for [`Segment::next_id`](crate::Segment::next_id).
    #[inline]
    pub fn next_id(&self) -> Result<u64, IdError> {
        match self.0.inner.take_one() {
            Some(number) => Ok(number),
            None => self
                .0
                .wait_for(|segment| async move { segment.next_id_slow().await }),
        }
    }

    /// `count` numbers as runs with step 1: see [`Segment::next_ids`](crate::Segment::next_ids).
    ///
    /// # Errors
    /// The same.
    pub fn next_ids(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        match self.0.inner.take_batch(count)? {
            Some(runs) => Ok(runs),
            None => self
                .0
                .wait_for(move |segment| async move { segment.next_ids_slow(count).await }),
        }
    }

    /// The next number without waiting.
    ///
    /// # Errors
    /// As for [`Segment::try_next_id`](crate::Segment::try_next_id).
    #[inline]
    pub fn try_next_id(&self) -> Result<u64, IdError> {
        self.0.inner.try_next_id()
    }

    /// Statistics since the creation of the handle.
    pub fn stats(&self) -> SegmentStats {
        self.0.inner.stats()
    }
}
