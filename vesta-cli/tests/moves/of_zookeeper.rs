//! Worker IDs that Leaf keeps in ZooKeeper.

use std::hash::{BuildHasher as _, RandomState};

use vesta_intf::IdMeta;
use vesta_testkit::fleet::store_url;
use zookeeper_client::{Acls, Client, CreateMode};

use crate::machines::Fleet;

#[test]
fn from_leafs_worker_ids_and_back() {
    let url = store_url("zookeeper");
    let servers = url
        .strip_prefix("zookeeper://")
        .expect("a URL of ZooKeeper");
    let (servers, _) = servers.split_once('/').unwrap_or((servers, ""));
    let own = format!(
        "moves-{:x}",
        RandomState::new().hash_one("a path of one's own")
    );
    let forever = format!("/snowflake/{own}/forever");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let client = runtime
        .block_on(Client::connect(servers))
        .expect("it connects");

    // A persistent sequential znode for each address; an existing one is reused.
    let start = |address: &str| {
        runtime.block_on(async {
            let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
            client.mkdir(&forever, &options).await.expect("a folder");
            let children = client.list_children(&forever).await.expect("the workers");
            let number = |name: &str| name.rsplit_once('-')?.1.parse().ok();
            let known = children
                .iter()
                .find(|name| name.starts_with(&format!("{address}-")));
            if let Some(worker) = known {
                return number(worker).expect("a number");
            }
            let (ip, port) = address.split_once(':').expect("an address");
            let data = format!(r#"{{"ip":"{ip}","port":"{port}","timestamp":1767225600000}}"#);
            let options = CreateMode::PersistentSequential.with_acls(Acls::anyone_all());
            let path = format!("{forever}/{address}-");
            let made = client
                .create(&path, data.as_bytes(), &options)
                .await
                .expect("a znode");
            u64::try_from(made.1.into_i64()).expect("a number")
        })
    };
    let (store, from) = (
        format!("zookeeper://{servers}/vesta-{own}"),
        format!("zookeeper://{servers}{forever}"),
    );
    let flags = ["--layout=snowflake", "--machine-store", &store];
    let from = ["leaf", "--from", &from];
    let import = Some((&from[..], "512-1023"));
    Fleet {
        layout: IdMeta::SNOWFLAKE,
        start: &start,
        flags: &flags,
        import,
    }
    .moves();
}
