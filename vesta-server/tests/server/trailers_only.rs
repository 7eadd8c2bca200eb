//! Errors before the first message, as HTTP/2 frames: one HEADERS frame that ends the stream, and nothing
//! else.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use vesta_boot::{Auth, Scopes, Token};
use vesta_intf::IdMeta;
use vesta_server::Timeouts;

use crate::support::Server;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Every method, and unknown paths.
const METHODS: [&str; 14] = [
    "vesta.v1.IdService/GenId",
    "vesta.v1.IdService/GenIds",
    "vesta.v1.IdService/GenRuns",
    "vesta.v1.IdService/ExpId",
    "vesta.v1.IdService/MakeId",
    "vesta.v1.IdService/TransTime",
    "vesta.v1.SegmentService/NextId",
    "vesta.v1.SegmentService/NextIds",
    "vesta.v1.SerialService/Next",
    "vesta.v1.SerialService/Parse",
    "grpc.health.v1.Health/Check",
    "grpc.health.v1.Health/Watch",
    "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];
const NOWHERE: [&str; 7] = [
    "vesta.v1.IdService/Nothing",
    "vesta.v1.SegmentService/Nothing",
    "vesta.v1.SerialService/Nothing",
    "grpc.health.v1.Health/Nothing",
    "grpc.reflection.v1.ServerReflection/Nothing",
    "vesta.v1.NoService/GenId",
    "",
];
const IDS: [&str; 3] = ["GenId", "GenIds", "GenRuns"];
const REFLECTION: &str = "grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame").to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// A gRPC message whose length and compression flag may be false.
fn message(compressed: u8, length: u32, bytes: &[u8]) -> Vec<u8> {
    [&[compressed], &length.to_be_bytes()[..], bytes].concat()
}

fn of(bytes: &[u8]) -> Vec<u8> {
    message(0, u32::try_from(bytes.len()).expect("a length"), bytes)
}

/// A connection with one request in flight.
struct Asked(TcpStream);

impl Asked {
    /// Without a message, the request stays open.
    fn new(server: &Server, path: &str, message: &[u8], more: &[(&str, &str)]) -> Self {
        let mut socket = TcpStream::connect(server.address).expect("a connection");
        socket
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a time-out");
        let path = format!("/{path}");
        let headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", &*path),
            (":authority", "localhost"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ];
        let length = |text: &str| u8::try_from(text.len()).ok().filter(|length| *length < 127);
        let mut block = Vec::new();
        for (name, value) in headers.iter().chain(more) {
            block.push(0); // literal, not indexed, with a new name
            for text in [name, value] {
                block.push(length(text).expect("a short text"));
                block.extend(text.as_bytes());
            }
        }
        let data = match message {
            [] => vec![],
            message => frame(DATA, END_STREAM, 1, message),
        };
        let request = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 0, 0, &[]),
            frame(HEADERS, END_HEADERS, 1, &block),
            data,
        ];
        socket.write_all(&request.concat()).expect("a request");
        Self(socket)
    }

    /// Kind and flags of the next frame of the answer.
    fn frame(&mut self) -> (u8, u8) {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).expect("a frame");
            let [a, b, c, kind, flags, .., stream] = head;
            let length = u32::from_be_bytes([0, a, b, c]);
            let mut payload = vec![0; usize::try_from(length).expect("it fits")];
            self.0.read_exact(&mut payload).expect("the whole frame");
            if stream == 1 {
                return (kind, flags);
            }
        }
    }
}

#[track_caller]
fn fails(server: &Server, path: &str, message: &[u8], more: &[(&str, &str)]) {
    let frame = Asked::new(server, path, message, more).frame();
    assert_eq!(
        frame,
        (HEADERS, END_HEADERS | END_STREAM),
        "{path} {message:?}"
    );
}

fn server() -> Server {
    Server::with(IdMeta::MAX_PEAK, Timeouts::default(), |config| {
        config.limits.request_timeout = Duration::from_millis(200);
    })
}

#[test]
fn a_call_that_succeeds_is_not_trailers_only() {
    let server = server();
    for (path, message) in [
        ("vesta.v1.IdService/GenId", of(b"")),
        (REFLECTION, of(b"\x3a\0")), // the services
        ("grpc.health.v1.Health/Watch", of(b"\x0a\x07nothing")), // an unknown service, answered by a status of its own
    ] {
        let mut asked = Asked::new(&server, path, &message, &[]);
        assert_eq!(
            [asked.frame(), asked.frame()],
            [(HEADERS, END_HEADERS), (DATA, 0)],
            "{path}"
        );
    }
}

#[test]
fn refusals_of_methods_are_trailers_only() {
    let server = server();
    let zero = of(b"\x08\x00"); // the first field is 0
    let large = of(b"\x08\xff\xff\xff\xff\x0f"); // or 2^32 - 1
    for path in ["GenIds", "GenRuns"] {
        fails(&server, &format!("vesta.v1.IdService/{path}"), &zero, &[]);
    }
    for path in ["GenIds", "GenRuns", "TransTime"] {
        fails(&server, &format!("vesta.v1.IdService/{path}"), &large, &[]);
    }
    fails(
        &server,
        "vesta.v1.IdService/MakeId",
        &of(b"\x18\x80\x08"),
        &[],
    ); // machine 1024
    let tag = of(b"\x0a\x01t"); // segments and serials are off
    for path in [
        "SegmentService/NextId",
        "SegmentService/NextIds",
        "SerialService/Next",
    ] {
        fails(&server, &format!("vesta.v1.{path}"), &tag, &[]);
    }
    fails(&server, "vesta.v1.SerialService/Parse", &tag, &[]);
    fails(
        &server,
        "grpc.health.v1.Health/Check",
        &of(b"\x0a\x07nothing"),
        &[],
    );
    for version in ["v1", "v1alpha"] {
        let path = format!("grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        fails(&server, &path, &of(b""), &[]); // no request
        fails(&server, &path, &of(b"\x22\x07nothing"), &[]); // an unknown name
    }
}

#[test]
fn requests_that_reach_no_method_fail_trailers_only() {
    let server = server();
    for path in NOWHERE {
        fails(&server, path, &of(b""), &[]);
    }
    let too_large = message(0, 65_537, b"");
    for path in METHODS {
        fails(&server, path, &too_large, &[]);
        fails(&server, path, &of(b"\xff"), &[]); // not a protobuf message
        fails(&server, path, &message(1, 1, b"x"), &[]); // compressed, without naming an encoding
        fails(&server, path, &message(9, 1, b"x"), &[]); // an undefined flag
    }
}

#[test]
fn a_call_without_a_token_is_trailers_only() {
    let server = Server::with(IdMeta::MAX_PEAK, Timeouts::default(), |config| {
        config.auth = Some(Auth::new(vec![Token::of_text("reader", "t", Scopes::READ)]));
    });
    for path in METHODS
        .into_iter()
        .chain(NOWHERE)
        .filter(|path| !path.contains("Health"))
    {
        fails(&server, path, &of(b""), &[]);
        fails(&server, path, &of(b""), &[("authorization", "Bearer x")]);
    }
    for path in IDS {
        let token = ("authorization", "Bearer t"); // of another scope
        fails(
            &server,
            &format!("vesta.v1.IdService/{path}"),
            &of(b"\x08\x01"),
            &[token],
        );
    }
}

#[test]
fn a_server_without_ids_answers_trailers_only() {
    let server = server();
    server.use_up();
    // The server's clock stands still: no ID is ready within the caller's time.
    for path in IDS {
        let path = format!("vesta.v1.IdService/{path}");
        fails(&server, &path, &of(b"\x08\x01"), &[("grpc-timeout", "50m")]);
    }
    server.service.close();
    for path in IDS {
        fails(
            &server,
            &format!("vesta.v1.IdService/{path}"),
            &of(b"\x08\x01"),
            &[],
        );
    }
}

#[test]
fn a_waiting_stream_gets_its_head_early_and_a_late_one_is_trailers_only() {
    let server = server();
    let frame = Asked::new(&server, REFLECTION, b"", &[]).frame();
    assert_eq!(frame, (HEADERS, END_HEADERS));
    fails(&server, REFLECTION, b"", &[("grpc-timeout", "50m")]);
}
