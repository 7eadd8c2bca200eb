//! Fallback: a local service that makes the IDs while no server can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tonic::Code;
use vesta_intf::{IdError, IdService};

use crate::secret::Secret;

/// Minimum interval of probes of the servers while the local service is in use. Callers trigger them:
/// an idle client sends none.
const PROBE_EVERY: Duration = Duration::from_millis(500);

/// Minimum time for the local service, even if the deadline is nearer.
pub(crate) const GRACE: Duration = Duration::from_millis(250);

/// Minimum sleep, so that waiting never becomes spinning.
const SHORTEST_SLEEP: Duration = Duration::from_micros(100);

#[derive(Debug)]
pub(crate) struct Fallback {
    local: Secret<Arc<dyn IdService>>,
    active: AtomicBool,
    next_probe: Mutex<Instant>,
    /// IDs made by the local service.
    pub(crate) ids: AtomicU64,
    /// Switches to and from the local service.
    pub(crate) switches: AtomicU64,
}

impl Fallback {
    pub(crate) fn new(local: Secret<Arc<dyn IdService>>) -> Self {
        Self {
            local,
            active: AtomicBool::new(false),
            next_probe: Mutex::new(Instant::now()),
            ids: AtomicU64::new(0),
            switches: AtomicU64::new(0),
        }
    }

    /// True if this error means that the servers are unavailable; false if they refused.
    pub(crate) fn covers(error: &IdError) -> bool {
        let code = error.kind().grpc_code();
        code == Code::Unavailable as i32 || code == Code::DeadlineExceeded as i32
    }

    /// True while the local service is in use.
    pub(crate) fn active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    pub(crate) fn enter(&self, error: &IdError) {
        if !self.active.swap(true, Ordering::Relaxed) {
            self.switches.fetch_add(1, Ordering::Relaxed);
            *self.next_probe.lock() = Instant::now() + PROBE_EVERY;
            tracing::warn!(%error, "no vesta server is available; the local service makes the ids");
        }
    }

    pub(crate) fn leave(&self) {
        if self.active.swap(false, Ordering::Relaxed) {
            self.switches.fetch_add(1, Ordering::Relaxed);
            tracing::info!("a vesta server makes the ids again");
        }
    }

    /// True if a probe is due and this caller must send it.
    pub(crate) fn probe_is_due(&self) -> bool {
        let now = Instant::now();
        // If the lock is contended, another caller is sending the probe.
        let Some(mut next) = self.next_probe.try_lock().filter(|next| **next <= now) else {
            return false;
        };
        *next = now + PROBE_EVERY;
        true
    }

    /// Runs a non-waiting step, which makes `ids` IDs, until it succeeds, fails or would have to
    /// wait beyond `until`.
    pub(crate) async fn run<T>(
        &self,
        ids: u64,
        until: Instant,
        step: &mut (impl FnMut(&dyn IdService) -> Result<T, IdError> + Send),
    ) -> Result<T, IdError> {
        loop {
            match step(&*self.local.0) {
                Ok(value) => {
                    self.ids.fetch_add(ids, Ordering::Relaxed);
                    return Ok(value);
                }
                Err(IdError::NotReady(not_ready))
                    if Instant::now() + not_ready.retry_after < until =>
                {
                    sleep(not_ready.retry_after.max(SHORTEST_SLEEP)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// IDs of the local service, without waiting.
    pub(crate) fn try_gen_ids(&self, out: &mut [u64]) -> Result<usize, IdError> {
        let made = self.local.0.try_gen_ids(out)?;
        self.ids.fetch_add(made as u64, Ordering::Relaxed);
        Ok(made)
    }
}
