//! State behind the admin listener.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use vesta_intf::{IdError, UnixMillis};
use vesta_numbers::segment::SegmentService;
use vesta_numbers::serial::SerialService;
use vesta_service::LocalIdService;
use vesta_service::clock::{Clock as _, SystemClock};

use super::rates::Rates;
use crate::assemble::Assembled;
use crate::metrics::Metrics;
use crate::running::{NOT_STARTED, not_ready_because};
use crate::security::Security;
use crate::stores::pool::{Pool, Usage};

/// State of a program from start to end, as shown by the admin listener. Clones share all state.
#[derive(Clone, Debug)]
pub(crate) struct AdminState {
    /// Name of the program.
    pub(super) program: &'static str,
    /// Start time of the program.
    pub(super) began: UnixMillis,
    /// Empty until a machine ID is claimed.
    started: Arc<OnceLock<Assembled>>,
    /// Source of the machine ID.
    waiting_for: Arc<str>,
    /// One per public listener.
    pub(super) metrics: Arc<[Arc<Metrics>]>,
    /// IDs that they issued per second of late.
    pub(super) rates: Arc<Mutex<Rates>>,
    /// Cancelled when a stop is requested.
    pub(crate) leaving: CancellationToken,
    pub(crate) security: Security,
}

impl AdminState {
    /// IDs issued by all public listeners so far.
    pub(super) fn issued(&self) -> u64 {
        let of_tokens = self.metrics.iter().flat_map(|metrics| metrics.issued());
        of_tokens.map(|(_, count)| count).sum()
    }

    /// State of a program without a machine ID: the source it waits for, its counters, the token that
    /// signals a stop, and the protection of its listeners.
    pub(crate) fn new(
        program: &'static str,
        waiting_for: &str,
        metrics: impl Into<Arc<[Arc<Metrics>]>>,
        leaving: CancellationToken,
        security: &Security,
    ) -> Self {
        let (started, security, metrics) = (Arc::default(), security.clone(), metrics.into());
        let began = SystemClock::new().wall();
        Self {
            program,
            began,
            started,
            waiting_for: waiting_for.into(),
            metrics,
            rates: Arc::default(),
            leaving,
            security,
        }
    }

    /// Adds the service once it exists.
    pub(crate) fn started(&self, assembled: &Assembled) {
        let _ = self.started.set(assembled.clone()); // called once
    }

    pub(crate) fn service(&self) -> Option<&LocalIdService> {
        self.started.get().map(|started| &*started.service)
    }

    pub(super) fn segments(&self) -> Option<&Arc<SegmentService>> {
        self.started.get()?.segments.as_ref()
    }

    pub(super) fn serials(&self) -> Option<&Arc<SerialService>> {
        self.started.get()?.serials.as_ref()
    }

    /// Usage of the pool, if its store answers.
    pub(super) fn pool(&self) -> Option<Usage> {
        self.started.get()?.pool.as_ref()?.usage()
    }

    /// The service and its stores, once they have started.
    pub(super) fn assembled(&self) -> Option<&Assembled> {
        self.started.get()
    }

    /// The pool itself, if machine IDs come from a pool.
    pub(super) fn whole_pool(&self) -> Option<Arc<Pool>> {
        self.started.get()?.pool.clone()
    }

    /// Refreshes the usage of the pool, if due.
    pub(super) async fn read_pool(&self) {
        if let Some(pool) = self.started.get().and_then(|started| started.pool.clone()) {
            pool.refresh().await;
        }
    }

    /// The refusal of a feature that is off, or not available yet.
    pub(super) fn off(&self, why: &'static str) -> IdError {
        match self.service() {
            Some(_) => IdError::Unsupported { what: why.into() },
            None => NOT_STARTED,
        }
    }

    pub(crate) fn not_ready_because(&self) -> Option<String> {
        match self.service() {
            Some(service) => not_ready_because(service, &self.leaving),
            None => Some(format!(
                "no machine ID yet; waiting for {}",
                self.waiting_for
            )),
        }
    }
}
