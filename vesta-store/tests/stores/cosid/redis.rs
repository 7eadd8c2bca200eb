//! CosId's keys in Redis.

use std::hash::{BuildHasher as _, RandomState};

use redis::{Cmd, FromRedisValue};
use vesta_store::import::{Legacy, machine_ids};
use vesta_testkit::fleet::store_url;

use crate::redis::server::Server;

/// A namespace, and a user with read-only access.
pub(crate) struct Place {
    server: String,
    namespace: String,
}

const PASSWORD: &str = "reader";

impl Place {
    pub(crate) fn new() -> Self {
        let server = store_url("redis");
        // With characters that are special in patterns.
        let namespace = format!("shop*[{:x}]", RandomState::new().hash_one("a namespace"));
        let place = Self { server, namespace };
        let user = place.user();
        place.run(&format!(
            "ACL SETUSER {user} on >{PASSWORD} ~cosid:* +@read +info +@connection"
        ));
        place
    }

    fn user(&self) -> String {
        self.namespace.replace(['*', '[', ']'], "-")
    }

    fn run(&self, command: &str) {
        self.ask::<()>(command);
    }

    /// Sends a command whose words are separated by spaces; `NS` is the namespace.
    fn ask<T: FromRedisValue>(&self, command: &str) -> T {
        let client = redis::Client::open(self.server.as_str()).expect("a URL");
        let mut connection = client.get_connection().expect("Redis answers");
        let mut words = Cmd::new();
        for word in command.split(' ') {
            words.arg(word.replace("NS", &self.namespace));
        }
        words
            .query(&mut connection)
            .unwrap_or_else(|error| panic!("{command}: {error}"))
    }
}

impl super::Place for Place {
    fn url(&self) -> String {
        let (_, rest) = self.server.rsplit_once('@').expect("a URL with a password");
        format!("redis://{}:{PASSWORD}@{rest}", self.user())
    }

    fn namespace(&self) -> String {
        self.namespace.clone()
    }

    /// The state after five instances started and the second stopped; two more started, one of them
    /// stable; and one took the machine ID that was given back first.
    fn hand_out(&self) {
        let in_use = "10.0.0.0:8080 0|1769832060123 10.0.0.2:8080 2|1769832062000 \
                      10.0.0.4:8080 4|1769832004000 10.0.0.9:1234 1|1769832064000";
        self.run(&format!("HSET cosid:{{NS}}:itc_idx {in_use}"));
        self.run("HSET cosid:{NS}:revert 3 1769832063000");
        self.run("SET cosid:{NS}:adder 4");
    }

    fn count_on(&self) -> bool {
        self.run("INCRBY cosid:{NS}:adder 2");
        true
    }

    fn damage(&self) -> Vec<String> {
        self.run("HSET cosid:{NS}:itc_idx 10.0.0.7:8080 seven|1769832060123");
        self.run("HSET cosid:{NS}:revert 2 2026-01-31");
        self.run("SET cosid:{NS}:adder 1.5");
        let key = |key: &str| format!("cosid:{{{}}}:{key}", self.namespace);
        vec![
            format!(
                "10.0.0.7:8080 of {} = \"seven|1769832060123\"",
                key("itc_idx")
            ),
            format!("2 of {} = \"2026-01-31\"", key("revert")),
            format!("{} = \"1.5\"", key("adder")),
        ]
    }

    fn segments(&self) {
        for (name, last) in [
            ("NS.order", "2200"),
            ("NS.order@260131", "0"),
            ("NS.eu.item", "15"),
            ("NSx.order", "x"),
            ("NS.", "x"),
            ("NS", "x"),
        ] {
            self.run(&format!("SET cosid:{{{name}}}.adder {last}"));
        }
        // More than fit on one page.
        let others: Vec<_> = (0..3000)
            .map(|n| format!("cosid:{{NSx.{n}}}.adder x"))
            .collect();
        self.run(&format!("MSET {}", others.join(" ")));
    }

    fn damage_segment(&self) -> String {
        self.run("SET cosid:{NS.user}.adder 1e5");
        format!("cosid:{{{}.user}}.adder = \"1e5\"", self.namespace)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let namespace = self.user().replace('-', "?");
        let keys: Vec<String> = self.ask(&format!("KEYS cosid:{{{namespace}*"));
        for keys in keys.chunks(1000) {
            self.run(&format!("DEL {}", keys.join(" ")));
        }
        self.run(&format!("ACL DELUSER {}", self.user()));
    }
}

#[test]
fn a_key_of_another_type_is_named() {
    let place = Place::new();
    for (key, set) in [("itc_idx", "SET"), ("revert", "SET"), ("adder", "SADD")] {
        let key = format!("cosid:{{{}}}:{key}", place.namespace);
        place.run(&format!("{set} {key} x"));
        let said = super::owners(&place).expect_err("refused");
        assert!(
            said.contains(&format!("key `{key}` is not of the type that")),
            "{said}"
        );
        place.run(&format!("DEL {key}"));
    }
}

/// A Redis that may evict keys is unsuitable for Vesta, but its CosId data can be read.
#[test]
fn a_redis_that_may_evict_keys_can_be_read() {
    let server = Server::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let url = server.url().parse().expect("a URL");
    let _: u64 = server.command(&["HSET", "cosid:{shop}:itc_idx", "10.0.0.5:8080", "0|7"]);
    let legacy = Legacy::CosId {
        namespace: "shop",
        max_machine: 7,
    };
    let found = machine_ids(&url, legacy).expect("it can be read");
    assert_eq!(found, [super::owner(0, "10.0.0.5:8080", Some(7))]);
    assert!(
        vesta_store::open(&server.url().parse().unwrap())
            .expect("a URL")
            .list("lease/ids")
            .is_err()
    );
}
