//! Server: workers, limits, and the graceful stop.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
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
use vesta_boot::net::{self, Connection, Limiter};

use crate::app::configure;
use crate::endpoints::GENID;
use crate::handlers::vesta::genid_now;

/// For the peer of a connection that is being closed to read the last answer.
const LINGER: Duration = Duration::from_secs(1);

/// Time limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For setting up TLS, for the first byte and the head of a request, and for a stall later on.
    pub head: Duration,
    /// Between requests; `Duration::MAX` is none.
    pub keep_alive: Duration,
}

impl Default for Limits {
    /// 5 s for a head, 75 s idle.
    fn default() -> Self {
        Self { head: Duration::from_secs(5), keep_alive: Duration::from_secs(75) }
    }
}

/// Serves until `running.shutdown` is cancelled; then accepts nothing more, lets the requests in
/// flight finish within the drain limit, and returns.
///
/// # Errors
/// When the listener cannot be used.
pub fn serve(listener: TcpListener, running: Arc<Running>) -> io::Result<()> {
    let keep_alive = running.config.limits.idle_timeout;
    serve_with(listener, running, Limits { keep_alive, ..Limits::default() })
}

/// [`serve`] with other limits than the default.
///
/// # Errors
/// When the listener cannot be used.
pub fn serve_with(listener: TcpListener, running: Arc<Running>, limits: Limits) -> io::Result<()> {
    let Running { config, security, metrics, shutdown, .. } = &*running;
    let (allowed, shutdown) = (config.limits.clone(), shutdown.clone());
    let guarded = net::Limits {
        opening: limits.head,
        opening_bytes: 1,
        // A request that waits for an ID as long as it may has not stalled.
        stall: limits.head.max(allowed.request_timeout + LINGER),
        idle: Duration::MAX, // left to actix-http, which closes it properly
        is_http1: true,
        unused: Duration::MAX,
    };
    let limiter = Limiter::new(
        allowed.max_connections,
        allowed.per_address(),
        guarded,
        security.tls.clone(),
        Arc::clone(metrics),
    );
    let keep_alive = match limits.keep_alive {
        Duration::MAX => KeepAlive::Os,
        limit => KeepAlive::Timeout(limit),
    };

    System::new().block_on(async move {
        let server = Server::build()
            .workers(allowed.workers)
            // The limiter refuses with an answer; beyond it, connections would wait without one.
            .max_concurrent_connections(allowed.max_connections.saturating_add(64))
            .disable_signals()
            .shutdown_signal(shutdown.cancelled_owned())
            .shutdown_timeout(allowed.drain_limit.as_secs().max(1));
        let draining = server.graceful_shutdown_signal();
        let factory = move || {
            let (running, limiter) = (running.clone(), limiter.clone());
            let (draining, shared) = (draining.clone(), web::Data::from(running.clone()));
            let app = App::new().configure(move |app| configure(app, shared.clone()));
            let app = map_config(app.into_factory(), |_| AppConfig::default());
            let service =
                apply_fn_factory(app, move |req, app: &_| match genid_now(&running, &req, GENID) {
                    Some(response) => Either::Left(ready(Ok(response))),
                    None => Either::Right(app.call(req).map_ok(Response::from)),
                });
            let http = HttpService::build()
                .keep_alive(keep_alive)
                .client_request_timeout(limits.head)
                .client_disconnect_timeout(LINGER)
                .graceful_shutdown_signal(move || {
                    let draining = draining.clone();
                    async move { draining.notified().await }
                })
                .h1(service);
            fn_service(move |io: TcpStream| {
                let peer: Option<SocketAddr> = io.peer_addr().ok();
                let connection = admit(&limiter, io);
                async move { Ok((connection?, peer)) }
            })
            .and_then(http)
        };
        server.listen("vesta-rest", listener, factory)?.run().await
    })
}

/// Lets a connection in, or tells it that there are too many.
fn admit(limiter: &Limiter, io: TcpStream) -> io::Result<Connection> {
    // A peer that is gone already is told by the first read.
    let peer = io.peer_addr().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip());
    if let Some(permit) = limiter.try_permit(peer) {
        return Ok(limiter.guard(io, permit));
    }
    // A fresh socket has room for this; a client that is gone already needs no answer, and one that
    // speaks TLS could not read it.
    if !limiter.has_tls() {
        let _ = io::Write::write(&mut io.into_std()?, FULL.as_bytes());
    }
    Err(io::Error::other("too many connections"))
}

/// Answer to a connection over the limit, before its request is read.
const FULL: &str = concat!(
    "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n",
    "content-length: 185\r\nretry-after: 1\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
    r#"{"type":"urn:vesta:problem:unavailable","title":"Unavailable","status":503,"#,
    r#""detail":"as many connections are open as may be; try again later","#,
    r#""kind":"UNAVAILABLE","retry_after_ms":1000}"#
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_a_whole_response() {
        let (head, body) = FULL.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["status"], 503);
    }
}
