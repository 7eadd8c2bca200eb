//! The admin listener: metrics for Prometheus, health for orchestrators, state for people.

mod guard;
mod page;
mod status;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

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
use crate::{Role, not_ready_because};

/// What the admin listener shows.
#[derive(Clone, Debug)]
pub struct AdminState {
    role: Role,
    service: Arc<LocalIdService>,
    shutdown: CancellationToken,
    registry: Arc<Registry>,
}

impl AdminState {
    /// The state of a program: its service, its counters, and whether it is stopping.
    pub fn new(
        role: Role,
        service: Arc<LocalIdService>,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
    ) -> Self {
        let mut registry = Registry::with_prefix("vesta");
        registry.register_collector(Box::new(Requests(metrics)));
        registry.register_collector(Box::new(status::Gauges {
            service: Arc::clone(&service),
            shutdown: shutdown.clone(),
        }));
        Self { role, service, shutdown, registry: Arc::new(registry) }
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
async fn healthz(State(state): State<AdminState>) -> (StatusCode, String) {
    match state.service.status().sealed {
        Some(reason) if !state.shutdown.is_cancelled() => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("restart me: {reason}\n"))
        }
        _ => (StatusCode::OK, "ok\n".to_owned()),
    }
}

async fn index(State(state): State<AdminState>) -> Html<String> {
    let reason = not_ready_because(&state.service, &state.shutdown);
    Html(page::render(state.role, &state.service.status(), reason))
}

async fn metrics(State(state): State<AdminState>) -> impl IntoResponse {
    let mut body = String::with_capacity(16 * 1024);
    match text::encode(&mut body, &state.registry) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], body).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn readyz(State(state): State<AdminState>) -> impl IntoResponse {
    match not_ready_because(&state.service, &state.shutdown) {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
    }
}

async fn status(State(state): State<AdminState>) -> impl IntoResponse {
    let reason = not_ready_because(&state.service, &state.shutdown);
    let body = status::json(state.role, &state.service, reason);
    ([(header::CONTENT_TYPE, "application/json")], body)
}
