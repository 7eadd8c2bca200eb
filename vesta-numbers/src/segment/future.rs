//! Asynchronous twins of the blocking calls.

use vesta_intf::{IdError, IdRun};

use super::handle::{Batch, Segment};
use super::service::SegmentService;

impl SegmentService {
    /// [`segment`](Self::segment) without blocking the thread.
    ///
    /// # Errors
    /// The same.
    pub async fn segment_async(&self, key: &str) -> Result<&Segment, IdError> {
        if let Some(segment) = self.named.get(key) {
            return Ok(segment);
        }
        let since = self.core.now();
        self.core
            .wait(&self.core.listed)
            .until_async(|| self.find(key, since))
            .await
    }
}

impl Segment {
    /// [`next`](Self::next) without blocking the thread. Dropped before it is ready, it takes no number.
    ///
    /// # Errors
    /// The same.
    pub async fn next_async(&self) -> Result<u64, IdError> {
        self.wait().until_async(|| self.try_next()).await
    }

    /// [`next_run`](Self::next_run) without blocking the thread. Dropped before it is ready, it
    /// takes no number.
    ///
    /// # Errors
    /// The same.
    pub async fn next_run_async(&self, want: u32) -> Result<IdRun, IdError> {
        self.wait().until_async(|| self.try_next_run(want)).await
    }

    /// [`next_runs`](Self::next_runs) without blocking the thread. Dropped before it is ready, the
    /// numbers it has taken are never issued.
    ///
    /// # Errors
    /// The same.
    pub async fn next_runs_async(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        let mut batch = Batch::new(self, count);
        self.wait().until_async(|| batch.fill()).await?;
        Ok(batch.finish())
    }
}
