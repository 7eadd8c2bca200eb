//! Connections that only answer pings: how many one address may hold, and for how long.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::Server;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use vesta_intf::IdMeta;
use vesta_intf::grpc::v1::GenIdRequest;
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;
use vesta_server::Timeouts;

const SHORT: Duration = Duration::from_millis(50);
const PINGED: Timeouts = Timeouts {
    opening: Duration::from_secs(60),
    silence: SHORT,
    answer: Duration::from_secs(60),
};
const OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const DATA: u8 = 0;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// A peer that sends `opening` and then only answers pings. Its thread ends with the connection and
/// returns the number of pings, and of bytes of data.
fn only_answers_pings(server: &Server, opening: &[u8]) -> JoinHandle<(u32, u32)> {
    let mut socket = TcpStream::connect(server.address).expect("a connection");
    let _ = socket.write_all(opening); // it may be closed already
    std::thread::spawn(move || {
        let (mut pings, mut data) = (0, 0);
        let mut head = [0; 9];
        while socket.read_exact(&mut head).is_ok() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).expect("a length")];
            if socket.read_exact(&mut payload).is_err() || head[3] == GOAWAY {
                break;
            }
            if head[3] == DATA {
                data += length;
            }
            if head[3] == PING && head[4] == 0 {
                pings += 1;
                let _ = socket.write_all(&[&[0, 0, 8, PING, 1, 0, 0, 0, 0][..], &payload].concat());
            }
        }
        (pings, data)
    })
}

async fn from_another_address(server: &Server) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{}", server.address)).expect("a URL");
    let other = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    endpoint
        .local_address(Some(other))
        .connect()
        .await
        .expect("a connection")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_address_gets_at_most_half_of_the_connections() {
    let mut server = Server::with(IdMeta::MAX_PEAK, PINGED, |config| {
        config.limits.max_connections = 8;
    });
    let peers: Vec<_> = (0..8)
        .map(|_| only_answers_pings(&server, OPENING))
        .collect();
    let mut client = IdServiceClient::new(from_another_address(&server).await);
    client.gen_id(GenIdRequest {}).await.expect("an ID");
    // Accepted in order: the connections before this client were counted.
    assert_eq!(server.metrics.connections.refused(), 4);
    assert_eq!(
        peers
            .iter()
            .filter(|peer| !peer.is_finished())
            .count()
            .min(4),
        4
    );
    drop(client);
    server.stop();
    let pings = peers.into_iter().map(|peer| peer.join().expect("no panic"));
    assert!(
        pings.filter(|(pings, _)| *pings == 0).count() >= 4,
        "the refused were never pinged"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_without_requests_ends_and_an_open_stream_keeps_it() {
    let server = Server::with(IdMeta::MAX_PEAK, PINGED, |config| {
        config.limits.idle_timeout = SHORT * 5;
    });
    let mut health = HealthClient::new(from_another_address(&server).await);
    let request = HealthCheckRequest {
        service: String::new(),
    };
    let mut watch = health.watch(request).await.expect("a stream").into_inner();
    watch.message().await.expect("a message");
    // One after another, so that the stream outlives several time limits.
    for _ in 0..3 {
        let peer = only_answers_pings(&server, OPENING);
        let pings = tokio::task::spawn_blocking(|| peer.join())
            .await
            .expect("no panic");
        assert!(
            pings.expect("no panic").0 > 0,
            "it was pinged, it answered, and it was closed"
        );
    }
    server.shutdown.cancel();
    watch
        .message()
        .await
        .expect("the stream is open")
        .expect("a last message");
}

#[test]
fn an_unread_stream_does_not_keep_its_connection() {
    let server = Server::with(IdMeta::MAX_PEAK, PINGED, |config| {
        config.limits.idle_timeout = SHORT * 5;
    });
    let request = b"\0\0\0\0\x14\x22\x12vesta.v1.IdService"; // its description, of more than 10 kB
    let stream = stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        &request.repeat(20),
    );
    let peer = only_answers_pings(&server, &[OPENING, &stream].concat());
    let (pings, data) = peer.join().expect("no panic");
    assert!(pings > 0);
    assert_eq!(data, 65_535, "the first window of a stream");
}

/// The types of the frames that a connection with this opening gets until it ends.
fn frames_until_the_end(server: &Server, opening: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(server.address).expect("a connection");
    socket.write_all(opening).expect("it is open");
    let (mut kinds, mut head) = (Vec::new(), [0; 9]);
    while socket.read_exact(&mut head).is_ok() {
        kinds.push(head[3]);
        let length = u64::from(u32::from_be_bytes([0, head[0], head[1], head[2]]));
        let skipped = std::io::copy(&mut (&socket).take(length), &mut std::io::sink());
        if skipped.is_err() {
            break;
        }
    }
    kinds
}

#[test]
fn an_old_connection_is_told_to_go_away_and_its_stream_ended_after_the_grace() {
    let server = Server::with(IdMeta::MAX_PEAK, Timeouts::default(), |config| {
        config.limits.max_connection_age = SHORT;
        config.limits.max_connection_age_grace = SHORT;
    });
    let watch = stream("/grpc.health.v1.Health/Watch", &[0; 5]);
    for opening in [OPENING.to_vec(), [OPENING, &watch].concat()] {
        // The server is not stopped, and idle connections stay for minutes: only the age ends it.
        let kinds = frames_until_the_end(&server, &opening);
        assert!(kinds.contains(&GOAWAY), "{kinds:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_does_not_notice_that_its_connections_are_replaced() {
    let server = Server::with(IdMeta::MAX_PEAK, Timeouts::default(), |config| {
        config.limits.max_connection_age = Duration::from_millis(5);
    });
    let mut client = server.client().await;
    let mut last = 0;
    // Connections of 5 ms, until several have been replaced.
    while server.metrics.connections.accepted() < 4 {
        let id = client.gen_id(GenIdRequest {}).await.expect("an ID");
        let id = id.into_inner().id;
        assert!(id > last, "{id} after {last}");
        last = id;
    }
}

/// HEADERS and DATA of a call.
fn stream(path: &str, messages: &[u8]) -> Vec<u8> {
    let mut headers = vec![0x83, 0x86]; // :method POST, :scheme http
    for (name, value) in [
        (":path", path),
        (":authority", "test"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        headers.push(0); // a literal, not indexed
        for text in [name, value] {
            headers.push(u8::try_from(text.len()).expect("a short text"));
            headers.extend(text.as_bytes());
        }
    }
    let frame = |kind, flags, payload: &[u8]| {
        let length = u16::try_from(payload.len()).expect("a short frame");
        let [high, low] = length.to_be_bytes();
        [&[0, high, low, kind, flags, 0, 0, 0, 1], payload].concat()
    };
    [frame(1, 4, &headers), frame(DATA, 1, messages)].concat()
}
