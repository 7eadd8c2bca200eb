//! Health, reflection, limits and shutdown.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::Server;
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::{v1, v1alpha};
use vesta_intf::IdMeta;
use vesta_intf::grpc::v1 as vesta;
use vesta_server::Timeouts;

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: service.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_knows_the_server_and_its_service() {
    let server = Server::start(IdMeta::MAX_PEAK);
    let mut client = HealthClient::new(server.channel().await);
    for name in ["", "vesta.v1.IdService"] {
        let answer = client
            .check(of(name))
            .await
            .expect("an answer")
            .into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{name}");
    }
    let answer = client
        .check(of("vesta.v1.NoService"))
        .await
        .expect_err("no such service");
    assert_eq!(answer.code(), Code::NotFound);
    let mut watch = client
        .watch(of("vesta.v1.NoService"))
        .await
        .expect("a stream")
        .into_inner();
    let first = watch
        .message()
        .await
        .expect("a message")
        .expect("a message");
    assert_eq!(first.status(), ServingStatus::ServiceUnknown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_service_that_has_stopped_is_not_serving() {
    let server = Server::start(IdMeta::MAX_PEAK);
    let mut client = HealthClient::new(server.channel().await);
    server.service.close();
    let answer = client.check(of("")).await.expect("an answer").into_inner();
    assert_eq!(answer.status(), ServingStatus::NotServing);
    let status = server.client().await.gen_id(vesta::GenIdRequest {}).await;
    assert_eq!(
        status.expect_err("no IDs any more").code(),
        Code::Unavailable
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_flips_on_drain_and_a_watch_does_not_delay_it() {
    let mut server = Server::start(IdMeta::MAX_PEAK);
    let mut client = HealthClient::new(server.channel().await);
    let mut watch = client.watch(of("")).await.expect("a stream").into_inner();
    let state = |answer: Option<HealthCheckResponse>| answer.map(|it| it.status());
    assert_eq!(
        state(watch.message().await.expect("a message")),
        Some(ServingStatus::Serving)
    );
    server.shutdown.cancel();
    assert_eq!(
        state(watch.message().await.expect("a message")),
        Some(ServingStatus::NotServing)
    );
    assert_eq!(state(watch.message().await.expect("an end")), None);
    server.stop();
    assert!(
        TcpStream::connect(server.address).is_err(),
        "the listener is closed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_flips_before_the_stop_while_new_connections_are_served() {
    let mut server = Server::start(IdMeta::MAX_PEAK);
    let mut watch = HealthClient::new(server.channel().await);
    let mut watch = watch.watch(of("")).await.expect("a stream").into_inner();
    let state = |answer: Option<HealthCheckResponse>| answer.map(|it| it.status());
    assert_eq!(
        state(watch.message().await.expect("a message")),
        Some(ServingStatus::Serving)
    );
    server.leaving.cancel();
    assert_eq!(
        state(watch.message().await.expect("a message")),
        Some(ServingStatus::NotServing)
    );
    for service in ["", "vesta.v1.IdService"] {
        let answer = HealthClient::new(server.channel().await)
            .check(of(service))
            .await;
        let status = answer.expect("an answer").into_inner().status();
        assert_eq!(status, ServingStatus::NotServing, "{service}");
    }
    server
        .client()
        .await
        .gen_id(vesta::GenIdRequest {})
        .await
        .expect("an ID");
    server.shutdown.cancel();
    assert_eq!(state(watch.message().await.expect("an end")), None);
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn reflection_has_the_services_and_the_details_of_errors() {
    let expected = [
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "vesta.v1.IdService",
        "vesta.v1.SegmentService",
    ];
    let server = Server::start(IdMeta::MAX_PEAK);
    let channel = server.channel().await;

    let list = v1::server_reflection_request::MessageRequest::ListServices(String::new());
    let request = v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(list),
    };
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel.clone());
    let stream = client
        .server_reflection_info(tokio_stream::once(request))
        .await;
    let answer = stream
        .expect("a stream")
        .into_inner()
        .message()
        .await
        .expect("an answer");
    use v1::server_reflection_response::MessageResponse;
    let names: Vec<_> = match answer.and_then(|answer| answer.message_response) {
        Some(MessageResponse::ListServicesResponse(list)) => list
            .service
            .into_iter()
            .map(|service| service.name)
            .collect(),
        other => panic!("{other:?}"),
    };
    assert!(
        expected
            .iter()
            .all(|name| names.iter().any(|it| it == name)),
        "{names:?}"
    );

    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
    for symbol in [
        "vesta.v1.IdService",
        "google.rpc.BadRequest",
        "google.rpc.ErrorInfo",
        "google.rpc.RetryInfo",
    ] {
        let file = v1alpha::server_reflection_request::MessageRequest::FileContainingSymbol(
            symbol.to_owned(),
        );
        let request = v1alpha::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(file),
        };
        let stream = client
            .server_reflection_info(tokio_stream::once(request))
            .await;
        let answer = stream.expect("a stream").into_inner().message().await;
        use v1alpha::server_reflection_response::MessageResponse as Alpha;
        match answer
            .expect("an answer")
            .and_then(|answer| answer.message_response)
        {
            Some(Alpha::FileDescriptorResponse(file)) => {
                assert!(!file.file_descriptor_proto.is_empty(), "{symbol}");
            }
            other => panic!("{symbol}: {other:?}"),
        }
    }
}

/// Connects, sends `opening`, and waits for the server to close the connection.
fn is_closed_after(server: &Server, opening: &[u8]) -> bool {
    let mut socket = TcpStream::connect(server.address).expect("a connection");
    socket
        .set_read_timeout(Some(Duration::from_secs(9)))
        .expect("a time-out");
    socket.write_all(opening).expect("an opening");
    let mut rest = Vec::new();
    match socket.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn a_silent_or_slow_socket_is_closed() {
    let short = Duration::from_millis(100);
    let timeouts = Timeouts {
        opening: short,
        silence: short,
        answer: short,
    };
    let server = Server::with(IdMeta::MAX_PEAK, timeouts, |_| ());
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let half_a_frame = [0, 0, 50, 1, 4, 0, 0, 0, 1, 0x82];
    assert!(is_closed_after(&server, b""), "silent");
    assert!(is_closed_after(&server, &preface[..10]), "half a preface");
    assert!(is_closed_after(&server, preface), "no settings");
    assert!(
        is_closed_after(&server, &[&preface[..], &settings].concat()),
        "silent once open"
    );
    let half = [&preface[..], &settings, &half_a_frame].concat();
    assert!(is_closed_after(&server, &half), "half a header frame");
    assert!(
        is_closed_after(&server, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"),
        "another protocol"
    );
}

#[test]
fn the_default_timeouts_end_within_ten_seconds() {
    let Timeouts {
        opening,
        silence,
        answer,
    } = Timeouts::default();
    assert!(opening <= Duration::from_secs(5) && silence + answer < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn connections_over_the_limit_are_closed_until_one_is_free() {
    let server = Server::with(IdMeta::MAX_PEAK, Timeouts::default(), |config| {
        config.limits.max_connections = 1;
    });
    let first = server.client().await;
    first
        .clone()
        .gen_id(vesta::GenIdRequest {})
        .await
        .expect("an ID");
    assert!(is_closed_after(&server, b""), "one too many");
    drop(first);
    // The server learns of the closed connection a moment later.
    loop {
        let endpoint =
            tonic::transport::Endpoint::from_shared(format!("http://{}", server.address));
        let Ok(channel) = endpoint.expect("a URL").connect().await else {
            continue;
        };
        let mut client = vesta::id_service_client::IdServiceClient::new(channel);
        if client.gen_id(vesta::GenIdRequest {}).await.is_ok() {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stop_waits_for_calls_in_flight_up_to_the_drain_limit() {
    let limit = Duration::from_millis(200);
    let mut server = Server::with(IdMeta::MAX_PEAK, Timeouts::default(), |config| {
        config.limits.drain_limit = limit;
        config.limits.request_timeout = Duration::from_secs(86_400);
    });
    let mut client = server.client().await;
    let mut probe = client.clone();
    server.use_up();
    // It waits for the next second, which never comes.
    let mut waiting = std::pin::pin!(client.gen_id(vesta::GenIdRequest {}));
    // Sent on the same connection: once it is answered, the call before it has arrived.
    tokio::select! {
        biased;
        answer = &mut waiting => panic!("not to be answered: {answer:?}"),
        parts = probe.exp_id(vesta::ExpIdRequest { id: 1 }) => parts.expect("its parts"),
    };
    let began = tokio::time::Instant::now();
    // Only the drain limit ends it within a day; the time-out is for a server that never stops.
    let stop = tokio::task::spawn_blocking(move || server.stop());
    tokio::time::timeout(Duration::from_secs(300), stop)
        .await
        .expect("it stops")
        .expect("no panic");
    assert!(began.elapsed() >= limit, "{:?}", began.elapsed());
    let status = waiting.await.expect_err("no answer");
    assert_ne!(status.code(), Code::DeadlineExceeded, "{status}");
}
