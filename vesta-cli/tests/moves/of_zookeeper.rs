//! Worker IDs that Leaf keeps in ZooKeeper.

use std::hash::{BuildHasher as _, RandomState};

use vesta_intf::IdMeta;
use vesta_testkit::fleet::store_url;
use vesta_testkit::folder;
use zookeeper_client::{Acls, Client, CreateMode};

use crate::machines::Fleet;
use crate::programs::{command, serve};

/// A connection, and a path of the test's own below the servers of this URL.
struct Tree {
    servers: String,
    path: String,
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Tree {
    fn new(below: &str) -> Self {
        let url = store_url("zookeeper");
        let servers = url
            .strip_prefix("zookeeper://")
            .expect("a URL of ZooKeeper");
        let (servers, _) = servers.split_once('/').unwrap_or((servers, ""));
        let own = RandomState::new().hash_one("a path of one's own");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime");
        let client = runtime
            .block_on(Client::connect(servers))
            .expect("it connects");
        Self {
            servers: servers.into(),
            path: format!("/{below}/moves-{own:x}"),
            runtime,
            client,
        }
    }

    fn url(&self) -> String {
        format!("zookeeper://{}{}", self.servers, self.path)
    }

    /// Creates a child, as a process of the other system does.
    fn create(&self, name: &str) {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let created = self.runtime.block_on(async {
            self.client.mkdir(&self.path, &options).await?;
            let path = format!("{}/{name}", self.path);
            self.client.create(&path, b"10.0.0.5", &options).await
        });
        created.expect("a znode");
    }
}

#[test]
fn numbers_of_another_system_are_imported_and_kept_from_members_of_a_pool_server() {
    let (tree, folders) = (Tree::new("workers"), [(); 3].map(|()| folder()));
    tree.create("0");
    let url = tree.url();
    let flags = ["--layout=snowflake", "--machine-store", &url];
    let import = [&flags[..], &["store", "import", "nodes", "--from", &url]].concat();
    let done = command("vesta-server", folders[0].path(), &import).output();
    let done = done.expect("it starts");
    assert!(done.status.success(), "{done:?}");

    let offers = ["--pool-server-namespaces=orders", "--machine-range=0-3"];
    let pool_server = serve(
        "vesta-server",
        folders[1].path(),
        &[&flags[..], &offers].concat(),
    );
    // Made after the import: seen when it is claimed. The pool server holds one number.
    let made = (1..3).find(|number| *number != pool_server.machine());
    let made = made.expect("it holds one");
    tree.create(&made.to_string());
    let members = format!("vesta://{}", pool_server.address());
    let member = [
        "--layout=snowflake",
        "--namespace=orders",
        "--machine-range=0-3",
        "--machine-store",
        &members,
    ];
    let member = serve("vesta-rest", folders[2].path(), &member);
    assert!(
        ![0, made].contains(&member.machine()),
        "{}",
        member.machine()
    );
    let child = format!("{}/{}", tree.path, member.machine());
    let (data, _) = tree
        .runtime
        .block_on(tree.client.get_data(&child))
        .expect("the other system sees the member's number");
    assert!(data.starts_with(b"Vesta"), "{}", data.escape_ascii());
    assert_eq!(member.stop().0, Some(0));
    assert_eq!(pool_server.stop().0, Some(0));
}

#[test]
fn from_leafs_worker_ids_and_back() {
    let tree = Tree::new("snowflake");
    let (forever, runtime, client) = (
        format!("{}/forever", tree.path),
        &tree.runtime,
        &tree.client,
    );

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
        Tree::new("vesta").url(),
        format!("zookeeper://{}{forever}", tree.servers),
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
