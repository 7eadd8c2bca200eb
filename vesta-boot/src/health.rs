//! Readiness, as `/readyz` and the gRPC health service report it.

use tokio_util::sync::CancellationToken;
use vesta_service::LocalIdService;

/// The reason that `/readyz` and the gRPC health service give for not being ready; `None` if calls
/// for IDs should succeed.
pub fn not_ready_because(service: &LocalIdService, shutdown: &CancellationToken) -> Option<String> {
    if shutdown.is_cancelled() {
        return Some("the server is stopping".to_owned());
    }
    service.status().all.not_ready_because
}
