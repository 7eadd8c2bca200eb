//! Stands in for a system that keeps its worker IDs as children of a znode: under Curator's lock, a process
//! takes the lowest number that has no child and creates an ephemeral one; after a reconnection it takes a new
//! number.
#![allow(dead_code, reason = "shared by two test programs")]

use std::time::Duration;

use tokio::runtime::Runtime;
use vesta_service::clock::{Clock as _, SystemClock};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, LockPrefix};

/// Session timeout of the system.
const SESSION: Duration = Duration::from_secs(5);

pub(crate) struct Worker {
    servers: String,
    group: String,
    runtime: Runtime,
    client: Client,
    pub(crate) number: u64,
    last: (u64, u64),
}

fn options(mode: CreateMode) -> CreateOptions<'static> {
    mode.with_acls(Acls::anyone_all())
}

async fn connected(servers: &str) -> Client {
    let connector = Client::connector().with_session_timeout(SESSION);
    connector.connect(servers).await.expect("it connects")
}

/// The lowest number without a child, whose child is then this session's.
async fn take(client: &Client, group: &str) -> u64 {
    let lock = format!("/lock{group}");
    let persistent = options(CreateMode::Persistent);
    client.mkdir(&lock, &persistent).await.expect("a folder");
    let prefix = LockPrefix::new_curator(&lock, "lock-").expect("a right path");
    let held = client.lock(prefix, b"", Acls::anyone_all()).await;
    let held = held.expect("the lock");
    client.mkdir(group, &persistent).await.expect("a folder");
    let children = client.list_children(group).await.expect("the children");
    let number = (0..1024).find(|it| !children.contains(&format!("{it}")));
    let number = number.expect("a free number");
    let child = format!("{group}/{number}");
    let ephemeral = options(CreateMode::Ephemeral);
    let taken = client.create(&child, b"10.0.0.5", &ephemeral).await;
    taken.expect("nobody else takes it without the lock");
    drop(held);
    number
}

impl Worker {
    pub(crate) fn start(servers: &str, group: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (client, number) = runtime.block_on(async {
            let client = connected(servers).await;
            let number = take(&client, group).await;
            (client, number)
        });
        Self {
            servers: servers.into(),
            group: group.into(),
            runtime,
            client,
            number,
            last: (0, 0),
        }
    }

    /// Its session ends, and it takes a number again.
    pub(crate) fn reconnect(&mut self) {
        let Self { servers, group, .. } = &*self;
        (self.client, self.number) = self.runtime.block_on(async {
            let client = connected(servers).await;
            let number = take(&client, group).await;
            (client, number)
        });
    }

    /// IDs of 41 bits of milliseconds, 10 of the worker and 12 of a sequence.
    pub(crate) fn ids(&mut self, count: usize) -> Vec<u64> {
        let mut made = Vec::with_capacity(count);
        while made.len() < count {
            let now = SystemClock::new().wall().0;
            match &mut self.last {
                (tick, sequence) if *tick >= now && *sequence < 4095 => *sequence += 1,
                (tick, _) if *tick >= now => continue,
                last => *last = (now, 0),
            }
            let (tick, sequence) = self.last;
            made.push((tick - 1_288_834_974_657) << 22 | self.number << 12 | sequence);
        }
        made
    }
}
