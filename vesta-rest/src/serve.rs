//! The server: workers, limits, and the graceful stop.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use actix_http::{HttpService, KeepAlive, Response};
use actix_server::Server;
use actix_service::{
    IntoServiceFactory, Service, ServiceFactoryExt, apply_fn_factory, fn_service, map_config,
};
use actix_web::dev::AppConfig;
use actix_web::rt::System;
use actix_web::rt::net::TcpStream;
use actix_web::{App, web};
use futures_util::TryFutureExt;
use futures_util::future::{Either, ready};
use vesta_boot::Running;

use crate::app::{State, configure};
use crate::connection::{Gate, Patience};
use crate::handlers::vesta::genid_now;

/// How long a connection that is being closed may linger for its peer to read the last answer.
const LINGER: Duration = Duration::from_secs(1);

/// The most that actix-server takes.
const MAX_WORKERS: usize = 512;

/// The patience of the server with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest time for setting up TLS and for the first byte and the head of a request, and for a
    /// stall later on.
    pub head: Duration,
    /// How long a connection may idle between requests.
    pub keep_alive: Duration,
}

impl Default for Limits {
    /// 5 s for a head. 75 s idle: longer than the 60 s after which common proxies drop their side,
    /// so that they do not send a request into a connection that is being closed.
    fn default() -> Self {
        Self { head: Duration::from_secs(5), keep_alive: Duration::from_secs(75) }
    }
}

/// Serves until `running.shutdown` is cancelled; then accepts nothing more, lets the requests in
/// flight finish within the drain limit, and returns.
///
/// # Errors
/// When the listener cannot be used.
pub fn serve(running: Running) -> io::Result<()> {
    serve_with(running, Limits::default())
}

/// [`serve`] with other limits than the default.
///
/// # Errors
/// When the listener cannot be used.
pub fn serve_with(running: Running, limits: Limits) -> io::Result<()> {
    let Running { config, service, segments, listener, security, metrics, shutdown } = running;
    if config.workers > MAX_WORKERS {
        let many = format!("workers must be 1 to {MAX_WORKERS}, but is {}", config.workers);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, many));
    }
    let state = web::Data::new(State {
        service,
        segments,
        metrics: metrics.clone(),
        auth: security.auth,
        encrypted: security.tls.is_some(),
        request_timeout: config.request_timeout,
    });
    // A request that waits for an ID as long as it may has not stalled.
    let stall = limits.head.max(config.request_timeout + LINGER);
    let patience = Patience { handshake: limits.head, stall };
    let gate = Gate::new(metrics, config.max_connections, patience, security.tls);

    System::new().block_on(async move {
        let server = Server::build()
            .workers(config.workers)
            // The gate refuses with an answer; beyond it, connections would wait without one.
            .max_concurrent_connections(config.max_connections.saturating_add(64))
            .disable_signals()
            .shutdown_signal(shutdown.cancelled_owned())
            .shutdown_timeout(config.drain_limit.as_secs().max(1));
        let draining = server.graceful_shutdown_signal();
        let factory = move || {
            let (state, gate, draining) = (state.clone(), gate.clone(), draining.clone());
            let shared = state.clone();
            let app = App::new().configure(move |app| configure(app, shared.clone()));
            let app = map_config(app.into_factory(), |_| AppConfig::default());
            let service =
                apply_fn_factory(app, move |req, app: &_| match genid_now(&state, &req) {
                    Some(response) => Either::Left(ready(Ok(response))),
                    None => Either::Right(app.call(req).map_ok(Response::from)),
                });
            let http = HttpService::build()
                .keep_alive(KeepAlive::Timeout(limits.keep_alive))
                .client_request_timeout(limits.head)
                .client_disconnect_timeout(LINGER)
                .graceful_shutdown_signal(move || {
                    let draining = draining.clone();
                    async move { draining.notified().await }
                })
                .h1(service);
            fn_service(move |io: TcpStream| {
                let peer: Option<SocketAddr> = io.peer_addr().ok();
                let connection = gate.admit(io);
                async move { Ok((connection?, peer)) }
            })
            .and_then(http)
        };
        server.listen("vesta-rest", listener, factory)?.run().await
    })
}
