//! State behind the admin listener.

use std::sync::{Arc, OnceLock};

use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use vesta_service::{LocalIdService, SegmentService};

use super::gauges::Gauges;
use crate::metrics::{Metrics, Requests};
use crate::{Assembled, Pool, Role, Security, Tls, not_ready_because};

/// Program and metrics as the admin listener shows them. A clone shares everything.
#[derive(Clone, Debug)]
pub struct AdminState {
    pub(super) program: Program,
    pub(super) registry: Arc<Registry>,
}

/// A program, from its start to its end.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) role: Role,
    /// Empty until there is a machine ID.
    started: Arc<OnceLock<Started>>,
    /// Where the machine ID comes from.
    waiting_for: Arc<str>,
    pub(super) shutdown: CancellationToken,
    pub(super) security: Security,
}

#[derive(Debug)]
struct Started {
    service: Arc<LocalIdService>,
    pool: Option<Arc<Pool>>,
    segments: Option<Arc<SegmentService>>,
}

impl Program {
    pub(super) fn service(&self) -> Option<&LocalIdService> {
        self.started.get().map(|started| &*started.service)
    }

    pub(super) fn pool(&self) -> Option<&Arc<Pool>> {
        self.started.get().and_then(|started| started.pool.as_ref())
    }

    /// Brings the usage of the pool up to date, if that is due.
    pub(super) async fn read_pool(&self) {
        if let Some(pool) = self.pool() {
            Arc::clone(pool).refresh().await;
        }
    }

    pub(super) fn segments(&self) -> Option<&Arc<SegmentService>> {
        self.started.get().and_then(|started| started.segments.as_ref())
    }

    pub(super) fn not_ready_because(&self) -> Option<String> {
        match self.service() {
            Some(service) => not_ready_because(service, &self.shutdown),
            None => Some(format!("there is no machine ID yet; waiting for {}", self.waiting_for)),
        }
    }
}

impl AdminState {
    /// State of a program that has no machine ID yet: what it waits for, its counters, its stop, and
    /// the protection of its listeners.
    pub fn new(
        role: Role,
        waiting_for: &str,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
        security: &Security,
    ) -> Self {
        let program = Program {
            role,
            started: Arc::default(),
            waiting_for: waiting_for.into(),
            shutdown,
            security: security.clone(),
        };
        let mut registry = Registry::with_prefix("vesta");
        registry.register_collector(Box::new(Requests(metrics)));
        registry.register_collector(Box::new(Gauges(program.clone())));
        Self { program, registry: Arc::new(registry) }
    }

    /// The listeners with TLS.
    pub(crate) fn listeners(&self) -> Vec<Tls> {
        self.program.security.listeners().map(|(_, tls)| tls.clone()).collect()
    }

    /// Adds the service, once there is one.
    pub fn started(&self, assembled: &Assembled) {
        let Assembled { service, pool, segments, .. } = assembled;
        let started = Started {
            service: Arc::clone(service),
            pool: pool.clone(),
            segments: segments.clone(),
        };
        let _ = self.program.started.set(started); // a program starts once
    }
}
