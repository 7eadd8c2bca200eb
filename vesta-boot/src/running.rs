//! A program that runs, as everything that serves requests shares it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use vesta_intf::IdError;
use vesta_service::{LocalIdService, SegmentService};

use crate::metrics::Metrics;
use crate::net::Security;
use crate::settings::Config;

/// The refusal while segment mode is off.
pub const SEGMENTS_OFF: &str = "segment mode is off; set segment.store (--segment-store)";

/// A program that has started, ready to serve.
#[derive(Debug)]
pub struct Running {
    /// The settings.
    pub config: Config,
    /// The service.
    pub service: Arc<LocalIdService>,
    /// Segment mode, if it is on.
    pub segments: Option<Arc<SegmentService>>,
    /// Protection of the listeners.
    pub security: Security,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// Cancelled when the program should stop.
    pub shutdown: CancellationToken,
}

impl Running {
    /// Segment mode.
    ///
    /// # Errors
    /// [`IdError::Unsupported`] if it is off.
    pub fn segments(&self) -> Result<&Arc<SegmentService>, IdError> {
        self.segments.as_ref().ok_or(IdError::Unsupported { what: SEGMENTS_OFF.into() })
    }

    /// Awaits work up to the time limit of a request, and the caller's own.
    ///
    /// # Errors
    /// Those of the work, or [`IdError::DeadlineExceeded`].
    pub async fn within<T>(
        &self,
        caller: Option<Duration>,
        work: impl Future<Output = Result<T, IdError>>,
    ) -> Result<T, IdError> {
        let limit = caller.unwrap_or(Duration::MAX).min(self.config.limits.request_timeout);
        timeout(limit, work).await.unwrap_or(Err(IdError::DeadlineExceeded))
    }
}

/// The reason that `/readyz` and the gRPC health service give for not being ready; `None` if calls
/// for IDs should succeed.
pub fn not_ready_because(service: &LocalIdService, shutdown: &CancellationToken) -> Option<String> {
    if shutdown.is_cancelled() {
        return Some("the server is stopping".to_owned());
    }
    service.status().all.not_ready_because
}
