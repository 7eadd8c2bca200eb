//! Segment tags in Redis keep the promises of every database, and those of their own.

use std::ops::Range;
use std::sync::Arc;

use vesta_service::{NewSegmentTag, NextRange, SegmentStore, SegmentTag, StoreError};
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
        open_segments(&url, options).expect("it opens")
    }
}

impl segment_conformance::Database for Prefix {
    fn connect(&self) -> Arc<dyn SegmentStore> {
        self.segments(&Options::default())
    }
}

vesta_store::segment_conformance!(Redis);

fn opened(server: &Server) -> Arc<dyn SegmentStore> {
    open_segments(&server.url(), &Options::default()).unwrap()
}

fn orders() -> NewSegmentTag {
    NewSegmentTag::new("orders", 1000).expect("a right tag")
}

/// With the tag `orders`, of which 1 to 10 are gone.
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
fn numbers_above_2_to_the_53_are_counted_exactly() {
    const BIG: u64 = 1 << 53;
    let one = Prefix::new();
    let store = one.segments(&Options::default());
    assert!(store.create(&orders().starting_at(BIG - 1).unwrap()).unwrap());
    let mut next = BIG - 1;
    for step in [1, 1, 1, 3, BIG + 1, 1, 1 << 62, 1] {
        assert_eq!(take(&*store, step), next..next + step);
        next += step;
        assert_eq!(store.tags().unwrap()[0].max_id, i64::try_from(next).unwrap());
    }
}

#[test]
fn the_keys_are_as_documented_and_none_has_a_time_to_live() {
    let one = Prefix::new();
    let store = one.segments(&Options::default());
    assert!(store.create(&orders().described_as("the orders").unwrap()).unwrap());
    assert_eq!(take(&*store, 10), 1..11);

    let keys = ["meta", "tag:orders", "tags"].map(|key| format!("{}:segments:{key}", one.prefix));
    assert_eq!(one.keys(), keys);
    let documented = include_str!("../../src/backends/redis/segments.rs");
    for key in &keys {
        assert_eq!(command::<i64>(&one.server, &["PTTL", key]), -1, "{key}");
        let shown = key.replace(&one.prefix, "vesta");
        assert!(documented.contains(&format!("/// {shown} ")), "{shown}");
    }
    let value = |key: &str, name: &str| command::<String>(&one.server, &["HGET", key, name]);
    assert_eq!(value(&keys[0], "schema"), "1");
    let known =
        [("max_id", "11"), ("step", "1000"), ("description", "the orders"), ("update_time", "")];
    for (name, expected) in known {
        assert!(documented.contains(&format!("{name}  ")), "{name}");
        let found = value(&keys[1], name);
        assert!(found == expected || name == "update_time", "{name} {found}");
    }
    assert_eq!(command::<u64>(&one.server, &["HLEN", &keys[1]]), 4);
    assert_eq!(command::<Vec<String>>(&one.server, &["SMEMBERS", &keys[2]]), ["orders"]);

    // As the clock of Redis has it.
    let time: (u64, u64) = command(&one.server, &["TIME"]);
    let [tag] = &store.tags().unwrap()[..] else { panic!("one tag") };
    let changed = tag.update_time.expect("it is kept").0;
    assert!(changed <= (time.0 + 1) * 1000 && changed + 3_600_000 > time.0 * 1000, "{changed}");
}

#[test]
fn what_a_person_writes_is_taken_up() {
    let server = Server::start(DURABLE);
    let store = begun(&server);
    let hash = "vesta:segments:tag:orders";
    let _: u64 = server.command(&["HSET", hash, "step", "5000", "max_id", "70"]);
    let _: u64 = server.command(&["HDEL", hash, "update_time"]);
    let _: u64 = server.command(&["HSET", "vesta:segments:tag:users", "max_id", "-5", "step", "0"]);
    let _: u64 = server.command(&["SADD", "vesta:segments:tags", "users"]);
    let mut tags = store.tags().unwrap();
    tags.sort_by(|a, b| a.key.cmp(&b.key));
    let row = |key: &str, max_id, step| SegmentTag {
        key: key.into(),
        max_id,
        step,
        description: None,
        update_time: None,
    };
    assert_eq!(tags, [row("orders", 70, 5000), row("users", -5, 0)]);
    assert_eq!(take(&*store, 10), 70..80);
    let said = refused(&*store, |store| store.next_range("users", 10).map(drop));
    assert!(said.contains("max_id of `vesta:segments:tag:users` is negative"), "{said}");

    // One that was removed halfway is neither used nor begun again.
    let _: u64 = server.command(&["SREM", "vesta:segments:tags", "orders"]);
    assert_eq!(store.next_range("orders", 10).unwrap(), NextRange::NoTag);
    let said = refused(&*store, REQUESTS[2]);
    assert!(said.contains("`vesta:segments:tag:orders` is there although"), "{said}");
    let _: u64 = server.command(&["DEL", hash]);
    assert!(store.create(&orders()).unwrap());
    assert_eq!(take(&*store, 10), 1..11);
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
    let hash = ["HGET", "vesta:segments:tag:orders", "max_id"];
    assert_eq!(server.command::<String>(&hash), "11", "nothing was taken");

    let of_this = ["--replicaof", "127.0.0.1", &server.port().to_string()];
    let replica = Server::start(&of_this);
    while server.command::<u64>(&["WAIT", "1", "1000"]) == 0 {}
    let error = opened(&replica).tags().unwrap_err();
    assert!(!error.is_permanent() && error.to_string().contains("no master"), "{error}");
    for gone in [None, Some(replica)] {
        drop(gone);
        let said = refused(&*store, REQUESTS[1]);
        assert!(said.contains("had replicas") && said.contains("without replicas"), "{said}");
    }
    assert_eq!(server.command::<String>(&hash), "11", "nothing was taken");
}

#[test]
fn the_documented_rights_suffice_and_one_that_may_not_be_asked_is_refused() {
    let server = Server::start(DURABLE);
    let documented = include_str!("../../src/backends/redis/segments.rs");
    let rights = documented.split("A user needs `").nth(1).unwrap().replace("///", "");
    let rights: Vec<_> = rights.split('`').next().unwrap().split_whitespace().collect();
    let user = [&["ACL", "SETUSER", "ids", "on", ">secret", "~vesta:*"], &rights[..]].concat();
    let () = server.command(&user);
    let url = server.url().replace("//", "//ids:secret@");
    let store = open_segments(&url, &Options::default()).unwrap();
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
fn a_key_that_no_vesta_left_so_is_an_error_that_names_it() {
    let (meta, tags) = ("vesta:segments:meta", "vesta:segments:tags");
    let tag = "vesta:segments:tag:orders";
    for (key, act, advice, requests) in [
        (meta, &["PEXPIRE", meta, "1000000"][..], "run `PERSIST vesta:segments:meta`", 3),
        (tags, &["PEXPIRE", tags, "1000000"], "run `PERSIST vesta:segments:tags`", 3),
        (tag, &["PEXPIRE", tag, "1000000"], "run `PERSIST vesta:segments:tag:orders`", 3),
        (meta, &["SET", meta, "x"], "is a string", 3),
        (tags, &["SET", tags, "x"], "is a string", 3),
        (tag, &["SET", tag, "x"], "is a string", 3),
        (meta, &["DEL", meta], "is missing", 3),
        (tag, &["DEL", tag], "run `SREM vesta:segments:tags orders`", 3),
        (meta, &["HSET", meta, "schema", "2"], "schema `2`", 3),
        (tag, &["HDEL", tag, "step"], "no Vesta wrote", 3),
        (tag, &["HDEL", tag, "max_id"], "no Vesta wrote", 3),
        (tag, &["HSET", tag, "max_id", "1e2"], "no Vesta wrote", 2),
        (tag, &["HSET", tag, "max_id", "011"], "no Vesta wrote", 2),
        (tag, &["HSET", tag, "max_id", "-0"], "no Vesta wrote", 2),
        (tag, &["HSET", tag, "step", "many"], "no Vesta wrote", 1),
    ] {
        let server = Server::start(DURABLE);
        let store = begun(&server);
        let _: redis::Value = server.command(act);
        for request in &REQUESTS[..requests] {
            let said = refused(&*store, *request);
            let named = said.contains(&format!("`{key}`")) || said.contains(&format!(" {key}`"));
            assert!(named && said.contains(advice), "{act:?}: {said}");
        }
    }
}

#[test]
fn nothing_is_created_if_that_is_not_wanted_and_a_wiped_redis_is_noticed() {
    let one = Prefix::new();
    let without = one.segments(&Options { auto_init: false, ..Options::default() });
    for request in REQUESTS {
        let said = refused(&*without, request);
        assert!(said.contains("does not exist, and auto_init is off"), "{said}");
    }
    assert_eq!(one.keys(), [""; 0]);
    assert_eq!(one.segments(&Options::default()).tags().unwrap(), [], "which creates it");
    assert!(without.create(&orders()).unwrap());
    assert_eq!(take(&*without, 10), 1..11);

    for key in one.keys() {
        let _: u64 = command(&one.server, &["DEL", &key]);
    }
    let said = refused(&*without, REQUESTS[1]);
    assert!(said.contains("this Redis was wiped"), "{said}");
}

#[test]
fn a_server_that_was_killed_or_forgot_the_scripts_is_used_again() {
    let mut server = Server::start(DURABLE);
    let store = begun(&server);
    let () = server.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(take(&*store, 10), 11..21);
    server.kill();
    for _ in 0..2 {
        let error = store.next_range("orders", 10).unwrap_err();
        assert!(!error.is_permanent(), "{error}");
    }
    server.restart();
    assert_eq!(take(&*store, 10), 21..31);
}

/// A request that was not answered may have taken effect: it is lost, and not handed out again.
#[test]
fn a_range_whose_answer_did_not_come_is_never_handed_out_again() {
    let server = Server::start(DURABLE);
    let before = take(&*begun(&server), 10);
    let store = open_segments(&server.url(), &hasty()).unwrap();
    server.signal("STOP");
    let error = store.next_range("orders", 10).unwrap_err();
    assert!(!error.is_permanent(), "{error}");
    server.signal("CONT");
    // Slow machines may need more than one attempt.
    let range = (0..50).find_map(|_| match store.next_range("orders", 10) {
        Ok(NextRange::Numbers(range)) => Some(range),
        _ => None,
    });
    assert!(range.expect("it answers").start >= before.end);
}
