//! Messages of arbitrary bytes and numbers to every method: each call ends with a gRPC status. Changes of a pool server's
//! entries that are nearly right: none harms a member.

mod changes;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::codegen::{Bytes, Service};
use vesta_boot::{Api, CancellationToken, Config, Metrics, Offered, Running, Security};
use vesta_intf::{GenMethod, UnixMillis};
use vesta_numbers::segment::{NewSegmentTag, SegmentService, SegmentStore as _};
use vesta_numbers::serial::{NewSerialTag, SerialService};
use vesta_numbers::serial::{Pattern, Reset};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_service::options::Drive;
use vesta_service::testing::{ManualClock, MemoryStore};
use vesta_service::{LocalIdService, MachineSource};

use crate::routes::Services;

/// Every method, and an unknown one.
const PATHS: [&str; 17] = [
    "/vesta.v1.IdService/GenId",
    "/vesta.v1.IdService/GenIds",
    "/vesta.v1.IdService/GenRuns",
    "/vesta.v1.IdService/ExpId",
    "/vesta.v1.IdService/MakeId",
    "/vesta.v1.IdService/TransTime",
    "/vesta.v1.SegmentService/NextId",
    "/vesta.v1.SegmentService/NextIds",
    "/vesta.v1.SerialService/Next",
    "/vesta.v1.SerialService/Parse",
    "/vesta.v1.PoolService/Open",
    "/vesta.v1.PoolService/List",
    "/vesta.v1.PoolService/Get",
    "/vesta.v1.PoolService/Put",
    "/grpc.health.v1.Health/Check",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/vesta.v1.IdService/Nothing",
];

/// Maximum frames read from an answer.
const FRAMES: usize = 5;

struct Server {
    runtime: Runtime,
    clock: ManualClock,
    services: Mutex<Services>,
    /// The store that it offers as a pool server.
    store: Arc<MemoryStore>,
}

impl Server {
    fn new() -> Self {
        Self::checking(true)
    }

    /// A server whose pool server checks what it is sent, or not.
    fn checking(checked: bool) -> Self {
        let clock = ManualClock::at(UnixMillis(1_767_225_600_000));
        let service = LocalIdService::builder()
            .gen_method(GenMethod::Central)
            .machine(MachineSource::Stateless(1021))
            .clock(Arc::new(clock.clone()))
            .drive(Drive::ByHand)
            .build()
            .expect("a service");
        let store = Arc::new(MemorySegmentStore::new());
        let tag = NewSegmentTag::new("orders", 1_000_000).expect("it is right");
        assert!(store.create(&tag).expect("memory answers"));
        let segments = SegmentService::builder(store).build().expect("segments");
        segments.refresh().expect("memory answers");
        let serials = SerialService::builder(Arc::new(MemoryStore::new())).build();
        let serials = serials.expect("serials");
        let pattern = Pattern::new("{n:9}{check:damm}", Reset::Never).expect("it is right");
        let tag = NewSerialTag::new("orders", pattern, None).expect("it is right");
        assert_eq!(
            serials.create(&tag).expect("memory answers"),
            vesta_numbers::Created::New
        );
        let mut config = Config::defaults(&[Api::Grpc]);
        config.limits.request_timeout = Duration::from_millis(20);
        config.pool_server.namespaces = ["orders".to_owned()].into();
        let store = Arc::new(MemoryStore::new());
        let mut offered = Offered::new(store.clone());
        offered.checked = checked;
        let running = Running {
            config,
            service: Arc::new(service),
            segments: Some(Arc::new(segments)),
            tinyid: None,
            serials: Some(Arc::new(serials)),
            pool_server: Some(offered),
            security: Security::default(),
            metrics: Arc::new(Metrics::new(crate::METHODS)),
            leaving: CancellationToken::new(),
            shutdown: CancellationToken::new(),
        };
        let services = Mutex::new(Services::new(Arc::new(running)));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Self {
            runtime: runtime.expect("a runtime"),
            clock,
            services,
            store,
        }
    }

    /// The status of a call.
    fn call(&self, path: &str, headers: &[(&'static str, String)], body: Vec<u8>) -> String {
        self.clock.advance(Duration::from_secs(1)); // IDs for this call
        let mut request = Request::post(path).header("content-type", "application/grpc");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request
            .body(Body::new(Full::new(Bytes::from(body))))
            .expect("a request");
        let answer = self.services.lock().expect("no panic").call(request);
        let status = async { self.status_of(answer.await.expect("infallible")).await };
        self.runtime.block_on(status)
    }

    async fn status_of(&self, answer: Response<Body>) -> String {
        assert_eq!(answer.status(), 200, "every gRPC answer is a 200 of HTTP");
        assert_eq!(
            answer.headers().get("content-type").expect("one"),
            "application/grpc"
        );
        if let Some(status) = status_in(answer.headers()) {
            return status;
        }
        let mut body = answer.into_body();
        for _ in 0..FRAMES {
            let frame = body
                .frame()
                .await
                .expect("no end without a status")
                .expect("no broken body");
            if let Some(trailers) = frame.trailers_ref() {
                return status_in(trailers).expect("a status");
            }
        }
        panic!("no end after {FRAMES} frames")
    }
}

fn status_in(headers: &HeaderMap) -> Option<String> {
    Some(
        headers
            .get("grpc-status")?
            .to_str()
            .expect("digits")
            .to_owned(),
    )
}

/// Boundary values of fields and limits.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    127,
    128,
    1_023,
    1_024,
    10_000,
    10_001,
    1_048_576,
    1_048_577,
    u32::MAX as u64,
    1 << 32,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

const TIMEOUTS: [&str; 10] = [
    "1S",
    "0n",
    "1n",
    "99999999H",
    "100000000S",
    "-1S",
    "S",
    "",
    "1",
    "1 m",
];

/// A field of a message: number, wire type and contents.
type Field = (u8, u8, u64, Vec<u8>);

/// A call: method, form, headers, fields, and raw bytes that replace them.
type Call = (u8, u8, u8, Vec<Field>, Vec<u8>);

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 127 {
        out.push(number.to_le_bytes()[0] | 128);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn message(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, wire, value, bytes) in fields.iter().take(8) {
        let wire = if wire % 8 == 7 {
            wire / 8 % 8
        } else {
            [0, 0, 0, 1, 2][usize::from(wire % 5)]
        };
        let value = EDGES
            .get(usize::from(value.to_le_bytes()[7] % 24))
            .unwrap_or(value);
        varint(u64::from(number % 9) << 3 | u64::from(wire), &mut out);
        match wire {
            0 => varint(*value, &mut out),
            1 => out.extend(value.to_le_bytes()),
            5 => out.extend(&value.to_le_bytes()[..4]),
            _ => {
                let text = if bytes.len() % 3 == 0 {
                    &b"orders"[..]
                } else {
                    bytes
                };
                varint(text.len() as u64, &mut out);
                out.extend(text);
            }
        }
    }
    out
}

fn frame(flag: u8, length: usize, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    [&[flag][..], &length.to_be_bytes(), message].concat()
}

fn check(server: &Server, (method, form, header, fields, bytes): &Call) {
    let path = PATHS[usize::from(*method) % PATHS.len()];
    let (known, well) = (message(fields), bytes.len());
    let body = match form % 8 {
        0 => bytes.clone(),
        1 => frame(0, well, bytes),
        2 => frame(*header, well + usize::from(*form), bytes),
        3 => [frame(0, known.len(), &known), frame(0, well, bytes)].concat(),
        4 => frame(0, usize::MAX, &known),
        _ => frame(0, known.len(), &known),
    };
    let mut headers = Vec::new();
    if header % 3 == 0 {
        headers.push((
            "grpc-timeout",
            TIMEOUTS[usize::from(header / 3) % 10].to_owned(),
        ));
    }
    if header % 7 == 0 {
        headers.push(("grpc-encoding", "gzip".to_owned()));
    }
    let status = server.call(path, &headers, body);
    // 2 (unknown) would be an error without a mapped status.
    let known: u8 = status.parse().expect("a number");
    assert!(known <= 16 && known != 2, "{path} ends with {status}");
}

#[test]
fn calls_of_any_bytes_and_numbers() {
    let server = AssertUnwindSafe(Server::new());
    bolero::check!()
        .with_iterations(vesta_testkit::full_or(20_000, 4_000))
        .with_type()
        .for_each(|call: &Call| check(&server, call));
}

#[test]
fn a_plain_call_is_answered() {
    let server = Server::new();
    let plain = |path, message: &[u8]| server.call(path, &[], frame(0, message.len(), message));
    assert_eq!(plain("/vesta.v1.IdService/GenId", b""), "0");
    assert_eq!(plain("/vesta.v1.IdService/GenIds", b"\x08\x03"), "0");
    assert_eq!(plain("/vesta.v1.IdService/GenIds", b"\x08\x00"), "3");
    assert_eq!(
        plain("/vesta.v1.SegmentService/NextId", b"\x0a\x06orders"),
        "0"
    );
    assert_eq!(plain("/vesta.v1.IdService/Nothing", b""), "12");
}

#[test]
#[should_panic(expected = "no end without a status")]
fn a_missing_status_is_noticed() {
    let answer = Response::builder().header("content-type", "application/grpc");
    let answer = answer.body(Body::new(Full::new(Bytes::from_static(b"\0\0\0\0\0"))));
    let server = Server::new();
    server
        .runtime
        .block_on(server.status_of(answer.expect("an answer")));
}
