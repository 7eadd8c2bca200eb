//! Operations of segment mode.

use std::sync::Arc;

use vesta_intf::{IdError, IdRun};
use vesta_numbers::segment::SegmentService;

use super::{NewSegment, SegmentCreated};
use crate::operations::created;
use crate::running::Running;

impl Running {
    /// The next number of a tag.
    ///
    /// # Errors
    /// As [`segments`](Self::segments); [`IdError::NotFound`] for an unknown tag; [`IdError::UsedUp`] and
    /// [`IdError::Unavailable`] if there is no number.
    pub async fn next_number(&self, tag: &str) -> Result<u64, IdError> {
        self.segments()?
            .segment_async(tag)
            .await?
            .next_async()
            .await
    }

    /// The next number of a tag, if that needs no waiting.
    ///
    /// # Errors
    /// As [`next_number`](Self::next_number).
    pub fn try_next_number(&self, tag: &str) -> Result<u64, IdError> {
        self.segments()?.try_segment(tag)?.try_next()
    }

    /// The next numbers of a tag.
    ///
    /// # Errors
    /// As [`next_number`](Self::next_number).
    pub async fn next_numbers(&self, tag: &str, count: u32) -> Result<Vec<IdRun>, IdError> {
        let segments = self.segments()?;
        segments
            .segment_async(tag)
            .await?
            .next_runs_async(count)
            .await
    }
}

/// Creates a segment tag, unless it exists.
///
/// # Errors
/// [`IdError::AlreadyExists`] if it exists with another definition; [`IdError::Invalid`] and [`IdError::OutOfRange`]
/// for a wrong tag; [`IdError::Unavailable`] if it is unknown whether the tag was created.
pub(crate) async fn create_segment(
    segments: &Arc<SegmentService>,
    new: NewSegment,
) -> Result<SegmentCreated, IdError> {
    let (tag, segments) = (new.checked()?, Arc::clone(segments));
    let created = created(&new.tag, move || segments.create(&tag), Err).await?;
    if created {
        tracing::info!(
            tag = new.tag,
            step = new.step,
            first = new.first,
            "tag added"
        );
    }
    Ok(SegmentCreated::new(new, created))
}
