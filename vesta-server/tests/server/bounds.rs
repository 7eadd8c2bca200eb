//! Limits that HTTP/2 and gRPC define.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use tonic::{Code, Request};
use vesta_intf::IdMeta;
use vesta_intf::grpc::v1;

use crate::support::Server;

/// SETTINGS_MAX_CONCURRENT_STREAMS and SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113, section 6.5.2).
const STREAMS: u16 = 3;
const HEADERS: u16 = 6;

#[test]
fn settings_announce_the_limits_of_streams_and_headers() {
    let server = Server::start(IdMeta::MAX_PEAK);
    let mut socket = TcpStream::connect(server.address).expect("a connection");
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a time-out");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    socket.write_all(preface).expect("an opening");
    let mut head = [0; 9];
    socket.read_exact(&mut head).expect("a frame");
    let [_, high, low, kind, ..] = head;
    assert_eq!(kind, 4, "a frame of settings");
    let mut settings = vec![0; usize::from(u16::from_be_bytes([high, low]))];
    socket.read_exact(&mut settings).expect("settings");
    let value = |name: u16| {
        let found = settings
            .chunks_exact(6)
            .find(|it| it[..2] == name.to_be_bytes());
        found.map(|it| u32::from_be_bytes([it[2], it[3], it[4], it[5]]))
    };
    assert_eq!(value(STREAMS), Some(128));
    assert_eq!(value(HEADERS), Some(16 * 1024));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn headers_beyond_16_kib_are_refused_and_the_connection_lives_on() {
    let server = Server::start(IdMeta::MAX_PEAK);
    let mut client = server.client().await;
    for (bytes, fits) in [(15 * 1024, true), (17 * 1024, false), (100 * 1024, false)] {
        let mut request = Request::new(v1::GenIdRequest {});
        let header = "x".repeat(bytes).parse().expect("a header");
        request.metadata_mut().insert("x-large", header);
        assert_eq!(client.gen_id(request).await.is_ok(), fits, "{bytes}");
        client.gen_id(v1::GenIdRequest {}).await.expect("an ID");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_service_reads_a_request_beyond_64_kib() {
    let server = Server::start(IdMeta::MAX_PEAK);
    for path in [
        "/vesta.v1.IdService/GenId",
        "/vesta.v1.IdService/GenRuns",
        "/vesta.v1.SegmentService/NextId",
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
    ] {
        for (bytes, code) in [(63 * 1024, None), (65 * 1024, Some(Code::OutOfRange))] {
            let mut raw = tonic::client::Grpc::new(server.channel().await);
            raw.ready().await.expect("a connection");
            // The text is field 1; a message without a text there ignores it as unknown.
            let large = tonic_health::pb::HealthCheckRequest {
                service: "x".repeat(bytes),
            };
            let codec = tonic_prost::ProstCodec::<_, v1::GenIdResponse>::default();
            let answer = raw
                .unary(Request::new(large), path.parse().expect("a path"), codec)
                .await;
            let refused = answer.err().map(|status| status.code()) == Some(Code::OutOfRange);
            assert_eq!(refused, code.is_some(), "{path} {bytes}");
        }
    }
}
