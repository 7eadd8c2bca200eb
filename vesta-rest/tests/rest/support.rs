//! An application over a scripted clock, and hand-written HTTP/1.1.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use actix_web::body::to_bytes;
use actix_web::dev::Service;
use actix_web::test::{self, TestRequest};
use actix_web::{App, web};
use serde_json::Value;
use vesta_boot::{Api, CancellationToken, Config, Metrics, Running, Security};
use vesta_intf::{GenMethod, IdMeta, UnixMillis};
use vesta_numbers::segment::SegmentService;
use vesta_rest::app::configure;
use vesta_service::options::Drive;
use vesta_service::testing::ManualClock;
use vesta_service::{Builder, LocalIdService, MachineSource};

/// 2026-01-01T00:00:00Z.
pub(crate) const NOW: UnixMillis = UnixMillis(1_767_225_600_000);

/// The machine ID of every service in these tests.
pub(crate) const MACHINE: u64 = 1021;

/// A service as vesta-rest builds it, over a clock that stands still.
pub(crate) fn builder() -> Builder {
    LocalIdService::builder()
        .gen_method(GenMethod::Rest)
        .machine(MachineSource::Stateless(MACHINE))
        .clock(Arc::new(ManualClock::at(NOW)))
        .drive(Drive::ByHand)
}

pub(crate) fn service() -> Arc<LocalIdService> {
    Arc::new(builder().build().unwrap())
}

pub(crate) fn service_of(layout: IdMeta) -> Arc<LocalIdService> {
    let machine = MACHINE.min(layout.max(vesta_intf::Field::Machine));
    Arc::new(
        builder()
            .layout(layout)
            .machine(MachineSource::Stateless(machine))
            .build()
            .unwrap(),
    )
}

pub(crate) fn state(service: Arc<LocalIdService>) -> web::Data<Running> {
    state_with(service, None)
}

pub(crate) fn state_with(
    service: Arc<LocalIdService>,
    segments: Option<Arc<SegmentService>>,
) -> web::Data<Running> {
    web::Data::new(running(service, segments))
}

pub(crate) fn running(
    service: Arc<LocalIdService>,
    segments: Option<Arc<SegmentService>>,
) -> Running {
    Running {
        config: Config::defaults(&[Api::Rest]),
        service,
        segments,
        tinyid: None,
        serials: None,
        pool_server: None,
        security: Security::default(),
        metrics: Arc::new(Metrics::new(vesta_rest::METHODS)),
        leaving: CancellationToken::new(),
        shutdown: CancellationToken::new(),
    }
}

/// An answer from the application or from a socket.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The detail of a problem, after checking the shape that every problem has.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, kind: &str) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{self:?}"
        );
        let body = self.json();
        assert_eq!(body["status"], status, "{self:?}");
        assert_eq!(body["kind"], kind, "{self:?}");
        let urn = format!(
            "urn:vesta:problem:{}",
            kind.to_ascii_lowercase().replace('_', "-")
        );
        assert_eq!(body["type"], urn, "{self:?}");
        assert!(
            body["title"]
                .as_str()
                .is_some_and(|title| !title.is_empty()),
            "{self:?}"
        );
        body["detail"].as_str().unwrap().to_owned()
    }
}

/// Sends a request to an application made for it.
pub(crate) async fn ask(service: &Arc<LocalIdService>, request: TestRequest) -> Answer {
    ask_with(state(service.clone()), request).await
}

pub(crate) async fn ask_with(state: web::Data<Running>, request: TestRequest) -> Answer {
    let app = test::init_service(App::new().configure(|app| configure(app, state))).await;
    let response = app.call(request.to_request()).await.unwrap();
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    let body = to_bytes(response.into_body()).await.unwrap();
    Answer {
        status,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

pub(crate) async fn get(service: &Arc<LocalIdService>, uri: &str) -> Answer {
    ask(service, TestRequest::get().uri(uri)).await
}

pub(crate) async fn get_at(state: &web::Data<Running>, uri: &str) -> Answer {
    ask_with(state.clone(), TestRequest::get().uri(uri)).await
}

pub(crate) async fn get_with(
    service: &Arc<LocalIdService>,
    uri: &str,
    header: (&'static str, &str),
) -> Answer {
    ask(service, TestRequest::get().uri(uri).insert_header(header)).await
}

pub(crate) async fn post(
    service: &Arc<LocalIdService>,
    uri: &str,
    body: impl Into<String>,
) -> Answer {
    let request = TestRequest::post()
        .uri(uri)
        .insert_header(("content-type", "application/json"))
        .set_payload(body.into());
    ask(service, request).await
}

/// A connection for hand-written HTTP/1.1. It never waits longer than 20 s.
#[derive(Debug)]
pub(crate) struct Raw {
    stream: TcpStream,
    seen: Vec<u8>,
}

impl Raw {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
            .set_write_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Self {
            stream,
            seen: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: &str) {
        self.stream.write_all(bytes.as_bytes()).unwrap();
    }

    pub(crate) fn get(&mut self, uri: &str) -> Answer {
        self.send(&format!("GET {uri} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
        self.answer()
    }

    /// Reads one answer; its body must have a length.
    pub(crate) fn answer(&mut self) -> Answer {
        let head = loop {
            if let Some(end) = self.seen.windows(4).position(|w| w == b"\r\n\r\n") {
                break self.seen.drain(..end + 4).collect::<Vec<_>>();
            }
            assert!(self.more() > 0, "closed before an answer: {:?}", self.seen);
        };
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let mut headers = BTreeMap::<_, String>::new();
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            let values = headers.entry(name.to_ascii_lowercase()).or_default();
            let separator = if values.is_empty() { "" } else { ", " };
            values.extend([separator, value]);
        }
        let length = headers
            .get("content-length")
            .map_or(0, |length| length.parse().unwrap());
        while self.seen.len() < length {
            assert!(self.more() > 0, "closed inside an answer");
        }
        let body = self.seen.drain(..length).collect::<Vec<_>>();
        Answer {
            status,
            headers,
            body: String::from_utf8(body).unwrap(),
        }
    }

    fn more(&mut self) -> usize {
        let mut chunk = [0; 4096];
        let read = self.stream.read(&mut chunk).unwrap();
        self.seen.extend_from_slice(&chunk[..read]);
        read
    }

    /// Waits for the server to close the connection; returns what it sent before.
    pub(crate) fn closed(mut self) -> String {
        let mut said = self.seen;
        match self.stream.read_to_end(&mut said) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("still open: {error}"),
        }
        String::from_utf8(said).unwrap()
    }
}

impl Raw {
    /// Sends until the peer resets the connection, reading nothing.
    pub(crate) fn wait_until_the_peer_gave_up(mut self) {
        let chunk = [b' '; 65_536];
        loop {
            match self.stream.write(&chunk) {
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe
                    ) =>
                {
                    return;
                }
                Err(error) => panic!("still open: {error}"),
            }
        }
    }
}
