//! The admin listener: metrics for Prometheus, health for orchestrators, state for people.

mod gauges;
mod guard;
mod page;
mod status;

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use vesta_service::LocalIdService;

use crate::metrics::{Metrics, Requests};
use crate::{Assembled, Pool, Role, not_ready_because};

/// What the admin listener shows.
#[derive(Clone, Debug)]
pub struct AdminState {
    role: Role,
    view: View,
    registry: Arc<Registry>,
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
}

impl View {
    fn service(&self) -> Option<&LocalIdService> {
        self.started.get().map(|started| &*started.service)
    }

    fn pool(&self) -> Option<&Arc<Pool>> {
        self.started.get().and_then(|started| started.pool.as_ref())
    }

    fn not_ready_because(&self) -> Option<String> {
        match self.service() {
            Some(service) => not_ready_because(service, &self.shutdown),
            None => Some(format!("there is no machine ID yet; waiting for {}", self.waiting_for)),
        }
    }
}

impl AdminState {
    /// The state of a program that has no machine ID yet: what it waits for, its counters, and
    /// whether it is stopping.
    pub fn new(
        role: Role,
        waiting_for: &str,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
    ) -> Self {
        let view = View { started: Arc::default(), waiting_for: waiting_for.into(), shutdown };
        let mut registry = Registry::with_prefix("vesta");
        registry.register_collector(Box::new(Requests(metrics)));
        registry.register_collector(Box::new(gauges::Gauges(view.clone())));
        Self { role, view, registry: Arc::new(registry) }
    }

    /// Now there is a service.
    pub fn started(&self, assembled: &Assembled) {
        let Assembled { service, pool, .. } = assembled;
        let started = Started { service: Arc::clone(service), pool: pool.clone() };
        let _ = self.view.started.set(started); // a program starts once
    }
}

/// The routes of the admin listener.
pub fn router(state: AdminState) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/status", get(status))
        .with_state(state)
}

/// Serves until the process ends: while a stop drains requests, `/readyz` still has to say so.
pub(crate) async fn serve(listener: TcpListener, state: AdminState) -> io::Result<()> {
    axum::serve(guard::Guarded::new(listener)?, router(state)).await
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
    Html(page::render(role, status.as_ref(), view.not_ready_because()))
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
    ([(header::CONTENT_TYPE, "application/json")], status::json(role, &view))
}

async fn look_at_pool(view: &View) {
    if let Some(pool) = view.pool() {
        Arc::clone(pool).refresh().await;
    }
}
