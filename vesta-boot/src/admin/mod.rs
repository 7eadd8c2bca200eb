//! Admin listener: metrics for Prometheus, health for orchestrators, status for people.

mod encoder;
mod format;
mod gauges;
mod origin;
mod page;
mod rates;
mod responses;
mod segments;
mod serials;
mod state;
mod status;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Extension, RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use vesta_intf::{ErrorKind, IdError};

use crate::answers::{Event, Events, Problem};
use crate::settings::SERIALS_OFF;
use gauges::Scrape;
pub use page::{PAGE, PAGE_POLICY, TABLE};
use responses::{GRPC, refused, respond, to_grpc};
pub(crate) use state::AdminState;
use vesta_net::{Acceptor, Hosts, Limiter, Limits, Listener, Listening, Requests, Scopes};

/// Routes of the admin listener. If callers need tokens, all routes except `/healthz`, `/readyz` and
/// the page itself require one.
fn router(state: AdminState) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/status", get(status))
        .route("/pool", get(pool))
        .route("/events", get(events))
        .route("/segments", get(segments_now).post(new_segment))
        .route("/serials", get(serials_now))
        .method_not_allowed_fallback(|uri: Uri| async move {
            refused(Problem::method_not_allowed(match uri.path() {
                "/segments" => "GET, HEAD, POST",
                _ => "GET, HEAD",
            }))
        })
        .fallback(|uri: Uri| async move {
            let why = format!("unknown path {}; GET / serves the page", uri.path());
            refused(Problem::new(ErrorKind::NotFound, why))
        })
        .layer(DefaultBodyLimit::max(segments::MOST_BYTES))
        .layer(middleware::from_fn_with_state(state.clone(), check_access))
        .with_state(state)
}

/// Maximum open connections: scrapers, probes and a few people.
const CONNECTIONS: usize = 64;

/// Timeouts of a connection. A handler that waits for a store within its own timeout is not a
/// stall.
const LIMITS: Limits = Limits {
    opening: Duration::from_secs(5),
    opening_bytes: 1,
    stall: segments::TIMEOUT.saturating_add(Duration::from_secs(1)),
    idle: Duration::from_secs(5),
    unused: Duration::MAX,
    lifetime: Duration::MAX,
    misdirected: None,
};

/// Serves until the process exits: while a stop drains requests, `/readyz` must still report it.
pub(crate) async fn serve(listener: Listening, state: AdminState) -> io::Result<()> {
    let limiter = Limiter::new(
        CONNECTIONS,
        CONNECTIONS / 2,
        LIMITS,
        state.security.admin_tls.clone(),
        Arc::default(),
    );
    let hosts = Hosts::of(&listener, &state.security.admin_hosts);
    let router = router(state.clone()).layer(middleware::from_fn_with_state(hosts, check_host));
    let listener = Listener::new(Acceptor::try_from(listener)?, limiter);
    tokio::select! {
        served = listener.serve(router) => served,
        never = rates::watch(&state.rates, || state.issued()) => never,
    }
}

/// Refuses a call of gRPC, and a request whose `Host` does not name this listener.
async fn check_host(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    let media = request.headers().get(header::CONTENT_TYPE);
    if media.is_some_and(|media| media.as_bytes().starts_with(GRPC.as_bytes())) {
        return to_grpc();
    }
    let named = request.headers().get_all(header::HOST).iter();
    if hosts.allow(named.map(HeaderValue::as_bytes)) {
        return next.run(request).await;
    }
    refused(Problem::foreign_host())
}

/// Admits a request if its token has the needed scope and, for requests that change something, no page
/// of another site sent it. Such a page cannot read the answers to the others.
async fn check_access(State(state): State<AdminState>, request: Request, next: Next) -> Response {
    let needs = match (request.uri().path(), request.method()) {
        // Orchestrators have no token; a browser has none until the page has asked for it.
        ("/healthz" | "/readyz", _) | ("/", &(Method::GET | Method::HEAD)) => Scopes::NONE,
        (_, &(Method::GET | Method::HEAD)) => Scopes::METRICS | Scopes::ADMIN,
        _ => Scopes::ADMIN,
    };
    let reads = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    let tokens = request.headers().get_all(header::AUTHORIZATION).iter();
    match state
        .security
        .check(tokens.map(HeaderValue::as_bytes), needs)
    {
        Ok(_) if !reads && !origin::is_own(request.headers(), &state.security.admin_hosts) => {
            let reason = "the headers host and origin must name this listener by its address, by \
                          localhost, or by a name in the setting hosts (--hosts)";
            refused(Problem::new(ErrorKind::PermissionDenied, reason))
        }
        Ok(_) => next.run(request).await,
        Err(denied) => {
            let challenge = [(header::WWW_AUTHENTICATE, denied.challenge())];
            (challenge, refused(IdError::from(denied))).into_response()
        }
    }
}

/// Returns 503 only if a restart would help: the generator has stopped for good by itself, or has no
/// machine ID and claims none because it distrusts the clock.
async fn healthz(State(state): State<AdminState>) -> (StatusCode, String) {
    match state.service().map(|service| service.status().all) {
        Some(all) if all.restart_helps && !state.leaving.is_cancelled() => {
            let reason = all.not_ready_because.unwrap_or_default();
            (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("restart me: {reason}\n"),
            )
        }
        _ => (StatusCode::OK, "ok\n".to_owned()),
    }
}

async fn readyz(State(state): State<AdminState>) -> (StatusCode, String) {
    match state.not_ready_because() {
        None => {
            let segments = state
                .segments()
                .map(|it| segments::troubles(it))
                .unwrap_or_default();
            let serials = state
                .serials()
                .map(|it| serials::troubles(it))
                .unwrap_or_default();
            (StatusCode::OK, format!("ready\n{segments}{serials}"))
        }
        Some(reason) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {reason}\n"),
        ),
    }
}

async fn index() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, page::of_admin()).into_response()
}

async fn metrics(State(state): State<AdminState>, headers: HeaderMap) -> Response {
    state.read_pool().await;
    let mut registry = Registry::with_prefix("vesta");
    registry.register_collector(Box::new(Scrape(state)));
    let mut body = String::with_capacity(16 * 1024);
    match text::encode(&mut body, &registry) {
        Ok(()) => {
            let (media, body) = format::negotiated(&headers, body);
            ([(header::CONTENT_TYPE, media)], body).into_response()
        }
        Err(error) => refused(Problem::new(ErrorKind::Internal, error.to_string())),
    }
}

async fn status(State(state): State<AdminState>) -> Response {
    state.read_pool().await;
    respond(StatusCode::OK, &status::status(&state))
}

async fn pool(State(state): State<AdminState>) -> Response {
    let Some(pool) = state.whole_pool() else {
        return refused(state.off("the machine IDs of this program come from no pool"));
    };
    match pool.shown().await {
        Ok(shown) => respond(StatusCode::OK, &shown),
        Err(why) => refused(IdError::Unavailable {
            reason: why.into(),
            retry_after: None,
            source: None,
        }),
    }
}

async fn events(State(state): State<AdminState>, RawQuery(query): RawQuery) -> Response {
    let since = match query.as_deref() {
        None | Some("") => Ok(0),
        Some(query) => query.strip_prefix("since=").unwrap_or(query).parse::<u64>(),
    };
    let Ok(since) = since else {
        let why = "the query must be since=N, where N is an event number";
        return refused(Problem::new(ErrorKind::Invalid, why).about("since"));
    };
    let events = state
        .service()
        .map(|service| service.events(since))
        .unwrap_or_default();
    let last_number = events.last().map_or(since, |event| event.number);
    let events = events.into_iter().map(Event::from).collect();
    respond(
        StatusCode::OK,
        &Events {
            events,
            last_number,
        },
    )
}

async fn segments_now(State(state): State<AdminState>) -> Response {
    segments::find(&state).map_or_else(refused, |segments| {
        respond(StatusCode::OK, &segments::status(segments))
    })
}

async fn serials_now(State(state): State<AdminState>) -> Response {
    state.serials().map_or_else(
        || refused(state.off(SERIALS_OFF)),
        |serials| respond(StatusCode::OK, &serials::status(serials)),
    )
}

async fn new_segment(
    State(state): State<AdminState>,
    connection: Option<Extension<ConnectInfo<Requests>>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let _in_flight = connection.map(|it| it.0.0.begin()); // now that its body is complete
    let created = match body {
        Ok(body) => segments::create(&state, &headers, &body).await,
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            Err(Problem::body_too_large(segments::MOST_BYTES).into())
        }
        Err(rejection) => Err(Problem::new(ErrorKind::Invalid, rejection.body_text()).into()),
    };
    created.unwrap_or_else(refused)
}
