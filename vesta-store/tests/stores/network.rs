//! A faulty network in front of real servers: whatever it does, each call ends in time, no answer
//! is wrong, and the store recovers as soon as the network does.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use vesta_service::lease::{Record, StoreError};
use vesta_store::Options;
use vesta_store::conformance::{Cas, Proxy, RecordExt as _, Records};

use crate::servers::Store;

const REQUEST_TIMEOUT: Duration = Duration::from_millis(300);
/// A call that takes this long is considered hung.
const WATCHDOG: Duration = Duration::from_secs(20);
const FINGERPRINT: &str = "a layout";

/// A server, reached directly and over a faulty network.
struct World {
    namespace: String,
    proxy: Proxy,
    over_proxy: Records,
    direct: Records,
    #[cfg(feature = "mysql")]
    _user: crate::mysql::User,
}

impl World {
    fn of(store: &Store) -> Self {
        let url = store.url("".as_ref());
        let (start, host, end) = parts(&url);
        let proxy = Proxy::start(host).expect("a free port");
        let open = |url: &str, request_timeout| {
            let options = Options {
                request_timeout,
                ..Options::default()
            };
            let store = vesta_store::open_with(&url.parse().unwrap(), &options);
            Records(store.unwrap_or_else(|error| panic!("{error}")))
        };
        Self {
            namespace: format!("network-{:x}", RandomState::new().build_hasher().finish()),
            over_proxy: open(
                &format!("{start}{}{end}", proxy.address()),
                Some(REQUEST_TIMEOUT),
            ),
            direct: open(&url, None),
            proxy,
            #[cfg(feature = "mysql")]
            _user: crate::mysql::User::enter(),
        }
    }

    /// With a connection and an open namespace.
    fn opened(store: &Store) -> Self {
        let world = Self::of(store);
        answered(|| world.call(|store, name| store.open_namespace(name, FINGERPRINT)));
        world
            .direct
            .open_namespace(&world.namespace, FINGERPRINT)
            .unwrap();
        world
    }

    /// A call over the faulty network.
    ///
    /// # Panics
    /// If it does not end, or fails permanently.
    fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Records, &str) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (store, namespace) = (self.over_proxy.clone(), self.namespace.clone());
        let (sender, receiver) = channel();
        std::thread::spawn(move || sender.send(call(&store, &namespace)));
        let answer = receiver.recv_timeout(WATCHDOG).expect("the call ends");
        if let Err(error) = &answer {
            assert!(!error.is_permanent(), "{error}");
        }
        answer
    }

    fn cas(&self, old: &Record, new: &Record) -> Result<Cas, StoreError> {
        let (expect, new) = (old.expect(), new.clone());
        self.call(move |store, namespace| store.cas(namespace, MACHINE, &expect, &new))
    }

    /// The store's contents.
    fn record(&self) -> Record {
        answered(|| self.direct.read(&self.namespace, MACHINE)).unwrap_or_default()
    }

    /// Sends the same change until its outcome is known. Checks whether it took effect.
    fn insist(&self, old: &Record, new: &Record, mut between: impl FnMut()) {
        for _ in 0..1000 {
            between();
            let outcome = self.cas(old, new);
            let current = self.record();
            match outcome {
                Ok(Cas::Done) => return assert_eq!(current, *new),
                Ok(Cas::Conflict(seen)) => {
                    assert_eq!(seen, *new, "there are no other writers");
                    return assert_eq!(current, *new);
                }
                Err(_) => assert!(current == *old || current == *new, "{current:?}"),
            }
        }
        panic!("none of 1,000 calls was answered");
    }

    /// Checks that the network works again, and so does the store.
    fn works(&self) {
        let known = self.record();
        let answer = answered(|| self.call(|store, namespace| store.read(namespace, MACHINE)));
        assert_eq!(answer.unwrap_or_default(), known);
        let new = next(&known);
        match answered(|| self.cas(&known, &new)) {
            Cas::Conflict(current) => assert_eq!(current, new, "there are no other writers"),
            Cas::Done => {}
        }
        assert_eq!(self.record(), new);
    }
}

/// Over a network that is well. On a busy machine a reply may take longer than one call's timeout.
fn answered<T>(mut call: impl FnMut() -> Result<T, StoreError>) -> T {
    const CALLS: usize = 20;
    let mut errors = Vec::new();
    while errors.len() < CALLS {
        match call() {
            Ok(answer) => return answer,
            Err(error) => errors.push(error.to_string()),
        }
    }
    panic!("none of {CALLS} calls is answered: {errors:?}");
}

const MACHINE: u64 = 7;

fn next(record: &Record) -> Record {
    let epoch = record.epoch + 1;
    let owner = u128::from(epoch) << 64 | 5;
    Record {
        epoch,
        owner,
        bound: epoch * 1000,
        attempt: epoch * 7,
        ..record.clone()
    }
}

/// A URL split around its first host and port.
fn parts(url: &str) -> (&str, &str, &str) {
    let start = url
        .rfind('@')
        .unwrap_or(url.find("://").expect("a URL") + 2)
        + 1;
    let end = url[start..]
        .find(['/', '?'])
        .map_or(url.len(), |length| start + length);
    (
        &url[..start],
        url[start..end].split(',').next().expect("a host"),
        &url[end..],
    )
}

fn a_server_unreachable_at_opening_is_found_later(store: &Store) {
    let world = World::of(store); // opened without contacting a server
    world.proxy.refuse();
    for _ in 0..3 {
        let open = |store: &Records, name: &str| store.open_namespace(name, FINGERPRINT);
        world.call(open).expect_err("it is away");
    }
    assert!(
        world
            .direct
            .read(&world.namespace, MACHINE)
            .expect_err("not opened")
            .is_permanent()
    );
    world.proxy.heal();
    let opened = answered(|| world.call(|store, name| store.open_namespace(name, FINGERPRINT)));
    assert_eq!(
        opened,
        world
            .direct
            .open_namespace(&world.namespace, "another")
            .unwrap()
    );
    world.works();
}

fn each_call_over_a_frozen_connection_ends(store: &Store) {
    let world = World::opened(store);
    world.works();
    let has_clock = world.direct.now().unwrap().is_some();
    let new = next(&world.record());
    let expect = world.record().expect();
    world.proxy.freeze();
    for _ in 0..2 {
        let new = new.clone();
        world
            .call(|store, name| store.read(name, MACHINE))
            .expect_err("frozen");
        world
            .call(|store, name| store.list(name))
            .expect_err("frozen");
        world
            .call(|store, name| store.open_namespace(name, FINGERPRINT))
            .expect_err("frozen");
        world
            .call(|store, name| store.raise_floor(name, 1))
            .expect_err("frozen");
        world
            .call(move |store, name| store.cas(name, MACHINE, &expect, &new))
            .expect_err("frozen");
        assert_eq!(world.call(|store, _| store.now()).is_err(), has_clock);
    }
    let old = world.record();
    world.proxy.heal();
    world.insist(&old, &new, || {}); // it may have arrived late, or not at all
    world.works();
}

fn a_change_whose_reply_is_lost_is_recognised(store: &Store) {
    let world = World::opened(store);
    world.works();
    for _ in 0..5 {
        let old = world.record();
        let new = next(&old);
        world.proxy.drop_replies();
        world.cas(&old, &new).expect_err("nothing comes back");
        let arrived = world.record() == new;
        world.proxy.heal();
        match answered(|| world.cas(&old, &new)) {
            Cas::Conflict(current) => assert_eq!(current, new),
            Cas::Done => assert!(!arrived, "it was done before"),
        }
        assert_eq!(world.record(), new);
        world.works();
    }
}

fn a_closed_connection_is_replaced(store: &Store) {
    let world = World::opened(store);
    for _ in 0..5 {
        world.works();
        world.proxy.refuse();
        world.proxy.heal();
    }
    world.works();
    assert!(world.proxy.accepted() > 5, "there were new ones");
}

fn no_answer_is_wrong_while_the_network_comes_and_goes(store: &Store) {
    let world = World::opened(store);
    let mut record = world.record();
    let mut calls = 0;
    // First step by step: up to three failing calls, then a successful one.
    while calls < 100 {
        let mut refused = calls % 4;
        let new = next(&record);
        world.insist(&record, &new, || {
            calls += 1;
            if refused == 0 {
                world.proxy.heal()
            } else {
                world.proxy.refuse()
            }
            refused -= refused.min(1);
        });
        record = new;
    }
    // Then at any moment of a call.
    let (done, over) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| come_and_go(&world.proxy, over));
        for _ in 0..100 {
            let new = next(&record);
            world.insist(&record, &new, || {});
            record = new;
        }
        drop(done);
    });
    world.works();
}

/// Breaks and heals the network until the test is over.
fn come_and_go(proxy: &Proxy, over: Receiver<()>) {
    let for_a_moment =
        |millis| over.recv_timeout(Duration::from_millis(millis)) == Err(RecvTimeoutError::Timeout);
    for round in 0_u64.. {
        let goes_on = for_a_moment(20 + round * 7 % 50);
        proxy.refuse();
        let goes_on = goes_on && for_a_moment(round % 3);
        proxy.heal();
        if !goes_on {
            return;
        }
    }
}

macro_rules! on {
    ($store:expr; $($scenario:ident)*) => {
        $(
            #[test]
            fn $scenario() {
                crate::network::$scenario(&$store);
            }
        )*
    };
    ($store:expr) => {
        on! { $store;
            a_server_unreachable_at_opening_is_found_later
            each_call_over_a_frozen_connection_ends
            a_change_whose_reply_is_lost_is_recognised
            a_closed_connection_is_replaced
            no_answer_is_wrong_while_the_network_comes_and_goes
        }
    };
}

#[cfg(feature = "mysql")]
mod mysql {
    on!(crate::servers::MYSQL);
}
#[cfg(feature = "postgres")]
mod postgres {
    on!(crate::servers::POSTGRES);
}
#[cfg(feature = "redis")]
mod redis {
    on!(crate::servers::REDIS);
}
#[cfg(feature = "zookeeper")]
mod zookeeper {
    on!(crate::servers::ZOOKEEPER);
}
#[cfg(feature = "etcd")]
mod etcd {
    on!(crate::servers::ETCD);
}

#[test]
fn a_url_is_split_around_its_first_host() {
    assert_eq!(parts("mysql://u:p@h:1/d"), ("mysql://u:p@", "h:1", "/d"));
    assert_eq!(parts("redis://:p@h:1/0?x"), ("redis://:p@", "h:1", "/0?x"));
    assert_eq!(
        parts("zookeeper://h:1,i:2/p"),
        ("zookeeper://", "h:1", "/p")
    );
    assert_eq!(parts("etcd://h:1"), ("etcd://", "h:1", ""));
}
