//! The methods of `vesta.v1.IdService` over a real connection.

use std::time::Duration;

use crate::support::{NOW, Server};
use tonic::{Code, Request};
use vesta_boot::Outcome;
use vesta_intf::grpc::v1;
use vesta_intf::{ErrorKind, Id, IdError, IdMeta};
use vesta_server::{METHODS, Timeouts};

fn method(name: &str) -> usize {
    METHODS.iter().position(|it| *it == name).expect("a method")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_new_id_has_the_servers_time_machine_and_method() {
    let server = Server::start(IdMeta::MAX_PEAK);
    let mut client = server.client().await;
    for seq in 0..3 {
        let raw = client
            .gen_id(v1::GenIdRequest {})
            .await
            .expect("an ID")
            .into_inner()
            .id;
        let expected = Id {
            gen_method: 1,
            machine: 1021,
            seq,
            time: 94_990_103,
            id_type: 0,
            version: 0,
        };
        assert_eq!(IdMeta::MAX_PEAK.unpack(raw).expect("its parts"), expected);
    }
    let moment = client
        .trans_time(v1::TransTimeRequest { time: 94_990_103 })
        .await;
    let moment = moment
        .expect("a moment")
        .into_inner()
        .time
        .expect("a moment");
    assert_eq!(u64::try_from(moment.seconds), Ok(NOW.0 / 1000));
    assert_eq!(server.metrics.requests(method("GenId"), Outcome::Ok), 3);
    assert_eq!(server.metrics.requests(method("TransTime"), Outcome::Ok), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_unknown_service_or_method_is_told_what_there_is() {
    let server = Server::start(IdMeta::MAX_PEAK);
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", server.address));
    let channel = endpoint.expect("a URL").connect().await.expect("a server");
    for (path, said) in [
        (
            "/vesta.v1.IdService/GenID",
            "unknown method `GenID` of vesta.v1.IdService; it has GenId, ",
        ),
        ("/vesta.v1.SerialService/Gen", "it has Next, Parse, Create"),
        (
            "/vesta.IdService/GenId",
            "this server has vesta.v1.IdService, ",
        ),
        (
            "/grpc.health.v1.Health/Chek",
            "this server has vesta.v1.IdService, ",
        ),
    ] {
        let mut grpc = tonic::client::Grpc::new(channel.clone());
        grpc.ready().await.expect("a connection");
        let codec = tonic_prost::ProstCodec::<v1::GenIdRequest, v1::GenIdResponse>::default();
        let path = tonic::codegen::http::uri::PathAndQuery::from_static(path);
        let answer = grpc
            .unary(Request::new(v1::GenIdRequest {}), path, codec)
            .await;
        let status = answer.expect_err("there is none");
        assert_eq!(status.code(), Code::Unimplemented);
        assert!(status.message().contains(said), "{status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn batches_ascend_and_runs_add_up() {
    let server = Server::start(IdMeta::MIN_GRANULARITY);
    let mut client = server.client().await;
    let ticking = {
        let clock = server.clock.clone();
        // 1,024 IDs in each millisecond: a batch needs ticks to pass.
        tokio::spawn(async move {
            loop {
                clock.advance(Duration::from_millis(1));
                tokio::task::yield_now().await;
            }
        })
    };
    let mut last = 0;
    for count in [1, 1024, 10_000] {
        let ids = client
            .gen_ids(v1::GenIdsRequest { count })
            .await
            .expect("IDs")
            .into_inner()
            .ids;
        assert_eq!(ids.len(), count as usize);
        assert!(last < ids[0] && ids.is_sorted_by(|a, b| a < b));
        last = ids[ids.len() - 1];
    }
    for count in [1, 1025, 50_000] {
        let runs = client
            .gen_runs(v1::GenRunsRequest { count })
            .await
            .expect("IDs")
            .into_inner();
        assert_eq!(runs.runs.iter().map(|run| run.count).sum::<u32>(), count);
        for run in runs.runs {
            assert!(last < run.first && run.step > 0);
            last = run.first + run.step * u64::from(run.count - 1);
        }
    }
    ticking.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bad_input_is_an_invalid_argument_that_names_the_range() {
    let server = Server::start(IdMeta::MAX_PEAK);
    let mut client = server.client().await;
    let parts = v1::MakeIdRequest::default;
    let mut answers = Vec::new();
    for count in [0, 10_001, u32::MAX] {
        let answer = client.gen_ids(v1::GenIdsRequest { count }).await.map(drop);
        answers.push((answer, format!("count must be 1 to 10000, but is {count}")));
    }
    for count in [0, 1_048_577] {
        let answer = client
            .gen_runs(v1::GenRunsRequest { count })
            .await
            .map(drop);
        answers.push((
            answer,
            format!("count must be 1 to 1048576, but is {count}"),
        ));
    }
    for (request, expected) in [
        (
            v1::MakeIdRequest {
                time: 1 << 30,
                ..parts()
            },
            "time must be 0 to 1073741823",
        ),
        (
            v1::MakeIdRequest {
                seq: 1 << 20,
                ..parts()
            },
            "seq must be 0 to 1048575",
        ),
        (
            v1::MakeIdRequest {
                machine: Some(1024),
                ..parts()
            },
            "machine must be 0 to 1023",
        ),
        (
            v1::MakeIdRequest {
                gen_method: Some(4),
                ..parts()
            },
            "genMethod must be 0 to 3",
        ),
        (
            v1::MakeIdRequest {
                r#type: Some(2),
                ..parts()
            },
            "type must be 0 to 1",
        ),
        (
            v1::MakeIdRequest {
                version: Some(2),
                ..parts()
            },
            "version must be 0 to 1",
        ),
    ] {
        answers.push((client.make_id(request).await.map(drop), expected.to_owned()));
    }
    let answer = client
        .trans_time(v1::TransTimeRequest { time: 1 << 30 })
        .await
        .map(drop);
    answers.push((answer, "time must be 0 to 1073741823".to_owned()));

    for (answer, expected) in answers {
        let status = answer.expect_err(&expected);
        assert_eq!(status.code(), Code::InvalidArgument, "{expected}");
        assert!(status.message().contains(&expected), "{}", status.message());
        assert_eq!(IdError::from(status).kind(), ErrorKind::Invalid);
    }
    let refused = Outcome::Error(ErrorKind::OutOfRange);
    assert_eq!(server.metrics.requests(method("GenIds"), refused), 3);
    assert_eq!(server.metrics.requests(method("MakeId"), refused), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_id_with_more_bits_than_the_layout_is_refused() {
    let server = Server::start(IdMeta::JS_SAFE);
    let answer = server
        .client()
        .await
        .exp_id(v1::ExpIdRequest { id: 1 << 53 })
        .await;
    assert_eq!(
        answer.expect_err("too many bits").code(),
        Code::InvalidArgument
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_beyond_64_kib_is_refused_and_the_connection_lives_on() {
    let server = Server::start(IdMeta::MAX_PEAK);
    let mut raw = tonic::client::Grpc::new(server.channel().await);
    raw.ready().await.expect("a connection");
    let large = tonic_health::pb::HealthCheckRequest {
        service: "x".repeat(65 * 1024),
    };
    let codec = tonic_prost::ProstCodec::<_, v1::GenIdResponse>::default();
    let path = "/vesta.v1.IdService/GenId".parse().expect("a path");
    let answer = raw.unary(Request::new(large), path, codec).await;
    assert_eq!(answer.expect_err("too large").code(), Code::OutOfRange);
    server
        .client()
        .await
        .gen_id(v1::GenIdRequest {})
        .await
        .expect("an ID");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deadline_shorter_than_the_wait_fails_at_once_at_no_cost() {
    let server = Server::start(IdMeta::MAX_PEAK);
    let mut client = server.client().await;
    assert_eq!(server.use_up(), 1 << 20);
    for _ in 0..3 {
        let mut request = Request::new(v1::GenIdRequest {});
        request.set_timeout(Duration::from_millis(900));
        let status = client
            .gen_id(request)
            .await
            .expect_err("no ID in this second");
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    }
    // Neither the clock nor the position moved.
    assert!(matches!(
        server.service.try_gen_id(),
        Err(IdError::NotReady(_))
    ));
    server.clock.advance(Duration::from_secs(1));
    let raw = client
        .gen_id(v1::GenIdRequest {})
        .await
        .expect("an ID")
        .into_inner()
        .id;
    let parts = IdMeta::MAX_PEAK.unpack(raw).expect("its parts");
    assert_eq!((parts.time, parts.seq), (94_990_104, 0));
    let late = Outcome::Error(ErrorKind::DeadlineExceeded);
    assert_eq!(server.metrics.requests(method("GenId"), late), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_servers_own_time_limit_ends_a_wait() {
    let server = Server::with(IdMeta::MAX_PEAK, Timeouts::default(), |config| {
        config.limits.request_timeout = Duration::from_millis(50);
    });
    let mut client = server.client().await;
    assert_eq!(server.use_up(), 1 << 20);
    for status in [
        client.gen_id(v1::GenIdRequest {}).await.map(drop),
        client
            .gen_ids(v1::GenIdsRequest { count: 1 })
            .await
            .map(drop),
        client
            .gen_runs(v1::GenRunsRequest { count: 1 })
            .await
            .map(drop),
    ] {
        assert_eq!(
            status.expect_err("no ID in this second").code(),
            Code::DeadlineExceeded
        );
    }
    server.clock.advance(Duration::from_secs(1));
    let raw = client
        .gen_id(v1::GenIdRequest {})
        .await
        .expect("an ID")
        .into_inner()
        .id;
    assert_eq!(IdMeta::MAX_PEAK.unpack(raw).expect("its parts").seq, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_ends_when_the_clock_moves_on() {
    let server = Server::start(IdMeta::MIN_GRANULARITY);
    let mut client = server.client().await;
    server.use_up();
    let waiting = tokio::spawn(async move { client.gen_id(v1::GenIdRequest {}).await });
    while server.metrics.requests(method("GenId"), Outcome::Ok) == 0 {
        server.clock.advance(Duration::from_millis(1));
        tokio::task::yield_now().await;
    }
    waiting.await.expect("no panic").expect("an ID");
}
