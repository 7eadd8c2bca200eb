//! Server: its limits, and actix-http on the workers of vesta-boot.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix_http::{ConnectionType, Extensions, HttpService, KeepAlive, Request, Response};
use actix_service::{IntoServiceFactory, Service, ServiceFactory, apply_fn_factory, map_config};
use actix_web::dev::AppConfig;
use actix_web::http::header;
use actix_web::{App, web};
use futures_util::future::{Either, ready};
use futures_util::{Stream, StreamExt as _, TryFutureExt};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use vesta_boot::{Config, Metrics, Running, Security, not_ready_because};
use vesta_net::{
    self as net, Accepted, Connection, Hosts, Incoming, Limiter, Listening, Misdirected,
};

use crate::app::configure;
use crate::cors::Cors;
use crate::endpoints::{METHODS, as_routed};
use crate::fast_path::{foreign_host, id_now, outside_base, preflight, readiness};

/// Time for the peer of a closing connection to read the last answer.
const LINGER: Duration = Duration::from_secs(1);

/// Time limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limit for the TLS handshake, for the first byte and the head of a request, and for a later
    /// stall.
    pub head: Duration,
    /// Limit between requests; `Duration::MAX` means none.
    pub keep_alive: Duration,
}

impl Default for Limits {
    /// 5 s for a head, 75 s idle.
    fn default() -> Self {
        Self {
            head: Duration::from_secs(5),
            keep_alive: Duration::from_secs(75),
        }
    }
}

/// Serves until `running.shutdown` is cancelled; then accepts nothing more, lets the requests in
/// flight finish within the drain limit, and returns.
///
/// # Errors
/// Fails if the listener cannot be used.
pub fn serve(listener: Listening, running: Arc<Running>) -> io::Result<()> {
    let keep_alive = running.config.limits.idle_timeout;
    serve_with(
        listener,
        running,
        Limits {
            keep_alive,
            ..Limits::default()
        },
    )
}

/// As [`serve`], with limits other than the default.
///
/// # Errors
/// Fails if the listener cannot be used.
pub fn serve_with(listener: Listening, running: Arc<Running>, limits: Limits) -> io::Result<()> {
    let Running {
        config,
        security,
        metrics,
        ..
    } = &*running;
    check_readiness_path(config)?;
    let limiter = limiter(config, security, metrics, limits);
    let threads = running.threads();
    let has_tls = limiter.has_tls();
    let serving = Arc::clone(&running);
    let hosts = Hosts::of(&listener, &running.config.hosts);
    let work =
        move |incoming: Incoming| work(incoming, Arc::clone(&serving), limits, hosts.clone());
    net::serve(
        listener,
        &threads,
        &limiter,
        |stream| refuse(stream, has_tls),
        work,
    )
}

/// Refuses a readiness path that is an endpoint.
pub(crate) fn check_readiness_path(config: &Config) -> io::Result<()> {
    let is_endpoint =
        |path: &&String| METHODS.contains(&path.as_str()) || path.starts_with("/docs/");
    config
        .readiness_path
        .as_ref()
        .filter(is_endpoint)
        .map_or(Ok(()), |path| {
            let why = format!(
                "readiness.public_path {path} is an endpoint; choose another, such as /readyz"
            );
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        })
}

pub(crate) fn limiter(
    config: &Config,
    security: &Security,
    metrics: &Arc<Metrics>,
    limits: Limits,
) -> Arc<Limiter> {
    let allowed = &config.limits;
    let guarded = net::Limits {
        opening: limits.head,
        opening_bytes: 1,
        // A request that waits for an ID within its time limit has not stalled.
        stall: limits.head.max(allowed.request_timeout + LINGER),
        idle: Duration::MAX, // left to actix-http, which closes it properly
        unused: Duration::MAX,
        lifetime: Duration::MAX,
        misdirected: Some(Misdirected {
            begins: |first| first.starts_with(b"PRI * HTTP/2.0"),
            answer: GRPC_CLIENT,
        }),
    };
    Limiter::new(
        allowed.max_connections,
        allowed.per_address(),
        guarded,
        security.http_tls.clone(),
        Arc::clone(&metrics.connections),
    )
}

/// Moment from which on an answer closes its connection.
#[derive(Clone, Copy)]
struct Expiry(Instant);

/// Serves the connections of one worker until a stop, and then until they have ended.
async fn work(
    mut incoming: impl Stream<Item = io::Result<Connection>> + Unpin,
    running: Arc<Running>,
    limits: Limits,
    hosts: Hosts,
) {
    let shared = web::Data::from(Arc::clone(&running));
    let age = running.config.limits.max_connection_age;
    let cors = Cors(Arc::clone(&running.config.cors_origins));
    let app = App::new().configure(move |app| configure(app, shared.clone()));
    let app = map_config(app.into_factory(), |_| AppConfig::default());
    // One token per worker: each of its connections checks it with every request.
    let shutdown = running.shutdown.child_token();
    let stopped = shutdown.clone();
    let service = apply_fn_factory(app, move |mut req: Request, app: &_| {
        // actix-http closes the connection after this answer without announcing it.
        let closes = req.head().connection_type() == ConnectionType::Upgrade;
        let named = req
            .head()
            .headers
            .get_all(header::HOST)
            .map(header::HeaderValue::as_bytes);
        let is_old = req
            .conn_data::<Expiry>()
            .is_some_and(|expiry| expiry.0 <= Instant::now());
        let cors_headers = cors.of(&req.head().headers);
        let now = if hosts.allow(named) {
            let why = || not_ready_because(&running.service, &running.leaving);
            preflight(&running, &cors, &req)
                .or_else(|| readiness(&running.config, &req, why))
                .or_else(|| outside_base(&running, &mut req))
                .or_else(|| id_now(&running, &req))
        } else {
            Some(foreign_host(&running))
        };
        let answered = match now {
            Some(response) => Either::Left(ready(Ok(response))),
            None => {
                // Runs before the router, so that authorization and metrics see the path that it
                // sees.
                drop_slashes(&mut req);
                Either::Right(
                    app.call(req)
                        .map_ok(|it| Response::from(it.map_into_boxed_body())),
                )
            }
        };
        answered.map_ok(move |mut response: Response<_>| {
            cors_headers.add_to(response.headers_mut());
            if closes || is_old {
                response
                    .head_mut()
                    .set_connection_type(ConnectionType::Close);
            }
            response
        })
    });
    let http = HttpService::build()
        .keep_alive(match limits.keep_alive {
            Duration::MAX => KeepAlive::Os,
            limit => KeepAlive::Timeout(limit),
        })
        .client_request_timeout(limits.head)
        .client_disconnect_timeout(LINGER)
        .on_connect_ext(move |_: &Connection, data: &mut Extensions| {
            if age < Duration::MAX {
                data.insert(Expiry(Instant::now() + net::jittered(age)));
            }
        })
        .graceful_shutdown_signal(move || stopped.clone().cancelled_owned())
        .h1(service);
    let http = match http.new_service(()).await {
        Ok(http) => http,
        Err(()) => return tracing::error!("a worker could not start"),
    };
    let open = TaskTracker::new();
    while let Some(Some(connection)) = shutdown.run_until_cancelled(incoming.next()).await {
        if let Ok(connection) = connection {
            open.spawn_local(http.call((connection, None)));
        }
    }
    open.close();
    open.wait().await;
}

/// Replaces the path of a request by the one to route.
fn drop_slashes(req: &mut Request) {
    let Some(path) = as_routed(req.uri().path()) else {
        return;
    };
    let query = req
        .uri()
        .query()
        .map_or(String::new(), |query| format!("?{query}"));
    if let Ok(plain) = (path + &query).parse() {
        req.head_mut().uri = plain;
    }
}

/// Refuses a connection over the limit.
pub(crate) fn refuse(stream: Accepted, has_tls: bool) {
    // A fresh socket has room for this answer. A client that has already gone needs none, and one
    // that speaks TLS could not read it.
    let _ = match stream {
        _ if has_tls => Ok(0),
        Accepted::Left(stream) => stream.try_write(FULL.as_bytes()),
        Accepted::Right(stream) => stream.try_write(FULL.as_bytes()),
    };
}

/// Answer to a connection over the limit, before its request is read.
const FULL: &str = concat!(
    "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n",
    "content-length: 165\r\nretry-after: 1\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
    r#"{"type":"urn:vesta:problem:unavailable","title":"Unavailable","status":503,"#,
    r#""detail":"connection limit reached; retry later","#,
    r#""kind":"UNAVAILABLE","retryAfterMs":1000}"#
);

/// Answer to a client of gRPC: empty SETTINGS, and a GOAWAY with `HTTP_1_1_REQUIRED` and this text, which clients show.
const GRPC_CLIENT: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x69\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0d\
    this port speaks REST (HTTP/1.1); gRPC has another one: the setting grpc.listen, 50051 by default";

#[cfg(test)]
mod tests {
    use futures_util::stream::pending;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::task::LocalSet;
    use vesta_boot::{Api, CancellationToken};
    use vesta_service::{LocalIdService, MachineSource};

    use super::*;

    /// The paused clock of the runtime advances only when every task waits for it.
    #[tokio::test(start_paused = true)]
    async fn a_stop_waits_for_no_timer() {
        let service = LocalIdService::builder()
            .machine(MachineSource::Stateless(1))
            .build();
        let running = Arc::new(Running {
            config: Config::defaults(&[Api::Rest]),
            service: Arc::new(service.unwrap()),
            segments: None,
            tinyid: None,
            serials: None,
            pool_server: None,
            security: Security::default(),
            metrics: Arc::new(Metrics::new(METHODS)),
            leaving: CancellationToken::new(),
            shutdown: CancellationToken::new(),
        });
        let hosts = Hosts::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let limits = Limits::default();
        let Running {
            config,
            security,
            metrics,
            ..
        } = &*running;
        let limiter = limiter(config, security, metrics, limits);
        let connection = limiter.guard(
            Accepted::Left(stream),
            limiter.try_permit(Some(peer.ip())).unwrap(),
        );
        let incoming = futures_util::stream::iter([Ok(connection)]).chain(pending());

        let worker = LocalSet::new();
        let work = worker.spawn_local(work(incoming, Arc::clone(&running), limits, hosts));
        worker
            .run_until(async {
                client
                    .write_all(b"GET /genid HTTP/1.1\r\nhost: localhost\r\n\r\n")
                    .await
                    .unwrap();
                let mut answer = [0; 999];
                let length = client.read(&mut answer).await.unwrap();
                assert!(answer[..length].starts_with(b"HTTP/1.1 200 OK\r\n"));
                let began = Instant::now();
                running.shutdown.cancel();
                work.await.unwrap();
                assert_eq!(began.elapsed(), Duration::ZERO);
                assert_eq!(client.read(&mut answer).await.unwrap(), 0, "closed");
            })
            .await;
    }

    #[test]
    fn the_answer_to_grpc_is_two_whole_frames() {
        let (settings, goaway) = GRPC_CLIENT.split_at(9);
        assert_eq!(settings, [0, 0, 0, 4, 0, 0, 0, 0, 0]);
        let length = usize::from(goaway[2]);
        assert_eq!(&goaway[3..17], [7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 13]);
        assert_eq!(length, goaway.len() - 9);
    }

    #[test]
    fn the_refusal_is_a_whole_response() {
        let (head, body) = FULL.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}\r\n", body.len())),
            "{}",
            body.len()
        );
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["status"], 503);
    }
}
