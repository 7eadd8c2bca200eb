//! The methods of `vesta.v1.SerialService` over a real connection.

use std::sync::Arc;

use tonic::transport::Channel;
use tonic::{Code, Status};
use vesta_boot::{Auth, Config, Outcome, Scopes, Token};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::serial_service_client::SerialServiceClient;
use vesta_intf::{ErrorKind, IdMeta, ShuffleKey};
use vesta_numbers::serial::{NewSerialTag, SerialService};
use vesta_numbers::serial::{Pattern, Reset};
use vesta_server::{METHODS, Timeouts};
use vesta_service::testing::{ManualClock, MemoryStore};

use crate::support::{NOW, Server};

/// A server with the tags `invoices` and `coupons`, which lacks the key of the latter.
fn server() -> Server {
    server_with(|_| ())
}

fn server_with(adjust: impl FnOnce(&mut Config)) -> Server {
    let service = SerialService::builder(Arc::new(MemoryStore::new()))
        .segments(|segments| segments.clock(Arc::new(ManualClock::at(NOW))))
        .build()
        .expect("a service");
    let pattern = |text, reset| Pattern::new(text, reset).expect("a pattern");
    let invoices = pattern("INV-{date:yyMMdd}-{n:6}{check:damm}", Reset::Day);
    let invoices = NewSerialTag::new("invoices", invoices, Some("Asia/Shanghai"));
    let coupons = NewSerialTag::new("coupons", pattern("{shuffle:8}", Reset::Never), None);
    let coupons = coupons.and_then(|tag| tag.shuffled_with(&ShuffleKey::new(&[7; 32])));
    for tag in [invoices, coupons] {
        assert_eq!(
            service
                .create(&tag.expect("a tag"))
                .expect("memory answers"),
            vesta_numbers::Created::New
        );
    }
    let tags = (None, Some(Arc::new(service)));
    Server::with_tags(IdMeta::MAX_PEAK, Timeouts::default(), tags, adjust)
}

type Client = SerialServiceClient<Channel>;

async fn client(server: &Server) -> Client {
    SerialServiceClient::new(server.channel().await)
}

async fn next(
    client: &mut Client,
    tag: &str,
    count: Option<u32>,
) -> Result<Vec<(String, u64)>, Status> {
    let answer = client
        .next(v1::NextSerialsRequest {
            tag: tag.to_owned(),
            count,
        })
        .await?;
    let serials = answer.into_inner().serials.into_iter();
    Ok(serials
        .map(|serial| (serial.serial, serial.counter))
        .collect())
}

async fn parse(client: &mut Client, tag: &str, serial: &str) -> Result<v1::ParsedSerial, Status> {
    let request = v1::ParseSerialRequest {
        tag: tag.to_owned(),
        serial: serial.to_owned(),
    };
    client.parse(request).await.map(tonic::Response::into_inner)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_caller_with_the_scope_admin_creates_a_tag_once() {
    let token = Token::of_text("admin", "s3cret", Scopes::ADMIN | Scopes::SERIALS);
    let server = server_with(|config| config.auth = Some(Auth::new(vec![token])));
    let header = "Bearer s3cret".parse().expect("a header");
    let mut client = SerialServiceClient::with_interceptor(
        server.channel().await,
        move |mut request: tonic::Request<()>| {
            let header: &tonic::metadata::MetadataValue<_> = &header;
            request
                .metadata_mut()
                .insert("authorization", header.clone());
            Ok(request)
        },
    );
    let bills = v1::CreateSerialRequest {
        tag: "bills".to_owned(),
        pattern: "B{fy:yy-yy}-{n:4}".to_owned(),
        reset: Some("year:04-01".to_owned()),
        zone: Some("Asia/Kolkata".to_owned()),
        first: Some(7),
        ..Default::default()
    };
    for created in [true, false] {
        let answer = client.create(bills.clone()).await.expect("an answer");
        assert_eq!(answer.into_inner().created, created);
    }
    let other = v1::CreateSerialRequest {
        pattern: "C{fy:yy-yy}-{n:4}".to_owned(),
        ..bills.clone()
    };
    let status = client.create(other).await.expect_err("another");
    assert_eq!(status.code(), Code::AlreadyExists, "{status}");
    let request = v1::NextSerialsRequest {
        tag: "bills".to_owned(),
        count: None,
    };
    let next = client.next(request).await.expect("a serial").into_inner();
    assert_eq!(next.serials[0].serial, "B17-18-0007");
    let template = v1::CreateSerialRequest {
        tag: "orders-{tenant}".to_owned(),
        pattern: "O{n:4}".to_owned(),
        max_tags: Some(1),
        ..Default::default()
    };
    let answer = client.create(template).await.expect("an answer");
    assert!(answer.into_inner().created);
    let mut next = async |tag: &str| {
        let tag = tag.to_owned();
        let request = v1::NextSerialsRequest { tag, count: None };
        client.next(request).await.map(tonic::Response::into_inner)
    };
    let made = next("orders-acme").await.expect("made");
    assert_eq!(made.serials[0].serial, "O0001");
    let full = next("orders-beta").await.expect_err("full");
    assert_eq!(full.code(), Code::Unimplemented, "{full:?}");
    for (wrong, said) in [
        (
            v1::CreateSerialRequest {
                pattern: "{n:99}".to_owned(),
                ..bills.clone()
            },
            "the width must be",
        ),
        (
            v1::CreateSerialRequest {
                reset: Some("hour".to_owned()),
                ..bills.clone()
            },
            "is not one of never",
        ),
        (
            v1::CreateSerialRequest {
                pattern: "{shuffle:8}".to_owned(),
                reset: None,
                zone: None,
                ..bills
            },
            "serial create",
        ),
    ] {
        let status = client.create(wrong).await.expect_err("refused");
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(status.message().contains(said), "{}", status.message());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn serials_come_in_order_and_can_be_parsed() {
    let server = server();
    let mut client = client(&server).await;
    let first = next(&mut client, "invoices", None).await.expect("a serial");
    assert_eq!(first, [("INV-180104-0000013".to_owned(), 1)]);
    let many = next(&mut client, "invoices", Some(500))
        .await
        .expect("serials");
    assert!(many.iter().map(|serial| serial.1).eq(2..=501));
    assert_eq!(many.last().expect("many").0, "INV-180104-0005012");
    let parsed = parse(&mut client, "invoices", "INV-180104-0005012")
        .await
        .expect("a serial");
    let expected = v1::ParsedSerial {
        tag: "invoices".into(),
        period: Some("2018-01-04".into()),
        date: Some("2018-01-04".into()),
        counter: 501,
        check: Some("damm".into()),
    };
    assert_eq!(parsed, expected);
    let counted = |name| {
        let method = METHODS.iter().position(|it| *it == name).expect("a method");
        server.metrics.requests(method, Outcome::Ok)
    };
    assert_eq!((counted("Next"), counted("Parse")), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_error_names_its_cause() {
    let server = server();
    let mut client = client(&server).await;
    let long = "t".repeat(129);
    for (tag, count, code, expected) in [
        (
            "",
            1,
            Code::InvalidArgument,
            "tag: it must have 1 to 128 characters",
        ),
        (
            &long,
            1,
            Code::InvalidArgument,
            "tag: it must have 1 to 128 characters",
        ),
        (
            "invoices",
            0,
            Code::InvalidArgument,
            "count must be 1 to 10000, but is 0",
        ),
        (
            "invoices",
            10_001,
            Code::InvalidArgument,
            "count must be 1 to 10000",
        ),
        (
            "invoyces",
            1,
            Code::NotFound,
            "serial tag `invoyces` does not exist",
        ),
        (
            "coupons",
            1,
            Code::Unimplemented,
            "needs the key with fingerprint",
        ),
    ] {
        let status = next(&mut client, tag, Some(count))
            .await
            .expect_err(expected);
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains(expected), "{status}");
    }
    for (serial, expected) in [
        ("INV-180104-0005017", "its check symbol is wrong (damm)"),
        (
            "INV-180199-0000013",
            "at character 9: day 99 does not exist",
        ),
        ("INV_180104-0000013", "character 4 is '_', but must be '-'"),
        (
            "INV-180104-13",
            "characters, such as INV-261122-0000013; this one has 13",
        ),
    ] {
        let status = parse(&mut client, "invoices", serial)
            .await
            .expect_err(expected);
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains(expected), "{status}");
    }
    let method = METHODS
        .iter()
        .position(|it| *it == "Parse")
        .expect("a method");
    assert_eq!(
        server
            .metrics
            .requests(method, Outcome::Error(ErrorKind::Invalid)),
        4
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_serials_the_answer_names_the_setting() {
    let server = Server::start(IdMeta::MAX_PEAK);
    let mut client = client(&server).await;
    let status = next(&mut client, "invoices", None)
        .await
        .expect_err("they are off");
    assert_eq!(status.code(), Code::Unimplemented);
    assert!(status.message().contains("set serial.store"), "{status}");
    let status = parse(&mut client, "invoices", "1")
        .await
        .expect_err("they are off");
    assert_eq!(status.code(), Code::Unimplemented);
}
