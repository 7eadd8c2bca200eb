//! A dedicated path on the test server, inspected over a separate connection.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::timeout;
use vesta_service::lease::KvStore;
use vesta_store::Options;
use vesta_store::conformance::{Backend, Fixture};
use vesta_testkit::fleet::store_url;
use zookeeper_client::{Acls, Client, CreateMode, Error, Stat};

use super::proxy::Proxy;

pub(crate) struct Zookeeper;

pub(crate) struct Tree {
    /// `host:port`, or several.
    pub(crate) servers: String,
    /// The credentials before them.
    login: String,
    pub(crate) path: String,
    pub(crate) client: Client,
    runtime: Runtime,
}

impl Backend for Zookeeper {
    fn fresh(&self) -> Box<dyn Fixture> {
        Box::new(Tree::new())
    }
}

impl Fixture for Tree {
    fn connect(&self) -> Arc<dyn KvStore> {
        vesta_store::open(&self.url().parse().unwrap()).expect("a good URL")
    }

    fn delete(&self, area: &str, key: &str) -> bool {
        Tree::delete(self, &format!("{}/{key}", area.replace('/', ":")));
        true
    }
}

/// Long enough for any machine: an awaited event either occurs or never does.
const PATIENCE: Duration = Duration::from_secs(60);

impl Tree {
    pub(crate) fn new() -> Self {
        let url = store_url("zookeeper");
        let rest = url
            .strip_prefix("zookeeper://")
            .expect("zookeeper://host:port/path");
        let (authority, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (login, servers) = authority.rsplit_once('@').unwrap_or(("", authority));
        let own = RandomState::new().hash_one("a path of one's own");
        let path = format!("{}/test-{own:x}", below.trim_end_matches('/'));

        let runtime = Runtime::new().expect("a runtime");
        let client = runtime.block_on(async {
            let mut connector = Client::connector();
            if !login.is_empty() {
                connector = connector.with_auth("digest", login.as_bytes());
            }
            let client = connector
                .connect(servers)
                .await
                .expect("the server answers");
            client
                .mkdir(&path, &open(CreateMode::Persistent))
                .await
                .expect("a new znode");
            client
        });
        let login = if login.is_empty() {
            String::new()
        } else {
            format!("{login}@")
        };
        Self {
            servers: servers.into(),
            login,
            path,
            client,
            runtime,
        }
    }

    /// A connection to one of the servers, to be disturbed.
    pub(crate) fn proxy(&self) -> Proxy {
        Proxy::to(self.servers.split(',').next().expect("there is one"))
    }

    pub(crate) fn url(&self) -> String {
        self.url_over(&self.servers)
    }

    /// The same store, over other addresses.
    pub(crate) fn url_over(&self, servers: &str) -> String {
        format!("zookeeper://{}{servers}{}", self.login, self.path)
    }

    pub(crate) fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime
            .block_on(async { timeout(PATIENCE, what).await.expect("an answer") })
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}/{path}", self.path)
    }

    pub(crate) fn create(&self, path: &str, data: &str, mode: CreateMode) {
        let path = self.at(path);
        self.wait(self.client.create(&path, data.as_bytes(), &open(mode)))
            .expect("a new znode");
    }

    pub(crate) fn set(&self, path: &str, data: &[u8]) {
        self.wait(self.client.set_data(&self.at(path), data, None))
            .expect("a change");
    }

    pub(crate) fn delete(&self, path: &str) {
        self.wait(self.client.delete(&self.at(path), None))
            .expect("it was there");
    }

    /// Waits until changes by others are visible here.
    fn sync(&self) {
        self.wait(self.client.sync(&self.path)).expect("an answer");
    }

    pub(crate) fn get(&self, path: &str) -> (String, Stat) {
        self.sync();
        let (data, stat) = self
            .wait(self.client.get_data(&self.at(path)))
            .expect("it is there");
        (String::from_utf8(data).expect("text"), stat)
    }

    pub(crate) fn stat(&self, path: &str) -> Option<Stat> {
        self.sync();
        self.wait(self.client.check_stat(&self.at(path)))
            .expect("an answer")
    }
}

fn open(mode: CreateMode) -> zookeeper_client::CreateOptions<'static> {
    mode.with_acls(Acls::anyone_all())
}

impl Drop for Tree {
    fn drop(&mut self) {
        let mut paths = vec![self.path.clone()];
        self.runtime.block_on(async {
            while let Some(path) = paths.pop() {
                // Znodes that cannot be deleted for other reasons stay.
                if let Err(Error::NotEmpty) = self.client.delete(&path, None).await {
                    let children = self.client.list_children(&path).await.unwrap_or_default();
                    paths.push(path.clone());
                    paths.extend(children.iter().map(|child| format!("{path}/{child}")));
                }
            }
        });
    }
}

/// A timeout that no test reaches.
pub(crate) fn patient() -> Options {
    Options {
        request_timeout: Some(PATIENCE),
        ..Options::default()
    }
}
