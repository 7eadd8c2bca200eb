//! The methods of `vesta.v1.SerialService` over a real connection.

use std::sync::Arc;

use tonic::transport::Channel;
use tonic::{Code, Status};
use vesta_boot::Outcome;
use vesta_intf::IdMeta;
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::serial_service_client::SerialServiceClient;
use vesta_numbers::serial::{NewSerialTag, SerialService};
use vesta_numbers::serial::{Pattern, Reset};
use vesta_server::{METHODS, Timeouts};
use vesta_service::testing::{ManualClock, MemoryStore};

use crate::support::{NOW, Server};

/// A server with the tag `invoices`.
fn server() -> Server {
    let service = SerialService::builder(Arc::new(MemoryStore::new()))
        .segments(|segments| segments.clock(Arc::new(ManualClock::at(NOW))))
        .build()
        .expect("a service");
    let invoices = Pattern::new("INV-{date:yyMMdd}-{n:6}{check:damm}", Reset::Day);
    let invoices = invoices.expect("a pattern");
    let invoices = NewSerialTag::new("invoices", invoices, Some("Asia/Shanghai"));
    let created = service.create(&invoices.expect("a tag"));
    assert_eq!(
        created.expect("memory answers"),
        vesta_numbers::Created::New
    );
    let tags = (None, Some(Arc::new(service)));
    Server::with_tags(IdMeta::MAX_PEAK, Timeouts::default(), tags, |_| ())
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
