//! Admin listener: metrics for Prometheus, health for orchestrators, status for people.

mod access;
mod gauges;
mod page;
mod segments;
mod state;
mod status;

use std::io;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text;
use serde::Serialize;
use tokio::net::TcpListener;

use crate::net::{Limiter, Limits, Listener};
use crate::secret;
use segments::SegmentsStatus;
pub use state::AdminState;
use status::ProgramStatus;

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
    let tls = state.program.security.admin_tls.clone();
    let limiter = Limiter::new(CONNECTIONS, LIMITS, tls, None);
    let listener = Listener { listener: TcpListener::from_std(listener)?, limiter };
    axum::serve(listener, router(state)).await
}

/// 503 only if a restart would help: the generator has stopped for good by itself.
async fn healthz(State(AdminState { program, .. }): State<AdminState>) -> (StatusCode, String) {
    match program.service().and_then(|service| service.status().sealed) {
        Some(reason) if !program.shutdown.is_cancelled() => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("restart me: {reason}\n"))
        }
        _ => (StatusCode::OK, "ok\n".to_owned()),
    }
}

async fn readyz(State(AdminState { program, .. }): State<AdminState>) -> (StatusCode, String) {
    match program.not_ready_because() {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
    }
}

async fn index(State(AdminState { program, .. }): State<AdminState>) -> Html<String> {
    let segments = program.segments().map(|segments| SegmentsStatus::of(segments));
    Html(page::render(&ProgramStatus::of(&program), segments.as_ref()))
}

async fn metrics(State(AdminState { program, registry }): State<AdminState>) -> Response {
    program.read_pool().await;
    let mut body = String::with_capacity(16 * 1024);
    match text::encode(&mut body, &registry) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], body).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn status(State(AdminState { program, .. }): State<AdminState>) -> Response {
    program.read_pool().await;
    json(StatusCode::OK, &ProgramStatus::of(&program))
}

async fn segments_now(State(AdminState { program, .. }): State<AdminState>) -> Response {
    segments::find(&program)
        .map_or_else(refused, |segments| json(StatusCode::OK, &SegmentsStatus::of(&segments)))
}

async fn new_segment(
    State(AdminState { program, .. }): State<AdminState>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    segments::create(&program, &headers, &body).await.unwrap_or_else(refused)
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let body = serde_json::to_string_pretty(body).expect("plain fields are JSON") + "\n";
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Status and reason of a request that is refused.
type Refusal = (StatusCode, String);

/// A refusal as JSON. Secrets in the errors of stores are hidden: any caller may read them.
fn refused((status, reason): Refusal) -> Response {
    json(status, &serde_json::json!({ "error": secret::hide(&reason) }))
}
