//! Which scopes open which method.

use std::ops::Range;

use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1 as reflection;
use vesta_boot::{Auth, Outcome, Scopes, Token};
use vesta_client::{Client, ErrorKind};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;
use vesta_intf::grpc::v1::pool_service_client::PoolServiceClient;
use vesta_intf::grpc::v1::segment_service_client::SegmentServiceClient;
use vesta_intf::grpc::v1::serial_service_client::SerialServiceClient;
use vesta_intf::{IdError, IdMeta};
use vesta_server::{METHODS, Timeouts};

use crate::support::Server;

const NAMES: [(&str, Scopes); 7] = [
    ("t-generate", Scopes::GENERATE),
    ("t-read", Scopes::READ),
    ("t-segments", Scopes::SEGMENTS),
    ("t-serials", Scopes::SERIALS),
    ("t-metrics", Scopes::METRICS),
    ("t-admin", Scopes::ADMIN),
    ("t-pool", Scopes::POOL),
];

fn guarded() -> Server {
    let tokens = NAMES.map(|(name, scopes)| Token::of_text(name, name, scopes));
    Server::with(IdMeta::MAX_PEAK, Timeouts::default(), |config| {
        config.auth = Some(Auth::new(tokens));
    })
}

/// Sends a header unchanged.
#[derive(Clone)]
struct Sends(Option<&'static str>);

impl Interceptor for Sends {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(header) = self.0 {
            request
                .metadata_mut()
                .insert("authorization", MetadataValue::from_static(header));
        }
        Ok(request)
    }
}

type Sending = InterceptedService<Channel, Sends>;

/// The outcome of each method, in the order of METHODS.
async fn all(channel: &Channel, header: Option<&'static str>) -> Vec<Code> {
    let service = || -> Sending { InterceptedService::new(channel.clone(), Sends(header)) };
    let mut ids = IdServiceClient::new(service());
    let mut segments = SegmentServiceClient::new(service());
    let mut serials = SerialServiceClient::new(service());
    let mut pool_server = PoolServiceClient::new(service());
    let (area, key) = ("lease/a".to_owned(), "namespace".to_owned());
    let code =
        |status: Result<(), Status>| status.map_or_else(|status| status.code(), |()| Code::Ok);
    vec![
        code(ids.gen_id(v1::GenIdRequest {}).await.map(drop)),
        code(ids.gen_ids(v1::GenIdsRequest { count: 2 }).await.map(drop)),
        code(
            ids.gen_runs(v1::GenRunsRequest { count: 2 })
                .await
                .map(drop),
        ),
        code(ids.exp_id(v1::ExpIdRequest { id: 1 }).await.map(drop)),
        code(
            ids.make_id(v1::MakeIdRequest {
                time: 1,
                seq: 1,
                ..Default::default()
            })
            .await
            .map(drop),
        ),
        code(
            ids.trans_time(v1::TransTimeRequest { time: 1 })
                .await
                .map(drop),
        ),
        code(
            segments
                .next_id(v1::NextIdRequest { tag: "a".into() })
                .await
                .map(drop),
        ),
        code(
            segments
                .next_ids(v1::NextIdsRequest {
                    tag: "a".into(),
                    count: 1,
                })
                .await
                .map(drop),
        ),
        code(
            serials
                .next(v1::NextSerialsRequest {
                    tag: "a".into(),
                    count: None,
                })
                .await
                .map(drop),
        ),
        code(
            serials
                .parse(v1::ParseSerialRequest {
                    tag: "a".into(),
                    serial: "1".into(),
                })
                .await
                .map(drop),
        ),
        code(
            pool_server
                .open(v1::OpenPoolRequest::default())
                .await
                .map(drop),
        ),
        code(
            pool_server
                .list(v1::ListEntriesRequest {
                    area: area.clone(),
                    identity: 0,
                    keys: Vec::new(),
                })
                .await
                .map(drop),
        ),
        code(
            pool_server
                .get(v1::GetEntryRequest {
                    area: area.clone(),
                    key,
                    identity: 0,
                })
                .await
                .map(drop),
        ),
        code(
            pool_server
                .put(v1::PutEntriesRequest {
                    area,
                    puts: vec![],
                    identity: 0,
                })
                .await
                .map(drop),
        ),
        code(
            serials
                .create(v1::CreateSerialRequest {
                    tag: "a".into(),
                    pattern: "{n:6}".into(),
                    ..Default::default()
                })
                .await
                .map(drop),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_method_opens_to_tokens_of_its_scope_only() {
    let server = guarded();
    let channel = server.channel().await;
    // Segment mode, serials and the pool server are off here; only an authorized caller learns that.
    let (ok, off, shut) = (Code::Ok, Code::Unimplemented, Code::FailedPrecondition);
    let only = |methods: Range<usize>, code| {
        let mut codes = [Code::PermissionDenied; 15];
        codes[methods].fill(code);
        codes
    };
    for (header, expected) in [
        ("Bearer t-generate", only(0..3, ok)),
        ("Bearer t-read", only(3..6, ok)),
        ("Bearer t-segments", only(6..8, off)),
        ("Bearer t-serials", only(8..10, off)),
        ("Bearer t-pool", only(10..14, shut)),
        ("Bearer t-admin", only(14..15, off)),
        ("Bearer t-metrics", only(0..0, ok)),
        ("Bearer t-unknown", [Code::Unauthenticated; 15]),
        ("Basic t-generate", [Code::Unauthenticated; 15]),
        ("t-generate", [Code::Unauthenticated; 15]),
    ] {
        assert_eq!(all(&channel, Some(header)).await, expected, "{header}");
    }
    assert_eq!(all(&channel, None).await, [Code::Unauthenticated; 15]);
    for (method, name) in METHODS.iter().enumerate() {
        let refused = |kind| server.metrics.requests(method, Outcome::Error(kind));
        assert_eq!(refused(ErrorKind::Unauthenticated), 4, "{name}");
        assert_eq!(refused(ErrorKind::PermissionDenied), 6, "{name}");
    }
    let open = Server::start(IdMeta::MAX_PEAK);
    let codes = all(&open.channel().await, Some("Bearer t-unknown")).await;
    let none_is_needed = [[ok; 6].as_slice(), &[off; 4], &[shut; 4], &[off]].concat();
    assert_eq!(codes, none_is_needed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn only_health_needs_no_token() {
    let server = guarded();
    let channel = server.channel().await;
    let mut health = HealthClient::new(channel.clone());
    let of = || HealthCheckRequest {
        service: String::new(),
    };
    health.check(of()).await.expect("an answer");
    health
        .watch(of())
        .await
        .expect("a stream")
        .into_inner()
        .message()
        .await
        .expect("a state");

    for (header, expected) in [
        (None, Code::Unauthenticated),
        (Some("Bearer x"), Code::Unauthenticated),
        (Some("Bearer t-metrics"), Code::Ok),
    ] {
        let service = InterceptedService::new(channel.clone(), Sends(header));
        let mut client = reflection::server_reflection_client::ServerReflectionClient::new(service);
        let list =
            reflection::server_reflection_request::MessageRequest::ListServices(String::new());
        let request = reflection::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(list),
        };
        let answer = client
            .server_reflection_info(tokio_stream::once(request))
            .await;
        let code = answer.map_or_else(|status| status.code(), |_| Code::Ok);
        assert_eq!(code, expected, "{header:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_client_sends_its_token_and_reports_the_refusal() {
    let server = guarded();
    let client = |token: Option<&str>| {
        let builder = Client::builder().endpoint(format!("http://{}", server.address));
        match token {
            Some(token) => builder.bearer_token(token).build(),
            None => builder.build(),
        }
        .expect("right options")
    };
    let good = client(Some("t-generate"));
    good.gen_id().await.expect("an ID");
    let error = good.exp_id(1_u64).await.expect_err("another scope");
    assert!(
        matches!(error, IdError::PermissionDenied { .. }),
        "{error:?}"
    );
    let said = error.to_string();
    assert!(
        said.contains("the token `t-generate` may not") || said.contains("[redacted]"),
        "{said}"
    );
    assert!(said.ends_with("it needs the scope read"), "{said}");

    let error = client(None).gen_id().await.expect_err("no token");
    assert!(
        matches!(error, IdError::Unauthenticated { .. }),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .contains("send the header authorization: Bearer TOKEN"),
        "{error}"
    );
    let error = client(Some("s3cret"))
        .gen_id()
        .await
        .expect_err("an unknown token");
    assert_eq!(error.to_string(), "unknown token");
    assert_eq!(
        client(Some("s3cret")).stats().retries,
        0,
        "asking again would not help"
    );
}
