//! Redis: conformance suite and further tests.

mod segments;
pub(crate) mod server;

use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use server::{DURABLE, Server, command, hasty, opened};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::{KvStore, StoreError};
use vesta_store::conformance::{Backend, Fixture};
use vesta_store::{OpenError, Options};
use vesta_testkit::fleet::store_url;

struct Redis;

/// Keys with a unique prefix on the server shared by all tests.
struct Prefix {
    server: String,
    prefix: String,
}

impl Prefix {
    fn new() -> Self {
        let server = store_url("redis");
        let prefix = format!("test-{:x}", RandomState::new().hash_one(std::process::id()));
        let one = Self { server, prefix };
        let store = one.store();
        store.now().expect("the server of VESTA_TEST_REDIS answers");
        assert!(
            store.doubt().expect("it answers").is_none(),
            "start the server of VESTA_TEST_REDIS with --appendonly yes --appendfsync always"
        );
        one
    }

    fn store(&self) -> Arc<dyn KvStore> {
        self.store_with(&Options::default())
    }

    fn store_with(&self, options: &Options) -> Arc<dyn KvStore> {
        opened(&format!("{}?prefix={}", self.server, self.prefix), options)
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
    fn connect(&self) -> Arc<dyn KvStore> {
        self.store()
    }

    fn delete(&self, area: &str, key: &str) -> bool {
        command::<u64>(
            &self.server,
            &["HDEL", &format!("{}:{area}", self.prefix), key],
        ) == 1
    }
}

vesta_store::conformance!(Redis);

const AREA: &str = "lease/ids";
const KEY: &str = "vesta:lease/ids";

fn put(store: &Arc<dyn KvStore>, old: Option<&str>, new: &str) -> Result<bool, StoreError> {
    store.put_if(AREA, "3", old, new)
}

/// With one entry.
fn begin(store: &Arc<dyn KvStore>) {
    assert!(put(store, None, "1").expect("it answers"));
}

fn get(store: &Arc<dyn KvStore>) -> String {
    store.get(AREA, "3").expect("it answers").expect("an entry")
}

#[test]
fn the_keys_are_as_documented_and_none_has_a_time_to_live() {
    let one = Prefix::new();
    let store = one.store();
    begin(&store);
    for (old, new) in [("1", "2"), ("2", "3")] {
        assert!(put(&store, Some(old), new).unwrap());
    }
    assert!(store.put_if(AREA, "namespace", None, "n").unwrap());

    let documented = include_str!("../../src/backends/redis/mod.rs");
    assert!(documented.contains("/// vesta:lease/orders   hash   namespace "));
    let key = format!("{}:{AREA}", one.prefix);
    assert_eq!(one.keys(), [key.as_str()]);
    assert_eq!(command::<i64>(&one.server, &["PTTL", &key]), -1);
    assert_eq!(command::<String>(&one.server, &["HGET", &key, "3"]), "3");
    assert_eq!(
        command::<String>(&one.server, &["HGET", &key, "namespace"]),
        "n"
    );
}

#[test]
fn only_a_fully_durable_server_is_not_doubted() {
    let server = Server::start(DURABLE);
    let store = server.store();
    let is_doubted = |store: &Arc<dyn KvStore>| store.doubt().unwrap().is_some();
    assert!(!is_doubted(&store));
    for (setting, careless, careful) in [
        ("appendfsync", "everysec", "always"),
        ("appendonly", "no", "yes"),
        ("no-appendfsync-on-rewrite", "yes", "no"),
    ] {
        for (value, forgets) in [(careless, true), (careful, false)] {
            let () = server.command(&["CONFIG", "SET", setting, value]);
            // The same connection, and new ones.
            for store in [&store, &server.store()] {
                let doubt = store.doubt().unwrap();
                assert_eq!(doubt.is_some(), forgets, "{setting} {value}");
                let advice = format!("set {setting} {careful}");
                assert!(
                    doubt.is_none_or(|doubt| doubt.why.contains(&advice)),
                    "{advice}"
                );
            }
        }
    }

    let user = ["ACL", "SETUSER", "ids", "on", ">secret", "~vesta:*"];
    let documented = include_str!("../../src/backends/redis/mod.rs");
    let documented = documented
        .split("The user needs `")
        .nth(1)
        .unwrap()
        .replace("///", "");
    let documented = documented.split('`').next().unwrap();
    // As documented; and without permission for CONFIG.
    for (more, forgets) in [("+ping", false), ("-config", true)] {
        let rights = documented.split_whitespace().chain([more]);
        let () = server.command(user.into_iter().chain(rights).collect::<Vec<_>>());
        let url = server.url().replace("//", "//ids:secret@");
        let store = opened(&url, &Options::default());
        let old = store.get(AREA, "3").unwrap();
        assert_eq!(is_doubted(&store), forgets);
        assert!(put(&store, old.as_deref(), more).unwrap());
        assert_eq!(store.list(AREA).unwrap(), [("3".into(), more.into())]);
        store.now().unwrap();
    }
}

#[test]
fn a_redis_that_would_evict_keys_is_refused() {
    let server = Server::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let store = server.store();
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let () = server.command(&["CONFIG", "SET", "maxmemory-policy", policy]);
        for error in [
            put(&store, None, "1").unwrap_err(),
            store.list(AREA).unwrap_err(),
        ] {
            assert!(error.is_permanent());
            assert!(
                error
                    .to_string()
                    .contains("set maxmemory-policy noeviction"),
                "{error}"
            );
        }
    }
    let () = server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(store.list(AREA).unwrap(), []);

    let () = server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let () = server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = put(&store, None, "1").unwrap_err();
    assert!(
        !error.is_permanent() && error.to_string().contains("raise its maxmemory"),
        "{error}"
    );
    let () = server.command(&["CONFIG", "SET", "maxmemory", "100mb"]);
    begin(&store);
}

#[test]
fn wrong_credentials_are_permanent_and_never_shown() {
    let server = Server::start(&["--requirepass", "correct horse"]);
    let store = |login: &str, rest: &str| {
        let url = server.url().replace("//", &format!("//{login}")) + rest;
        opened(&url, &Options::default())
    };
    for (login, rest, advice) in [
        (":hunter2@", "", "check the URL"),
        ("ids:hunter2@", "", "check the URL"),
        ("", "", "requires a password"),
        (":correct%20horse@", "/99", "no database 99"),
    ] {
        let store = store(login, rest);
        let error = store.now().unwrap_err();
        assert!(
            error.is_permanent() && error.to_string().contains(advice),
            "{error}"
        );
        let shown = format!("{error} {error:?} {store:?} {}", store.describe());
        assert!(
            !shown.contains("hunter2") && !shown.contains("horse"),
            "{shown}"
        );
    }
    let good = store(":correct%20horse@", "/9");
    begin(&good);
    let shown = format!("{good:?} {}", good.describe());
    assert!(!shown.contains("horse"), "{shown}");
    assert_eq!(
        good.describe(),
        format!("Redis 127.0.0.1:{}/9", server.port())
    );

    let passwordless = Server::start(&[]);
    let url = passwordless.url().replace("//", "//:hunter2@");
    let error = opened(&url, &Options::default()).now().unwrap_err();
    assert!(
        error.is_permanent() && error.to_string().contains("remove it from the URL"),
        "{error}"
    );
    let () = passwordless.command(&["ACL", "SETUSER", "default", "-eval"]);
    let error = put(&passwordless.store(), None, "1").unwrap_err();
    assert!(
        !error.is_permanent() && error.to_string().contains("NOPERM"),
        "{error}"
    );
    let () = passwordless.command(&["ACL", "SETUSER", "default", "+eval"]);
    put(&passwordless.store(), None, "1").expect("it was given back");
}

type Request = fn(&Arc<dyn KvStore>) -> Result<(), StoreError>;

const REQUESTS: [Request; 3] = [
    |store| store.list(AREA).map(drop),
    |store| store.get(AREA, "3").map(drop),
    |store| put(store, Some("1"), "2").map(drop),
];

#[test]
fn a_key_not_written_by_vesta_is_an_error_that_names_it() {
    let damage: [(&[&[u8]], &str, usize); 3] = [
        (
            &[b"PEXPIRE", KEY.as_bytes(), b"1000000"],
            "run `PERSIST vesta:lease/ids`",
            3,
        ),
        (&[b"SET", KEY.as_bytes(), b"x"], "is not a hash", 3),
        (
            &[b"HSET", KEY.as_bytes(), b"3", b"\xff"],
            "3 of vesta:lease/ids is damaged",
            2,
        ),
    ];
    for (act, advice, requests) in damage {
        let server = Server::start(&[]);
        let store = server.store();
        begin(&store);
        let _: redis::Value = server.command(act);
        for request in &REQUESTS[..requests] {
            let error = request(&store).unwrap_err();
            assert!(error.is_permanent());
            let said = error.to_string();
            assert!(said.contains(KEY) && said.contains(advice), "{said}");
        }
    }
}

#[test]
fn nothing_is_created_without_auto_init() {
    let one = Prefix::new();
    let store = one.store_with(&Options {
        auto_init: false,
        ..Options::default()
    });
    let error = store.put_if(AREA, "namespace", None, "n").unwrap_err();
    assert!(
        error.is_permanent() && error.to_string().contains("store init`"),
        "{error}"
    );
    assert_eq!(one.keys(), [""; 0]);
    assert!(one.store().put_if(AREA, "namespace", None, "n").unwrap());
    begin(&store);
}

#[test]
fn a_restarted_server_is_used_again() {
    let mut server = Server::start(DURABLE);
    let store = server.store();
    begin(&store);
    let () = server.command(&["SCRIPT", "FLUSH"]);
    assert!(put(&store, Some("1"), "2").unwrap());

    server.process.kill();
    for _ in 0..2 {
        let error = put(&store, Some("2"), "3").unwrap_err();
        assert!(!error.is_permanent(), "{error}");
    }
    server.restart();
    assert_eq!(get(&store), "2");
    assert!(put(&store, Some("2"), "3").unwrap());
}

/// An unanswered request ends in time; the time is not measured exactly.
fn unanswered(store: &Arc<dyn KvStore>) {
    let clock = SystemClock::new();
    let before = clock.monotonic();
    let error = store.list(AREA).unwrap_err();
    assert!(
        !error.is_permanent() && !error.to_string().contains("panic"),
        "{error}"
    );
    assert!(clock.monotonic() - before < Duration::from_secs(20));
}

#[test]
fn a_request_ends_in_time_whatever_the_server_does() {
    let server = Server::start(&[]);
    begin(&server.store());
    let store = server.hasty_store();
    // Slow machines may need more than one attempt.
    let found = || (0..50).find_map(|_| store.get(AREA, "3").ok().flatten());
    assert_eq!(found().as_deref(), Some("1"));
    server.process.pause();
    unanswered(&store);
    unanswered(&server.hasty_store()); // the kernel accepts the connection, no process reads from it
    unanswered(&store);
    server.process.resume();
    assert_eq!(found().as_deref(), Some("1"));

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for scheme in ["redis", "rediss"] {
        let url = format!("{scheme}://{}", silent.local_addr().unwrap());
        unanswered(&opened(&url, &hasty()));
    }
    // TLS with a server that does not speak it.
    let url = server.url().replace("redis:", "rediss:");
    unanswered(&opened(&url, &Options::default()));
}

#[test]
fn a_change_counts_only_once_a_replica_has_it() {
    let primary = Server::start(DURABLE);
    let store = primary.store();
    begin(&store);
    assert_eq!(store.doubt().unwrap(), None);

    let of_primary = ["--replicaof", "127.0.0.1", &primary.port().to_string()];
    let replica = Server::start(&of_primary);
    while primary.command::<u64>(&["WAIT", "1", "1000"]) == 0 {}
    // A replica that has just connected confirms with a delay, so the put is sent again.
    let until_known = |old: &str, new: &str| (0..50).find_map(|_| put(&store, Some(old), new).ok());
    until_known("1", "2").expect("it is confirmed in the end");
    assert_eq!(get(&store), "2");
    assert!(store.doubt().unwrap().is_some(), "a fail-over may lose it");

    // It has neither failed nor succeeded, however often it is sent.
    replica.process.pause();
    for store in [&store, &store, &primary.store()] {
        let error = put(store, Some("2"), "3").unwrap_err();
        assert!(!error.is_permanent(), "{error}");
    }
    // A put that changes nothing needs no confirmation.
    assert!(!put(&store, Some("9"), "10").unwrap());
    replica.process.resume();
    assert_eq!(
        until_known("2", "3"),
        Some(false),
        "an earlier request took effect"
    );
    assert_eq!(get(&store), "3");

    let error = replica.store().list(AREA).unwrap_err();
    assert!(
        !error.is_permanent() && error.to_string().contains("not the primary"),
        "{error}"
    );
    let promoted = replica.store();
    let () = replica.command(&["REPLICAOF", "NO", "ONE"]);
    let doubt = promoted.doubt().unwrap().expect("it may lack something");
    assert!(
        doubt.took_over && doubt.why.contains("it was a replica"),
        "{doubt:?}"
    );
    drop(replica);
    let doubt = primary.store().doubt().unwrap();
    assert!(doubt.is_some(), "there was a replica a moment ago");
}

#[test]
fn an_invalid_url_opens_nothing() {
    for url in [
        "redis://",
        "redis://:hunter2@cache?database=1",
        "rediss://cache/x",
    ] {
        let error = url
            .parse()
            .and_then(|url| vesta_store::open(&url))
            .map(drop)
            .unwrap_err();
        assert!(matches!(error, OpenError::Malformed { .. }), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    vesta_store::open(&"redis://nobody.invalid:1".parse().unwrap()).expect("not contacted yet");
}
