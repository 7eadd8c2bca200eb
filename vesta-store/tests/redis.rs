//! Redis keeps the promises of every store, and those of its own.

#[path = "redis/segments.rs"]
mod segments;
#[path = "redis/server.rs"]
mod server;

use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use server::{DURABLE, Server, command, hasty};
use vesta_service::{Cas, Clock as _, LeaseStore, Record, StoreError, SystemClock, UnixMillis};
use vesta_store::conformance::{Backend, Fixture};
use vesta_store::redis::RedisStore;
use vesta_store::{OpenError, Options};

struct Redis;

/// Keys of its own on the server that all tests share.
struct Prefix {
    server: String,
    prefix: String,
}

impl Prefix {
    fn new() -> Self {
        let server = std::env::var("VESTA_TEST_REDIS").expect(
            "set VESTA_TEST_REDIS to the URL of a throw-away server, or run scripts/test.sh",
        );
        let prefix = format!("test-{:x}", RandomState::new().hash_one(std::process::id()));
        let one = Self { server, prefix };
        let store = one.store();
        store.now().expect("the server of VESTA_TEST_REDIS answers");
        assert!(
            !store.may_forget(),
            "start the server of VESTA_TEST_REDIS with --appendonly yes --appendfsync always"
        );
        one
    }

    fn store(&self) -> RedisStore {
        RedisStore::open(&format!("{}?prefix={}", self.server, self.prefix)).expect("a URL")
    }

    fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = command(&self.server, &["KEYS", &format!("{}:*", self.prefix)]);
        keys.sort();
        keys
    }
}

impl Drop for Prefix {
    fn drop(&mut self) {
        for key in self.keys() {
            let _: u64 = command(&self.server, &["DEL", &key]);
        }
    }
}

impl Backend for Redis {
    fn fresh(&self) -> Box<dyn Fixture> {
        Box::new(Prefix::new())
    }
}

impl Fixture for Prefix {
    fn connect(&self) -> Arc<dyn LeaseStore> {
        Arc::new(self.store())
    }
}

vesta_store::conformance!(Redis);

const IDS: &str = "ids";

fn claimed(epoch: u64, bound: u64) -> Record {
    Record { epoch, owner: 7, bound, attempt: epoch * 10, host: "h".into(), ..Record::default() }
}

/// Opens the namespace and claims machine ID 3.
fn claim(store: &RedisStore) -> Record {
    store.open_namespace(IDS, "a layout").expect("it opens");
    let record = claimed(1, 100);
    assert_eq!(change(store, &Record::unclaimed(0), &record).expect("it answers"), Cas::Done);
    record
}

fn change(store: &RedisStore, from: &Record, to: &Record) -> Result<Cas, StoreError> {
    store.cas(IDS, 3, &from.expect(), to)
}

#[test]
fn numbers_above_2_to_the_53_are_kept_and_compared_exactly() {
    const BIG: u64 = 1 << 53;
    let one = Prefix::new();
    let store = one.store();
    store.open_namespace(IDS, "a layout").unwrap();
    let exact = Record { attempt: BIG + 1, info_time: UnixMillis(BIG + 1), ..claimed(1, BIG + 1) };
    assert_eq!(change(&store, &Record::unclaimed(0), &exact).unwrap(), Cas::Done);
    assert_eq!(store.read(IDS, 3).unwrap(), Some(exact.clone()));
    let next = claimed(2, BIG + 3);
    for bound in [BIG, BIG + 2] {
        let near = Record { bound, ..exact.clone() };
        assert_eq!(change(&store, &near, &next).unwrap(), Cas::Conflict(exact.clone()));
    }
    assert_eq!(change(&store, &exact, &next).unwrap(), Cas::Done);

    for (floor, then) in [(BIG, BIG), (BIG + 1, BIG + 1), (BIG, BIG + 1), (9, BIG + 1)] {
        assert_eq!(store.raise_floor(IDS, floor).unwrap(), then);
    }
    assert_eq!(store.open_namespace(IDS, "x").unwrap().floor, BIG + 1);
    let near = store.cas(IDS, 4, &Record::unclaimed(BIG).expect(), &claimed(1, 5)).unwrap();
    assert_eq!(near, Cas::Conflict(Record::unclaimed(BIG + 1)));
    let machine = i64::MAX.unsigned_abs();
    let expect = Record::unclaimed(BIG + 1).expect();
    assert_eq!(store.cas(IDS, machine, &expect, &exact).unwrap(), Cas::Done);
    assert_eq!(store.list(IDS).unwrap(), [(3, next), (machine, exact.clone())]);

    assert!(store.cas(IDS, 1 << 63, &expect, &exact).unwrap_err().is_permanent());
    assert!(store.raise_floor(IDS, 1 << 63).unwrap_err().is_permanent());
}

#[test]
fn the_keys_are_as_documented_and_none_has_a_time_to_live() {
    let one = Prefix::new();
    let store = one.store();
    let mut before = claim(&store);
    let released = Record { owner: 0, released: true, ..claimed(1, 150) };
    for record in [claimed(1, 200), released, claimed(2, 300)] {
        assert_eq!(change(&store, &before, &record).unwrap(), Cas::Done);
        before = record;
    }
    store.raise_floor(IDS, 42).unwrap();

    let documented = include_str!("../src/redis.rs");
    let kinds = ["machines", "meta", "rec:3"];
    let keys = kinds.map(|kind| format!("{}:{{{IDS}}}:{kind}", one.prefix));
    assert_eq!(one.keys(), keys);
    for key in &keys {
        assert_eq!(command::<i64>(&one.server, &["PTTL", key]), -1, "{key}");
    }
    for (key, names) in [(&keys[1], 4), (&keys[2], 8)] {
        let found: Vec<String> = command(&one.server, &["HKEYS", key]);
        assert_eq!(found.len(), names);
        for name in found {
            assert!(documented.contains(&name), "{name}");
        }
    }
    let value = |name: &str| command::<String>(&one.server, &["HGET", &keys[2], name]);
    assert_eq!(value("bound"), "300");
    assert_eq!(value("owner"), "00000000000000000000000000000007");
    let listed: Vec<String> = command(&one.server, &["SMEMBERS", &keys[0]]);
    assert_eq!(listed, ["3"]);
}

#[test]
fn only_what_keeps_everything_does_not_forget() {
    let server = Server::start(DURABLE);
    let store = server.store();
    assert!(store.may_forget(), "as long as nobody has asked");
    store.open_namespace(IDS, "a layout").unwrap();
    assert!(!store.may_forget());
    for (setting, careless, careful) in [
        ("appendfsync", "everysec", "always"),
        ("appendonly", "no", "yes"),
        ("no-appendfsync-on-rewrite", "yes", "no"),
    ] {
        for (value, forgets) in [(careless, true), (careful, false)] {
            let () = server.command(&["CONFIG", "SET", setting, value]);
            // The same connection, and a new one.
            store.open_namespace(IDS, "a layout").unwrap();
            assert_eq!(store.may_forget(), forgets, "{setting} {value}");
            let other = server.store();
            other.list(IDS).unwrap();
            assert_eq!(other.may_forget(), forgets, "{setting} {value}");
        }
    }

    let user = ["ACL", "SETUSER", "ids", "on", ">secret", "~vesta:*"];
    // As the documentation has it; and without the right to ask.
    let documented = "+@connection +info +config|get +time +wait +eval +evalsha +type +pttl +exists \
                      +hget +hmget +hset +sadd +sismember +smembers";
    for (more, forgets) in [("+ping", false), ("-config", true)] {
        let rights = documented.split_whitespace().chain([more]);
        let () = server.command(user.into_iter().chain(rights).collect::<Vec<_>>());
        let url = server.url().replace("//", "//ids:secret@");
        let store = RedisStore::open(&url).unwrap();
        store.open_namespace(IDS, "a layout").unwrap();
        assert_eq!(store.may_forget(), forgets);
        let record = store.read(IDS, 3).unwrap().unwrap_or(Record::unclaimed(0));
        let next = claimed(record.epoch + 1, record.bound + 1);
        assert_eq!(change(&store, &record, &next).unwrap(), Cas::Done);
        assert_eq!(store.list(IDS).unwrap(), [(3, next)]);
        store.now().unwrap();
    }
}

#[test]
fn a_redis_that_would_evict_keys_is_refused() {
    let server = Server::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let store = server.store();
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let () = server.command(&["CONFIG", "SET", "maxmemory-policy", policy]);
        let error = store.open_namespace(IDS, "a layout").unwrap_err();
        assert!(error.is_permanent());
        assert!(error.to_string().contains("set maxmemory-policy noeviction"), "{error}");
        assert!(store.list(IDS).unwrap_err().is_permanent());
    }
    let () = server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    store.open_namespace(IDS, "a layout").unwrap();

    let () = server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let () = server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let first = claimed(1, 100);
    let error = change(&store, &Record::unclaimed(0), &first).unwrap_err();
    assert!(!error.is_permanent() && error.to_string().contains("raise its maxmemory"), "{error}");
    let () = server.command(&["CONFIG", "SET", "maxmemory", "100mb"]);
    assert_eq!(change(&store, &Record::unclaimed(0), &first).unwrap(), Cas::Done);
}

#[test]
fn wrong_credentials_are_permanent_and_never_shown() {
    let server = Server::start(&["--requirepass", "correct horse"]);
    let store = |login: &str, rest: &str| {
        let url = server.url().replace("//", &format!("//{login}")) + rest;
        RedisStore::open(&url).unwrap()
    };
    for (login, rest, advice) in [
        (":hunter2@", "", "check the URL"),
        ("ids:hunter2@", "", "check the URL"),
        ("", "", "wants a password"),
        (":correct%20horse@", "/99", "no database 99"),
    ] {
        let store = store(login, rest);
        let error = store.now().unwrap_err();
        assert!(error.is_permanent() && error.to_string().contains(advice), "{error}");
        let shown = format!("{error} {error:?} {store:?} {}", store.describe());
        assert!(!shown.contains("hunter2") && !shown.contains("horse"), "{shown}");
    }
    let good = store(":correct%20horse@", "/9");
    claim(&good);
    let shown = format!("{good:?} {}", good.describe());
    assert!(!shown.contains("horse"), "{shown}");
    assert_eq!(good.describe(), format!("Redis 127.0.0.1:{}/9", server.port()));

    let passwordless = Server::start(&[]);
    let url = passwordless.url().replace("//", "//:hunter2@");
    let error = RedisStore::open(&url).unwrap().now().unwrap_err();
    assert!(error.is_permanent() && error.to_string().contains("leave it out"), "{error}");
    let () = passwordless.command(&["ACL", "SETUSER", "default", "-eval", "-evalsha"]);
    let error = passwordless.store().open_namespace(IDS, "a layout").unwrap_err();
    assert!(error.is_permanent() && error.to_string().contains("NOPERM"), "{error}");
}

type Request = fn(&RedisStore) -> Result<(), StoreError>;

const REQUESTS: [Request; 4] = [
    |store| store.list(IDS).map(drop),
    |store| store.read(IDS, 3).map(drop),
    |store| change(store, &claimed(1, 100), &claimed(2, 200)).map(drop),
    |store| store.open_namespace(IDS, "a layout").map(drop),
];

#[test]
fn a_key_that_no_vesta_left_so_is_an_error_that_names_it() {
    let (meta, rec, machines) = ("vesta:{ids}:meta", "vesta:{ids}:rec:3", "vesta:{ids}:machines");
    // Opening a namespace looks at no record.
    for (key, act, advice, requests) in [
        (meta, &["PEXPIRE", meta, "1000000"][..], "run `PERSIST vesta:{ids}:meta`", 4),
        (machines, &["PEXPIRE", machines, "1000000"], "run `PERSIST vesta:{ids}:machines`", 4),
        (rec, &["PEXPIRE", rec, "1000000"], "run `PERSIST vesta:{ids}:rec:3`", 3),
        (meta, &["SET", meta, "x"], "is a string", 4),
        (machines, &["SET", machines, "x"], "is a string", 4),
        (rec, &["SET", rec, "x"], "is a string", 3),
        (meta, &["DEL", meta], "is missing", 4),
        (rec, &["DEL", rec], "is missing", 3),
        (meta, &["HSET", meta, "schema", "2"], "schema `2`", 4),
        (meta, &["HDEL", meta, "floor"], "no Vesta wrote", 4),
        (rec, &["HDEL", rec, "host"], "no Vesta wrote", 3),
        (rec, &["HSET", rec, "bound", "1e2"], "no Vesta wrote", 3),
        (machines, &["SADD", machines, "03"], "is missing", 1),
    ] {
        let server = Server::start(&[]);
        let store = server.store();
        claim(&store);
        let _: redis::Value = server.command(act);
        for request in &REQUESTS[..requests] {
            let error = request(&store).unwrap_err();
            assert!(error.is_permanent());
            let said = error.to_string();
            let named = said.contains(&format!("`{key}`")) || said.contains(&format!(" {key}`"));
            assert!(
                (named || said.contains("`vesta:{ids}:rec:03`")) && said.contains(advice),
                "{said}"
            );
        }
    }
}

#[test]
fn an_owner_learns_that_the_store_was_wiped() {
    let server = Server::start(&[]);
    let (store, other) = (server.store(), server.store());
    let record = claim(&store);
    let gone = Cas::Conflict(Record::unclaimed(0));
    let () = server.command(&["FLUSHALL"]);
    assert_eq!(change(&store, &record, &claimed(1, 200)).unwrap(), gone);
    assert!(store.list(IDS).unwrap_err().is_permanent());
    assert!(change(&other, &record, &claimed(1, 200)).unwrap_err().is_permanent(), "not opened");

    // Made anew by somebody else, it is another namespace.
    let theirs = claim(&other);
    assert_eq!(change(&store, &record, &claimed(1, 200)).unwrap(), gone);
    let error = store.read(IDS, 3).unwrap_err();
    assert!(error.is_permanent() && error.to_string().contains("wiped"), "{error}");
    assert_eq!(other.read(IDS, 3).unwrap(), Some(theirs.clone()));
    store.open_namespace(IDS, "a layout").unwrap();
    assert_eq!(store.list(IDS).unwrap(), [(3, theirs)]);
}

#[test]
fn a_namespace_is_not_created_if_that_is_not_wanted() {
    let one = Prefix::new();
    let options = Options { auto_init: false, ..Options::default() };
    let url = format!("{}?prefix={}", one.server, one.prefix);
    let store = RedisStore::open_with(&url, &options).unwrap();
    let error = store.open_namespace(IDS, "a layout").unwrap_err();
    assert!(error.is_permanent() && error.to_string().contains("store init`"), "{error}");
    assert_eq!(one.keys(), [""; 0]);
    let made = one.store().open_namespace(IDS, "a layout").unwrap();
    assert_eq!(store.open_namespace(IDS, "other").unwrap(), made);
}

#[test]
fn a_server_that_was_restarted_or_forgot_the_scripts_is_used_again() {
    let mut server = Server::start(DURABLE);
    let store = server.store();
    let first = claim(&store);
    let () = server.command(&["SCRIPT", "FLUSH"]);
    let second = claimed(1, 200);
    assert_eq!(change(&store, &first, &second).unwrap(), Cas::Done);

    server.kill();
    for _ in 0..2 {
        let error = change(&store, &second, &claimed(1, 300)).unwrap_err();
        assert!(!error.is_permanent(), "{error}");
    }
    server.restart();
    assert_eq!(store.read(IDS, 3).unwrap(), Some(second.clone()));
    assert_eq!(change(&store, &second, &claimed(1, 300)).unwrap(), Cas::Done);
}

/// How long a request takes that is not answered: not measured tightly.
fn unanswered(store: &RedisStore) {
    let clock = SystemClock::new();
    let before = clock.monotonic();
    let error = store.list(IDS).unwrap_err();
    assert!(!error.is_permanent() && !error.to_string().contains("panic"), "{error}");
    assert!(clock.monotonic() - before < Duration::from_secs(20));
}

#[test]
fn a_request_ends_in_time_whatever_the_server_does() {
    let server = Server::start(&[]);
    let record = claim(&server.store());
    let store = server.hasty_store();
    // Slow machines may need more than one attempt.
    let found = || (0..50).find_map(|_| store.read(IDS, 3).ok().flatten());
    assert_eq!(found().as_ref(), Some(&record));
    server.signal("STOP");
    unanswered(&store);
    unanswered(&server.hasty_store()); // the kernel takes the connection, nobody reads from it
    unanswered(&store);
    server.signal("CONT");
    assert_eq!(found(), Some(record));

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for scheme in ["redis", "rediss"] {
        let url = format!("{scheme}://{}", silent.local_addr().unwrap());
        unanswered(&RedisStore::open_with(&url, &hasty()).unwrap());
    }
    // TLS with who does not speak it.
    let url = server.url().replace("redis:", "rediss:");
    unanswered(&RedisStore::open(&url).unwrap());
}

#[test]
fn a_change_counts_only_when_a_replica_has_it() {
    let master = Server::start(DURABLE);
    let store = master.store();
    let mut record = claim(&store);
    assert!(!store.may_forget());

    let of_master = ["--replicaof", "127.0.0.1", &master.port().to_string()];
    let replica = Server::start(&of_master);
    while master.command::<u64>(&["WAIT", "1", "1000"]) == 0 {}
    let extend = |from: &Record| claimed(from.epoch + 1, from.bound + 1);
    let next = extend(&record);
    // A replica that has just come confirms with a delay: then it is sent again.
    let until_known =
        |from: &Record, to: &Record| (0..50).find_map(|_| change(&store, from, to).ok());
    let outcome = until_known(&record, &next).expect("it is confirmed in the end");
    assert!(outcome == Cas::Done || outcome == Cas::Conflict(next.clone()), "{outcome:?}");
    assert!(store.may_forget(), "a fail-over may lose it");
    record = next;

    // It has not failed, and it has not succeeded, however often it is sent.
    replica.signal("STOP");
    let next = extend(&record);
    for store in [&store, &store, &master.store()] {
        let error = change(store, &record, &next).unwrap_err();
        assert!(!error.is_permanent(), "{error}");
    }
    // What is not to be changed needs no confirmation.
    assert_eq!(change(&store, &record, &claimed(9, 9)).unwrap(), Cas::Conflict(next.clone()));
    replica.signal("CONT");
    let outcome = until_known(&record, &next);
    assert_eq!(outcome, Some(Cas::Conflict(next.clone())), "recognised by its attempt");

    let error = replica.store().open_namespace(IDS, "a layout").unwrap_err();
    assert!(!error.is_permanent() && error.to_string().contains("no master"), "{error}");
    drop(replica);
    let again = master.store();
    again.open_namespace(IDS, "a layout").unwrap();
    assert!(again.may_forget(), "there was a replica a moment ago");
}

#[test]
fn a_url_that_makes_no_sense_opens_nothing() {
    for url in ["redis://", "redis://:hunter2@cache?database=1", "rediss://cache/x"] {
        let error = vesta_store::open(url).map(drop).unwrap_err();
        assert!(matches!(error, OpenError::Malformed { .. }), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    vesta_store::open("redis://nobody.invalid:1").expect("nobody is asked yet");
}
