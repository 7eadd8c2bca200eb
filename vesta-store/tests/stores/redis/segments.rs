//! Segment tags in Redis: conformance suite and further tests.

use std::ops::Range;
use std::sync::Arc;

use vesta_numbers::segment::{NewSegmentTag, NextRange, SegmentStore};
use vesta_service::lease::StoreError;
use vesta_store::segment_conformance::{self, Databases};
use vesta_store::{Options, open_segments};

use super::server::{DURABLE, Server, command, hasty};
use super::{Prefix, Redis};

impl Databases for Redis {
    fn fresh(&self) -> Box<dyn segment_conformance::Database> {
        Box::new(Prefix::new())
    }
}

impl Prefix {
    fn segments(&self, options: &Options) -> Arc<dyn SegmentStore> {
        let url = format!("{}?prefix={}", self.server, self.prefix);
        open_segments(&url.parse().unwrap(), options).expect("it opens")
    }
}

impl segment_conformance::Database for Prefix {
    fn connect(&self) -> Arc<dyn SegmentStore> {
        self.segments(&Options::default())
    }
}

vesta_store::segment_conformance!(Redis);

fn opened(server: &Server) -> Arc<dyn SegmentStore> {
    open_segments(&server.url().parse().unwrap(), &Options::default()).unwrap()
}

fn orders() -> NewSegmentTag {
    NewSegmentTag::new("orders", 1000).expect("a right tag")
}

/// With the tag `orders`, of which 1 to 10 are taken.
fn begun(server: &Server) -> Arc<dyn SegmentStore> {
    let store = opened(server);
    assert!(store.create(&orders()).expect("it answers"));
    assert_eq!(take(&*store, 10), 1..11);
    store
}

fn take(store: &dyn SegmentStore, step: u64) -> Range<u64> {
    match store.next_range("orders", step).expect("it answers") {
        NextRange::Numbers(range) => range,
        other => panic!("expected numbers, got {other:?}"),
    }
}

type Request = fn(&dyn SegmentStore) -> Result<(), StoreError>;

const REQUESTS: [Request; 3] = [
    |store| store.tags().map(drop),
    |store| store.next_range("orders", 10).map(drop),
    |store| store.create(&orders()).map(drop),
];

fn refused(store: &dyn SegmentStore, request: Request) -> String {
    let error = request(store).expect_err("refused");
    assert!(error.is_permanent(), "{error}");
    error.to_string()
}

#[test]
fn the_entries_are_as_documented_and_their_key_has_no_time_to_live() {
    let one = Prefix::new();
    let store = one.segments(&Options::default());
    assert!(store.create(&orders()).unwrap());
    let documented = include_str!("../../../src/backends/redis/mod.rs");
    assert!(documented.contains("/// vesta:segment/tags   hash   orders "));
    let key = format!("{}:segment/tags", one.prefix);
    assert_eq!(one.keys(), [key.as_str()]);
    assert_eq!(command::<i64>(&one.server, &["PTTL", &key]), -1);
    let entry: String = command(&one.server, &["HGET", &key, "orders"]);
    assert!(
        entry.starts_with(r#"{"schema":1,"key":"orders","max_id":"1","#),
        "{entry}"
    );

    // An operator may change it; a typing error is not taken for a number.
    let raised = entry.replace(r#""max_id":"1""#, r#""max_id":"70""#);
    let _: u64 = command(&one.server, &["HSET", &key, "orders", &raised]);
    assert_eq!(take(&*store, 10), 70..80);
    let slip = entry.replace(r#""max_id":"1""#, r#""max_id":"1e2""#);
    let _: u64 = command(&one.server, &["HSET", &key, "orders", &slip]);
    for request in &REQUESTS[..2] {
        let said = refused(&*store, *request);
        assert!(
            said.contains("entry `orders` of segment/tags is damaged: its `max_id`"),
            "{said}"
        );
    }
}

#[test]
fn a_redis_that_may_forget_is_refused() {
    let server = Server::start(DURABLE);
    let store = begun(&server);
    let set = |setting: &str, value: &str| {
        let () = server.command(&["CONFIG", "SET", setting, value]);
    };
    set("maxmemory", "100mb");
    for (setting, careless, careful) in [
        ("appendfsync", "everysec", "always"),
        ("appendonly", "no", "yes"),
        ("no-appendfsync-on-rewrite", "yes", "no"),
        ("maxmemory-policy", "allkeys-lru", "noeviction"),
    ] {
        set(setting, careless);
        // The same connection, and a new one.
        for store in [&*store, &*opened(&server)] {
            for request in REQUESTS {
                let said = refused(store, request);
                assert!(said.contains(&format!("set {setting} {careful}")), "{said}");
            }
        }
        set(setting, careful);
        store.tags().unwrap();
    }
    let untouched = || {
        let entry: String = server.command(&["HGET", "vesta:segment/tags", "orders"]);
        assert!(entry.contains(r#""max_id":"11""#), "{entry}");
    };
    untouched();

    let of_this = ["--replicaof", "127.0.0.1", &server.port().to_string()];
    let replica = Server::start(&of_this);
    while server.command::<u64>(&["WAIT", "1", "1000"]) == 0 {}
    let error = opened(&replica).tags().unwrap_err();
    assert!(
        !error.is_permanent() && error.to_string().contains("not the primary"),
        "{error}"
    );
    for gone in [None, Some(replica)] {
        drop(gone);
        let said = refused(&*store, REQUESTS[1]);
        assert!(
            said.contains("had replicas") && said.contains("without replicas"),
            "{said}"
        );
    }
    untouched();
}

#[test]
fn the_documented_rights_suffice_and_a_server_without_config_is_refused() {
    let server = Server::start(DURABLE);
    let documented = include_str!("../../../src/backends/redis/mod.rs");
    let rights = documented
        .split("The user needs `")
        .nth(1)
        .unwrap()
        .replace("///", "");
    let rights: Vec<_> = rights
        .split('`')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let user = [
        &["ACL", "SETUSER", "ids", "on", ">secret", "~vesta:*"],
        &rights[..],
    ]
    .concat();
    let () = server.command(&user);
    let url = server.url().replace("//", "//ids:secret@");
    let store = open_segments(&url.parse().unwrap(), &Options::default()).unwrap();
    assert!(store.create(&orders()).unwrap());
    assert_eq!(take(&*store, 10), 1..11);
    assert_eq!(store.tags().unwrap().len(), 1);

    let () = server.command(&["ACL", "SETUSER", "ids", "-config"]);
    let said = refused(&*store, REQUESTS[1]);
    assert!(said.contains("CONFIG GET is not permitted"), "{said}");
    let shown = format!("{said} {store:?} {}", store.describe());
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn a_server_that_was_killed_or_forgot_the_scripts_is_used_again() {
    let mut server = Server::start(DURABLE);
    let store = begun(&server);
    let () = server.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(take(&*store, 10), 11..21);
    server.process.kill();
    for _ in 0..2 {
        let error = store.next_range("orders", 10).unwrap_err();
        assert!(!error.is_permanent(), "{error}");
    }
    server.restart();
    assert_eq!(take(&*store, 10), 21..31);
}

/// An unanswered request may have taken effect: its range is lost, and not handed out again.
#[test]
fn a_range_whose_reply_was_lost_is_never_handed_out_again() {
    let server = Server::start(DURABLE);
    let before = take(&*begun(&server), 10);
    let store = open_segments(&server.url().parse().unwrap(), &hasty()).unwrap();
    server.process.pause();
    let error = store.next_range("orders", 10).unwrap_err();
    assert!(!error.is_permanent(), "{error}");
    server.process.resume();
    // Slow machines may need more than one attempt.
    let range = (0..50).find_map(|_| match store.next_range("orders", 10) {
        Ok(NextRange::Numbers(range)) => Some(range),
        _ => None,
    });
    assert!(range.expect("it answers").start >= before.end);
}
