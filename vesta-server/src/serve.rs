//! Server: its limits, and gRPC on the workers of vesta-boot.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::transport::Server;
use tower::Service;
use vesta_boot::{Config, Metrics, Running, Security};
use vesta_net::{self as net, Incoming, Limiter, Limits, Listening, Misdirected, Threads};

use crate::routes::Services;

/// Time limits of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Time from the accept until TLS (if any) and HTTP/2 are open. Default 5 s.
    pub opening: Duration,
    /// Silence of an open connection before it is pinged. Default 5 s.
    pub silence: Duration,
    /// Time for the answer to that ping. Default 4 s.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            opening: Duration::from_secs(5),
            silence: Duration::from_secs(5),
            answer: Duration::from_secs(4),
        }
    }
}

/// First bytes of every HTTP/2 client: the preface and the head of a SETTINGS frame.
const OPENING: usize = 24 + 9;

/// Streams on one connection at a time.
const STREAMS: u32 = 128;

/// Size of all headers of one request, in bytes.
const HEADERS: u32 = 16 * 1024;

/// Margin after the request's time limit. The handler keeps the limit itself and returns the right
/// error; tonic then ends what never became a request, such as one whose body does not arrive.
const AFTER_THE_LIMIT: Duration = Duration::from_millis(100);

/// Serves gRPC until the program is asked to stop, then drains for at most the drain limit.
///
/// # Errors
/// Fails if a runtime or a thread cannot be created.
pub fn serve(listener: Listening, running: Arc<Running>) -> io::Result<()> {
    serve_with(listener, running, Timeouts::default())
}

/// [`serve`] with other time limits.
///
/// # Errors
/// As for [`serve`].
pub fn serve_with(
    listener: Listening,
    running: Arc<Running>,
    timeouts: Timeouts,
) -> io::Result<()> {
    let services = Services::new(Arc::clone(&running));
    let Running {
        config,
        security,
        metrics,
        ..
    } = &*running;
    let threads = running.threads();
    listen(
        listener,
        (config, security, metrics),
        &threads,
        timeouts,
        services,
    )
}

/// Serves these services on the listener until its threads must stop.
pub(crate) fn listen<S>(
    listener: Listening,
    (config, security, metrics): (&Config, &Security, &Arc<Metrics>),
    threads: &Threads,
    timeouts: Timeouts,
    services: S,
) -> io::Result<()>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    let server = Server::builder()
        .timeout(config.limits.request_timeout + AFTER_THE_LIMIT)
        .max_concurrent_streams(STREAMS)
        .http2_max_header_list_size(HEADERS)
        .http2_keepalive_interval(Some(timeouts.silence))
        .http2_keepalive_timeout(Some(timeouts.answer));
    let age = config.limits.max_connection_age;
    let limits = Limits {
        opening: timeouts.opening,
        opening_bytes: OPENING,
        // Pings detect later stalls.
        stall: Duration::MAX,
        idle: Duration::MAX,
        unused: config.limits.idle_timeout,
        lifetime: match age {
            Duration::MAX => age,
            age => net::oldest(age) + config.limits.max_connection_age_grace,
        },
        misdirected: Some(Misdirected {
            begins: is_http1,
            answer: REST_CLIENT,
        }),
    };
    let limiter = Limiter::new(
        config.limits.max_connections,
        config.limits.per_address(),
        limits,
        security.grpc_tls.clone(),
        Arc::clone(&metrics.connections),
    );

    let stop = threads.shutdown.clone();
    let work = move |incoming: Incoming| {
        let stopped = stop.clone().cancelled_owned();
        let server = match age {
            Duration::MAX => server.clone(),
            // Each worker has its own age: tonic takes one for all connections. With a grace, tonic would send no
            // GOAWAY.
            age => server.clone().max_connection_age(net::jittered(age)),
        };
        let served = { server }.serve_with_incoming_shutdown(services.clone(), incoming, stopped);
        async {
            if let Err(error) = served.await {
                tracing::error!(%error, "a worker has stopped");
            }
        }
    };
    net::serve(listener, threads, &limiter, drop, work)
}

/// True if the first bytes are a method of HTTP/1. TLS begins with another byte, and HTTP/2 with `PRI`, of which they may
/// be a part.
fn is_http1(first: &[u8]) -> bool {
    let preface = &b"PRI"[..first.len().min(3)];
    first.first().is_some_and(u8::is_ascii_uppercase) && !first.starts_with(preface)
}

/// Answer to a client of HTTP/1.
const REST_CLIENT: &[u8] = concat!(
    "HTTP/1.1 421 Misdirected Request\r\ncontent-type: application/problem+json\r\n",
    "content-length: 196\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
    r#"{"type":"urn:vesta:problem:not-found","title":"Not found","status":421,"#,
    r#""detail":"this port speaks gRPC (HTTP/2); REST has another one: the setting http.listen, 8088 by default","#,
    r#""kind":"NOT_FOUND"}"#
)
.as_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http1_is_known_by_its_method_and_a_part_of_a_preface_is_not_refused() {
        for first in ["GET / HTTP/1.1", "POST", "PUT", "O", "PATCH /"] {
            assert!(is_http1(first.as_bytes()), "{first}");
        }
        for first in [
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "P",
            "PR",
            "\u{16}\u{3}\u{1}",
            "",
        ] {
            assert!(!is_http1(first.as_bytes()), "{first}");
        }
    }

    #[test]
    fn the_answer_to_rest_is_a_whole_response() {
        let text = str::from_utf8(REST_CLIENT).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a body");
        assert!(
            head.contains(&format!("content-length: {}\r\n", body.len())),
            "{head}"
        );
        serde_json::from_str::<serde_json::Value>(body).expect("JSON");
    }
}
