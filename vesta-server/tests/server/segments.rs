//! The methods of `vesta.v1.SegmentService` over a real connection.

use std::sync::Arc;
use std::time::Duration;

use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use vesta_boot::{Config, Outcome};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::segment_service_client::SegmentServiceClient;
use vesta_intf::{ErrorKind, IdError, IdMeta};
use vesta_numbers::segment::{NewSegmentTag, NextRange, SegmentService, SegmentStore, SegmentTag};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_server::{METHODS, Timeouts};
use vesta_service::lease::StoreError;

use crate::support::Server;

fn server(store: Arc<dyn SegmentStore>, adjust: impl FnOnce(&mut Config)) -> Server {
    let service = SegmentService::builder(store).build().expect("a service");
    let tags = (Some(Arc::new(service)), None);
    Server::with_tags(IdMeta::MAX_PEAK, Timeouts::default(), tags, adjust)
}

/// A server with the tag `orders`, whose step is 100.
fn with_orders() -> Server {
    let store = MemorySegmentStore::new();
    store
        .create(&NewSegmentTag::new("orders", 100).expect("a tag"))
        .expect("memory");
    server(Arc::new(store), |_| ())
}

type Client = SegmentServiceClient<Channel>;

async fn client(server: &Server) -> Client {
    SegmentServiceClient::new(server.channel().await)
}

async fn next_id(client: &mut Client, key: &str) -> Result<u64, Status> {
    let request = v1::NextIdRequest {
        tag: key.to_owned(),
    };
    client
        .next_id(request)
        .await
        .map(|answer| answer.into_inner().id)
}

async fn next_ids(client: &mut Client, key: &str, count: u32) -> Result<Vec<v1::IdRun>, Status> {
    let request = v1::NextIdsRequest {
        tag: key.to_owned(),
        count,
    };
    client
        .next_ids(request)
        .await
        .map(|answer| answer.into_inner().runs)
}

fn counted(server: &Server, name: &str, outcome: Outcome) -> u64 {
    let method = METHODS.iter().position(|it| *it == name).expect("a method");
    server.metrics.requests(method, outcome)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn numbers_of_a_key_are_dense_and_counted() {
    let server = with_orders();
    let mut client = client(&server).await;
    // The first call may come before the tags are loaded: it waits.
    for expected in 1..=3 {
        assert_eq!(
            next_id(&mut client, "orders").await.expect("a number"),
            expected
        );
    }
    let mut last = 3;
    for count in [1, 100, 5000] {
        let runs = next_ids(&mut client, "orders", count)
            .await
            .expect("numbers");
        assert_eq!(runs.iter().map(|run| run.count).sum::<u32>(), count);
        for run in runs {
            assert_eq!((run.first, run.step), (last + 1, 1));
            last = run.first + u64::from(run.count) - 1;
        }
    }
    assert_eq!(counted(&server, "NextId", Outcome::Ok), 3);
    assert_eq!(counted(&server, "NextIds", Outcome::Ok), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_segment_mode_the_answer_names_the_setting() {
    let server = Server::start(IdMeta::MAX_PEAK);
    let mut client = client(&server).await;
    for status in [
        next_id(&mut client, "orders").await.expect_err("it is off"),
        next_ids(&mut client, "orders", 5)
            .await
            .expect_err("it is off"),
    ] {
        assert_eq!(status.code(), Code::Unimplemented);
        assert!(status.message().contains("set segment.store"), "{status}");
        assert_eq!(IdError::from(status).kind(), ErrorKind::Unsupported);
    }
}

/// A database that answers only once it is dropped, and then fails.
#[derive(Debug)]
struct Silent(std::sync::Mutex<std::sync::mpsc::Receiver<()>>);

impl SegmentStore for Silent {
    fn describe(&self) -> String {
        "silence".into()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        let _ = self.0.lock().expect("nobody panics").recv();
        Err(StoreError::unavailable(
            "the end",
            std::io::Error::other("the end"),
        ))
    }

    fn next_range(&self, _: &str, _: u64) -> Result<NextRange, StoreError> {
        Ok(NextRange::NoTag)
    }

    fn create(&self, _: &NewSegmentTag) -> Result<bool, StoreError> {
        Ok(false)
    }
}

async fn health(server: &Server) -> ServingStatus {
    let mut health = HealthClient::new(server.channel().await);
    let request = HealthCheckRequest {
        service: "vesta.v1.SegmentService".to_owned(),
    };
    health
        .check(request)
        .await
        .expect("an answer")
        .into_inner()
        .status()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_ends_in_time_while_the_database_is_silent_and_ids_go_on() {
    let (end, ended) = std::sync::mpsc::channel();
    let server = server(Arc::new(Silent(std::sync::Mutex::new(ended))), |config| {
        config.limits.request_timeout = Duration::from_millis(60);
    });
    let mut client = client(&server).await;
    let status = next_id(&mut client, "orders")
        .await
        .expect_err("no database");
    assert_eq!(status.code(), Code::DeadlineExceeded);
    let status = next_ids(&mut client, "orders", 9)
        .await
        .expect_err("no database");
    assert_eq!(IdError::from(status).kind(), ErrorKind::DeadlineExceeded);
    assert_eq!(health(&server).await, ServingStatus::NotServing);
    let late = Outcome::Error(ErrorKind::DeadlineExceeded);
    assert_eq!(
        (
            counted(&server, "NextId", late),
            counted(&server, "NextIds", late)
        ),
        (1, 1)
    );
    server
        .client()
        .await
        .gen_id(v1::GenIdRequest {})
        .await
        .expect("an ID");
    drop(end);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn segment_mode_has_its_own_health() {
    assert_eq!(
        health(&Server::start(IdMeta::MAX_PEAK)).await,
        ServingStatus::NotServing
    );
    let server = with_orders();
    next_id(&mut client(&server).await, "orders")
        .await
        .expect("a number");
    assert_eq!(health(&server).await, ServingStatus::Serving);
    server.shutdown.cancel();
}
