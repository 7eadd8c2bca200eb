//! A member that asks for many lists and reads none of them.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tonic::transport::Endpoint;
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::pool_service_client::PoolServiceClient;
use vesta_service::lease::{Put, Secret, identity};

use crate::overload::resident;
use crate::support::{folder, start};

const CONNECTIONS: usize = 20;
const LISTS: usize = 100;
const ENTRIES: usize = 1024;
const AREA: &str = "lease/orders";

/// In it, a list has 374 kB.
#[test]
fn unread_lists_cost_little_memory_and_hold_up_no_other_caller() {
    let folder = folder();
    let file = format!("sqlite:{}", folder.path().join("pool-server.db").display());
    let store = vesta_store::open(&file.parse().expect("a URL")).expect("it opens");
    let entries = (0..ENTRIES).map(|key| Put {
        key: key.to_string(),
        old: None,
        new: "x".repeat(360),
        secret: Secret::default(),
    });
    for puts in entries.collect::<Vec<_>>().chunks(128) {
        store.put_all(AREA, puts).expect("it is written");
    }
    let identity = identity(&*store).expect("it is drawn").number;
    drop(store);
    let args = [
        "--machine-store",
        &file,
        "--pool-server-namespaces",
        "orders",
    ];
    let server = start(folder.path(), &args);
    let address = format!("http://{}", server.address());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (most, mut times) = runtime.block_on(async {
        let connect = || {
            let endpoint = Endpoint::from_shared(address.clone()).expect("a URL");
            async move { endpoint.connect().await }
        };
        let mut unread = Vec::new();
        for _ in 0..CONNECTIONS {
            let client = PoolServiceClient::new(connect().await.expect("a connection"));
            let list = || {
                let (mut client, area) = (client.clone(), AREA.to_owned());
                async move {
                    let keys = Vec::new();
                    client
                        .list(v1::ListEntriesRequest {
                            area,
                            identity,
                            keys,
                        })
                        .await
                }
            };
            let lists = (0..LISTS).map(|_| list());
            unread.push(lists.map(tokio::spawn).collect::<Vec<_>>());
        }
        let mut other = PoolServiceClient::new(connect().await.expect("a connection"));
        let (mut most, mut times) = (0, Vec::new());
        for _ in 0..200 {
            let (began, key) = (Instant::now(), "7".to_owned());
            let area = AREA.to_owned();
            let get = v1::GetEntryRequest {
                area,
                key,
                identity,
            };
            let got = other.get(get).await.expect("it answers").into_inner();
            assert_eq!(got.value.map(|it| it.len()), Some(360));
            times.push(began.elapsed());
            most = most.max(resident(&server));
            sleep(Duration::from_millis(20)).await;
        }
        let list = v1::ListEntriesRequest {
            area: AREA.into(),
            identity,
            keys: Vec::new(),
        };
        let mut pages = other.list(list).await.expect("its turn").into_inner();
        let mut read = 0;
        while let Some(page) = pages.message().await.expect("a page") {
            read += page.entries.len();
        }
        assert_eq!(read, ENTRIES, "who reads a list gets all of it");
        drop(unread);
        (most, times)
    });
    times.sort_unstable();
    let median = times[times.len() / 2];
    println!(
        "{} MiB, Get {median:?} at the median, {:?} at most",
        most >> 20,
        times.last()
    );
    assert!(most <= 150 << 20, "{} MiB", most >> 20);
    assert!(median <= Duration::from_millis(100), "{median:?}");
    let _ = server.stop();
}
