//! The admin listener: metrics for Prometheus, health for orchestrators, state for people.

mod access;
mod gauges;
mod page;
mod segments;
mod status;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use vesta_service::{LocalIdService, SegmentService};

use crate::metrics::{Metrics, Requests};
use crate::net::{Limiter, Limits, Listener};
use crate::{Assembled, Pool, Role, Security, Tls, not_ready_because};

/// What the admin listener shows.
#[derive(Clone, Debug)]
pub struct AdminState {
    role: Role,
    view: View,
    registry: Arc<Registry>,
    security: Security,
}

/// The state of a program, from its start to its end.
#[derive(Clone, Debug)]
struct View {
    /// Empty until there is a machine ID.
    started: Arc<OnceLock<Started>>,
    /// What the machine ID is being waited for.
    waiting_for: Arc<str>,
    shutdown: CancellationToken,
}

#[derive(Debug)]
struct Started {
    service: Arc<LocalIdService>,
    pool: Option<Arc<Pool>>,
    segments: Option<Arc<SegmentService>>,
}

impl View {
    fn service(&self) -> Option<&LocalIdService> {
        self.started.get().map(|started| &*started.service)
    }

    fn pool(&self) -> Option<&Arc<Pool>> {
        self.started.get().and_then(|started| started.pool.as_ref())
    }

    fn segments(&self) -> Option<&SegmentService> {
        self.started.get().and_then(|started| started.segments.as_deref())
    }

    fn not_ready_because(&self) -> Option<String> {
        match self.service() {
            Some(service) => not_ready_because(service, &self.shutdown),
            None => Some(format!("there is no machine ID yet; waiting for {}", self.waiting_for)),
        }
    }
}

impl AdminState {
    /// The state of a program that has no machine ID yet: what it waits for, its counters, whether it
    /// is stopping, and what protects its listeners.
    pub fn new(
        role: Role,
        waiting_for: &str,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
        security: &Security,
    ) -> Self {
        let view = View { started: Arc::default(), waiting_for: waiting_for.into(), shutdown };
        let mut registry = Registry::with_prefix("vesta");
        registry.register_collector(Box::new(Requests(metrics)));
        registry.register_collector(Box::new(gauges::Gauges(view.clone())));
        registry.register_collector(Box::new(gauges::SegmentGauges(view.clone())));
        registry.register_collector(Box::new(gauges::TlsGauges(security.clone())));
        Self { role, view, registry: Arc::new(registry), security: security.clone() }
    }

    /// The listeners with TLS.
    pub(crate) fn listeners(&self) -> Vec<Tls> {
        self.security.listeners().map(|(_, tls)| tls.clone()).collect()
    }

    /// Now there is a service.
    pub fn started(&self, assembled: &Assembled) {
        let Assembled { service, pool, segments, .. } = assembled;
        let started = Started {
            service: Arc::clone(service),
            pool: pool.clone(),
            segments: segments.clone(),
        };
        let _ = self.view.started.set(started); // a program starts once
    }
}

/// The routes of the admin listener. If callers need tokens, all but `/healthz` and `/readyz` ask for
/// one.
pub fn router(state: AdminState) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/status", get(status))
        .route("/segments", get(segments_now).post(new_segment))
        .layer(DefaultBodyLimit::max(segments::MOST_BYTES))
        .layer(middleware::from_fn_with_state(state.clone(), access::check))
        .with_state(state)
}

/// Connections at a time: scrapers, probes and a few people.
const CONNECTIONS: usize = 64;

/// Time limits of a connection. A handler that waits for a store as long as it may is no stall.
const LIMITS: Limits = Limits {
    opening: Duration::from_secs(5),
    opening_bytes: 1,
    stall: segments::TIMEOUT.saturating_add(Duration::from_secs(1)),
    idle: Duration::from_secs(5),
};

/// Serves until the process ends: while a stop drains requests, `/readyz` still has to say so.
pub(crate) async fn serve(listener: std::net::TcpListener, state: AdminState) -> io::Result<()> {
    let limiter = Limiter::new(CONNECTIONS, LIMITS, state.security.admin_tls.clone(), None);
    let listener = Listener { listener: TcpListener::from_std(listener)?, limiter };
    axum::serve(listener, router(state)).await
}

/// Whether a restart would not help: false only when the generator has stopped for good by itself.
async fn healthz(State(AdminState { view, .. }): State<AdminState>) -> (StatusCode, String) {
    match view.service().and_then(|service| service.status().sealed) {
        Some(reason) if !view.shutdown.is_cancelled() => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("restart me: {reason}\n"))
        }
        _ => (StatusCode::OK, "ok\n".to_owned()),
    }
}

async fn index(State(AdminState { role, view, .. }): State<AdminState>) -> Html<String> {
    let status = view.service().map(LocalIdService::status);
    let not_ready = view.not_ready_because();
    Html(page::render(role, status.as_ref(), not_ready, view.segments()))
}

async fn metrics(State(AdminState { view, registry, .. }): State<AdminState>) -> impl IntoResponse {
    look_at_pool(&view).await;
    let mut body = String::with_capacity(16 * 1024);
    match text::encode(&mut body, &registry) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], body).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn readyz(State(AdminState { view, .. }): State<AdminState>) -> impl IntoResponse {
    match view.not_ready_because() {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
    }
}

async fn status(State(AdminState { role, view, .. }): State<AdminState>) -> impl IntoResponse {
    look_at_pool(&view).await;
    (JSON, status::json(role, &view))
}

const JSON: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

async fn segments_now(State(AdminState { view, .. }): State<AdminState>) -> impl IntoResponse {
    let (status, body) = match segments::find(&view) {
        Ok(service) => (StatusCode::OK, segments::json(&service)),
        Err(answer) => answer,
    };
    (status, JSON, body)
}

async fn new_segment(
    State(AdminState { view, .. }): State<AdminState>,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    let (status, body) = segments::create(&view, &headers, &body).await;
    (status, JSON, body)
}

async fn look_at_pool(view: &View) {
    if let Some(pool) = view.pool() {
        Arc::clone(pool).refresh().await;
    }
}
