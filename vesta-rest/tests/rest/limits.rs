//! Connection limits over real sockets, with short time-outs in place of the real ones.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use vesta_boot::{Api, CancellationToken, Config, Metrics, Running, Security};
use vesta_numbers::segment::SegmentService;
use vesta_rest::{Limits, METHODS, serve_with};
use vesta_service::LocalIdService;
use vesta_service::options::Drive;
use vesta_service::testing::ManualClock;

use crate::support::{Answer, NOW, Raw, builder, service};
use crate::vesta::tiny;

/// A server in this process; it stops on drop.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) security: Security,
    pub(crate) metrics: Arc<Metrics>,
    shutdown: CancellationToken,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Server {
    fn start(service: Arc<LocalIdService>, limits: Limits) -> Self {
        Self::start_with(service, limits, |_| ())
    }

    /// A server with the default limits, and segment mode.
    pub(crate) fn usual(
        service: Arc<LocalIdService>,
        segments: Option<Arc<SegmentService>>,
    ) -> Self {
        Self::start_all(service, segments, Limits::default(), |_| ())
    }

    pub(crate) fn start_with(
        service: Arc<LocalIdService>,
        limits: Limits,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        Self::start_all(service, None, limits, adjust)
    }

    fn start_all(
        service: Arc<LocalIdService>,
        segments: Option<Arc<SegmentService>>,
        limits: Limits,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = Config::defaults(&[Api::Rest]);
        config.limits.workers = 2;
        config.limits.request_timeout = Duration::from_millis(200);
        config.limits.drain_limit = Duration::from_secs(5);
        adjust(&mut config);
        let shutdown = CancellationToken::new();
        let security = config.security().unwrap();
        let tokens = security.auth.as_ref().map_or(0, |auth| auth.tokens().len());
        let metrics = Arc::new(Metrics::new(METHODS).of_tokens(tokens));
        let running = Running {
            config,
            service,
            segments,
            tinyid: None,
            serials: None,
            pool_server: None,
            security: security.clone(),
            metrics: Arc::clone(&metrics),
            leaving: shutdown.child_token(),
            shutdown: shutdown.clone(),
        };
        let listener = listener.try_into().unwrap();
        let thread = std::thread::spawn(move || serve_with(listener, Arc::new(running), limits));
        Self {
            address,
            security,
            metrics,
            shutdown,
            thread: Some(thread),
        }
    }

    fn stop(&mut self) -> std::io::Result<()> {
        self.shutdown.cancel();
        self.thread
            .take()
            .map_or(Ok(()), |thread| thread.join().expect("no panic"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

pub(crate) const PATIENT: Limits = Limits {
    head: Duration::from_secs(60),
    keep_alive: Duration::from_secs(60),
};
/// Short limits; actix counts by a clock that it reads only twice a second.
pub(crate) const HASTY: Limits = Limits {
    head: Duration::from_secs(1),
    keep_alive: Duration::from_secs(60),
};

#[test]
fn the_default_limits_are_those_of_the_design() {
    let Limits { head, keep_alive } = Limits::default();
    assert_eq!(head, Duration::from_secs(5));
    assert!(
        keep_alive > Duration::from_secs(60),
        "longer than common proxies have"
    );
}

#[test]
fn a_silent_connection_is_closed() {
    let server = Server::start(service(), HASTY);
    let silent = Raw::connect(server.address);
    let said = silent.closed();
    assert!(
        said.is_empty() || said.starts_with("HTTP/1.1 408"),
        "{said}"
    );
}

#[test]
fn a_connection_that_stalls_in_a_head_is_closed() {
    let server = Server::start(service(), HASTY);
    let mut first = Raw::connect(server.address);
    first.send("GET /genid HTTP/1.1\r\nhost");
    assert!(first.closed().starts_with("HTTP/1.1 408"));

    let mut second = Raw::connect(server.address);
    assert_eq!(second.get("/genid").status, 200);
    second.send("GET /genid HTTP/1.1\r\nhost");
    assert_eq!(
        second.closed(),
        "",
        "the second request of a connection stalls as well"
    );
}

#[test]
fn a_missing_body_is_408() {
    let server = Server::start(service(), PATIENT);
    let mut client = Raw::connect(server.address);
    client.send("POST /v1/ids:make HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{");
    let detail = client.answer().problem(408, "REQUEST_TIMEOUT");
    assert_eq!(detail, "the body must arrive within 200 ms");
    assert_eq!(client.closed(), "");
}

#[test]
fn an_answer_that_is_not_read_closes_the_connection() {
    let server = Server::start(service(), HASTY);
    let mut client = Raw::connect(server.address);
    // More than the buffers of both sockets hold; none of it is read.
    let request = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: localhost\r\n\r\n";
    client.send(&request.repeat(20));
    let mut healthy = Raw::connect(server.address);
    assert_eq!(healthy.get("/genid").status, 200);
    client.wait_until_the_peer_gave_up();
}

#[test]
fn the_fast_path_answers_as_the_router_does() {
    let server = Server::start(service(), PATIENT);
    let mut client = Raw::connect(server.address);
    let shape = |answer: Answer| {
        let mut headers = answer.headers;
        headers.remove("date");
        assert_eq!(
            headers.remove("content-length"),
            Some(answer.body.len().to_string())
        );
        let digits = answer.body.replace(|c: char| c.is_ascii_digit(), "");
        (answer.status, headers, digits)
    };
    for (path, escaped, around) in [
        ("/genid", "/%67enid", ""),
        ("/v1/id", "/v1/%69d", r#"{"id":""}"#),
    ] {
        let short = shape(client.get(path));
        assert_eq!(
            short,
            shape(client.get(escaped)),
            "escaped, so that only the router knows it"
        );
        assert_eq!((short.0, short.2.as_str()), (200, around));
    }

    client.get("/v1/id?x=1").problem(400, "INVALID");
    assert_eq!(client.get("/genid?format=hex").body.len(), 16);
    client.send("DELETE /genid HTTP/1.1\r\nhost: localhost\r\n\r\n");
    client.answer().problem(405, "METHOD_NOT_ALLOWED");
}

#[test]
fn an_idle_connection_is_kept_for_its_next_request() {
    let limits = Limits {
        keep_alive: Duration::from_secs(1),
        ..HASTY
    };
    let server = Server::start(service(), limits);
    let mut client = Raw::connect(server.address);
    assert_eq!(client.get("/genid").status, 200);
    assert_eq!(client.get("/genid").status, 200);
    assert_eq!(client.closed(), "");
}

#[test]
fn connections_over_the_limit_get_503() {
    let server = Server::start_with(service(), PATIENT, |config| {
        config.limits.max_connections = 2;
        config.limits.max_connections_per_address = Some(2);
    });
    let mut open: Vec<_> = (0..2).map(|_| Raw::connect(server.address)).collect();
    for client in &mut open {
        assert_eq!(client.get("/genid").status, 200);
    }
    let mut third = Raw::connect(server.address);
    let answer = third.answer();
    answer.problem(503, "UNAVAILABLE");
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(third.closed(), "");
    for client in &mut open {
        assert_eq!(
            client.get("/genid").status,
            200,
            "the others are not disturbed"
        );
    }
}

#[test]
fn one_address_gets_at_most_half_of_the_connections() {
    let server = Server::start_with(service(), PATIENT, |config| {
        config.limits.max_connections = 4
    });
    let mut open: Vec<_> = (0..2).map(|_| Raw::connect(server.address)).collect();
    for client in &mut open {
        assert_eq!(client.get("/genid").status, 200);
    }
    Raw::connect(server.address)
        .answer()
        .problem(503, "UNAVAILABLE");
    let url = format!("http://{}/genid", server.address);
    let curl = ["--silent", "--fail", "--interface", "127.0.0.2", &url];
    let curl = std::process::Command::new("curl")
        .args(curl)
        .output()
        .expect("curl");
    assert!(curl.status.success(), "{curl:?}");
}

#[test]
fn a_head_may_come_in_pieces_and_end_its_lines_in_bare_lf() {
    let server = Server::start(service(), PATIENT);
    let right = "GET /genid HTTP/1.1\r\nhost: localhost\r\nx: y\r\n\r\n";
    for at in 0..right.len() {
        let mut client = Raw::connect(server.address);
        client.send(&right[..at]);
        client.send(&right[at..]);
        assert_eq!(client.answer().status, 200, "cut at {at}");
        if right.as_bytes()[at] == b'\r' {
            client.send(&[&right[..at], &right[at + 1..]].concat());
            assert_eq!(client.answer().status, 200, "a bare LF at {at}");
        }
        assert_eq!(
            client.get("/expid?id=1").status,
            200,
            "still in step after {at}"
        );
    }
}

#[test]
fn malformed_oversized_and_ambiguous_heads_are_refused() {
    let server = Server::start(service(), PATIENT);
    let unclear = |end: &str| {
        format!("POST /v1/ids:make HTTP/1.1\r\nhost: localhost\r\n{end}\r\n\r\n0\r\n\r\n")
    };
    for (request, status) in [
        ("nonsense\r\n\r\n".to_owned(), "400"),
        ("GET /genid HTTP/1.1\r\n\r\n".to_owned(), "400"), // no host
        (unclear("content-length: 2\r\ncontent-length: 2"), "400"),
        (
            unclear("content-length: 2\r\ntransfer-encoding: chunked"),
            "400",
        ),
        (
            unclear("transfer-encoding: chunked\r\ntransfer-encoding: chunked"),
            "400",
        ),
        (unclear("transfer-encoding: gzip, chunked"), "400"),
        (unclear("transfer-encoding : chunked"), "400"),
        (
            format!(
                "GET /genid HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
                "x".repeat(1 << 18)
            ),
            "431",
        ),
    ] {
        let mut client = Raw::connect(server.address);
        client.send(&request);
        let said = client.closed();
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{said}");
    }
}

#[test]
fn concurrent_requests_get_distinct_ids_that_increase_on_each_connection() {
    let service = service();
    let server = Server::start(service, PATIENT);
    let address = server.address;
    let clients: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Raw::connect(address);
                let ids = (0..500).map(|_| client.get("/genid").body.parse().unwrap());
                ids.collect::<Vec<u64>>()
            })
        })
        .collect();
    let mut all = std::collections::HashSet::new();
    for client in clients {
        let ids = client.join().unwrap();
        assert!(ids.is_sorted_by(|a, b| a < b));
        for id in ids {
            assert!(all.insert(id), "{id} twice");
        }
    }
    assert_eq!(all.len(), 4000);
}

#[test]
fn a_stop_lets_the_request_in_flight_finish() {
    let clock = ManualClock::at(NOW);
    let service = builder()
        .layout(tiny())
        .pacing(false)
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build()
        .unwrap();
    let mut server = Server::start_with(Arc::new(service), PATIENT, |config| {
        config.limits.request_timeout = Duration::from_secs(2);
    });
    let mut client = Raw::connect(server.address);
    for _ in 0..2 {
        assert_eq!(client.get("/genid").status, 200);
    }
    // Both are in one segment: once the first is answered, the server waits for the second.
    let request = |uri| format!("GET {uri} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    client.send(&(request("/v1/layout") + &request("/genid")));
    assert_eq!(client.answer().status, 200);
    server.shutdown.cancel();
    clock.advance(Duration::from_secs(1));
    let last = client.answer();
    assert_eq!((last.status, last.header("connection")), (200, "close"));
    assert_eq!(client.closed(), "");
    server.stop().unwrap();
}

#[test]
fn a_stop_closes_idle_connections_and_accepts_no_more() {
    let mut server = Server::start(service(), PATIENT);
    let mut client = Raw::connect(server.address);
    assert_eq!(client.get("/genid").status, 200);
    server.stop().unwrap();
    assert_eq!(client.closed(), "");
    assert!(std::net::TcpStream::connect(server.address).is_err());
}
