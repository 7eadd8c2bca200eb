//! Segment mode: its commands, its numbers, and its behaviour without the database.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use vesta_intf::grpc::v1::segment_service_client::SegmentServiceClient;
use vesta_intf::grpc::v1::{NextIdRequest, NextIdsRequest};
use vesta_testkit::fleet::numbers::{self, Order};

use crate::support::{Program, folder, run, start, text};

/// The pool's own file may also hold the tags.
const STORE: [&str; 2] = ["--segment-store", "sqlite:vesta-data/vesta.db"];

async fn client(running: &Program) -> SegmentServiceClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", running.address()));
    SegmentServiceClient::new(
        endpoint
            .expect("a URL")
            .connect()
            .await
            .expect("a connection"),
    )
}

#[tokio::test]
async fn tags_made_by_command_never_repeat_numbers_over_a_restart() {
    let folder = folder();
    let segment = |args: &[&str]| {
        let output = run(folder.path(), &[&["segment"], args, &STORE].concat(), &[]);
        (
            output.status.code(),
            text(&output.stdout) + &text(&output.stderr),
        )
    };
    let (code, said) = segment(&["list"]);
    assert_eq!(
        (code, said.lines().count()),
        (Some(64), 1),
        "nothing is there: {said}"
    );
    let create = ["create", "orders", "--step", "100", "--first", "7"];
    let (code, said) = segment(&create);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.starts_with("created tag orders in SQLite vesta-data/vesta.db"),
        "{said}"
    );
    let (code, said) = segment(&create);
    assert_eq!(
        (code, said.contains("with this definition")),
        (Some(0), true),
        "{said}"
    );
    let (code, said) = segment(&["create", "orders", "--step", "101"]);
    assert_eq!(
        (code, said.contains("already exists")),
        (Some(1), true),
        "{said}"
    );

    let mut last = 6;
    for _ in 0..2 {
        let running = start(folder.path(), &STORE);
        assert_eq!(running.fact("segments"), "SQLite vesta-data/vesta.db");
        let mut client = client(&running).await;
        let key = "orders".to_owned();
        let first = client.next_id(NextIdRequest { tag: key.clone() }).await;
        let first = first.expect("a number").into_inner().id;
        assert!(first > last, "{first} after {last}");
        let runs = client
            .next_ids(NextIdsRequest {
                tag: key,
                count: 250,
            })
            .await;
        let runs = runs.expect("numbers").into_inner().runs;
        assert_eq!(runs.iter().map(|run| run.count).sum::<u32>(), 250);
        last = runs
            .last()
            .map(|run| run.first + u64::from(run.count) - 1)
            .expect("a run");

        let (status, body) = running.get("/segments");
        let state: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(
            (status, &state["tags"][0]["taken"]),
            (200, &251.into()),
            "{body}"
        );
        let (code, said) = running.stop();
        assert_eq!(code, Some(0), "{said}");
    }
    let (code, said) = segment(&["list", "-o", "json"]);
    assert_eq!(code, Some(0), "{said}");
    let listed: Value = serde_json::from_str(&said).expect("JSON");
    let next: u64 = listed["tags"][0]["nextInStore"]
        .as_str()
        .expect("text")
        .parse()
        .expect("digits");
    assert!(next > last, "{next} after {last}");
}

/// Takes `batches` batches, each above everything that this server's callers had received before
/// the call.
async fn take(
    mut client: SegmentServiceClient<Channel>,
    batches: u32,
    order: Arc<Order>,
) -> Vec<Range<u64>> {
    let mut taken = Vec::new();
    for _ in 0..batches {
        let before = order.highest();
        let mut last = before;
        let request = NextIdsRequest {
            tag: "orders".to_owned(),
            count: 1000,
        };
        for run in client
            .next_ids(request)
            .await
            .expect("numbers")
            .into_inner()
            .runs
        {
            assert!(run.first > last && run.step == 1, "{run:?} after {last}");
            let end = run.first + u64::from(run.count);
            taken.push(run.first..end);
            last = end - 1;
        }
        order.returned(before, last).expect("higher ones");
    }
    taken
}

#[tokio::test]
async fn four_servers_issue_a_million_numbers_of_one_tag_once_each() {
    const SERVERS: usize = 4;
    const CALLERS: u32 = 8;
    const BATCHES: u32 = 32;
    let folder = folder();
    let create = [
        &["segment", "create", "orders", "--step", "100"],
        &STORE[..],
    ]
    .concat();
    let created = run(folder.path(), &create, &[]);
    assert_eq!(created.status.code(), Some(0), "{}", text(&created.stderr));
    let servers = [(); SERVERS].map(|()| start(folder.path(), &STORE));
    let mut calls = Vec::new();
    for server in &servers {
        let order = Arc::new(Order::default());
        for _ in 0..CALLERS {
            calls.push(tokio::spawn(take(
                client(server).await,
                BATCHES,
                order.clone(),
            )));
        }
    }
    let mut taken = Vec::new();
    for call in calls {
        taken.extend(call.await.expect("in order"));
    }
    assert_eq!(
        numbers::count(&taken),
        SERVERS as u64 * u64::from(CALLERS * BATCHES) * 1000
    );
    assert_eq!(numbers::disjoint(taken.clone()).map(drop), Ok(()));
    let planted = taken[taken.len() / 2].end - 1;
    taken.push(planted..planted + 1);
    assert_eq!(numbers::disjoint(taken), Err(format!("{planted} twice")));
}

#[tokio::test]
async fn ids_do_not_need_the_database_of_the_segments() {
    let folder = folder();
    let store = ["--segment-store", "sqlite:tags.db", "--auto-init=false"];
    let init = run(folder.path(), &["store", "init"], &[]);
    assert_eq!(init.status.code(), Some(0), "{}", text(&init.stderr));
    let tags = folder.path().join("tags.db");
    std::fs::copy(folder.path().join("vesta-data/vesta.db"), &tags).expect("a database");
    let tags = rusqlite::Connection::open(tags).expect("a copy of it");
    tags.execute_batch("DROP TABLE vesta_kv").expect("a table");
    let running = start(folder.path(), &store);
    assert!(running.first_id() > 0);
    let (status, said) = running.get("/readyz");
    assert!(
        status == 200 && said.starts_with("ready\nsegments: "),
        "{status} {said}"
    );
    let (_, metrics) = running.get("/metrics");
    assert!(metrics.contains("\nvesta_segments_ready 0\n"), "{metrics}");
    let mut client = client(&running).await;
    let answer = client
        .next_id(NextIdRequest {
            tag: "orders".to_owned(),
        })
        .await;
    let status = answer.expect_err("no table");
    assert!(
        matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded),
        "{status}"
    );
}

#[test]
fn a_segment_command_without_its_setting_names_it() {
    let folder = folder();
    let output = run(folder.path(), &["segment", "list"], &[]);
    assert_eq!(output.status.code(), Some(64));
    assert!(
        text(&output.stderr).contains("set segment.store"),
        "{}",
        text(&output.stderr)
    );
}
