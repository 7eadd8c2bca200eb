//! Rules of the port itself: texts under keys, changed by compare-and-set.

use std::sync::{Arc, Barrier};

use vesta_service::lease::{Cas, KvStore, Leases, Put, Record, Secret};

use super::{Backend, Fixture, LONG_NAME};

/// An area whose texts no pool server checks.
const AREA: &str = "segment/tags";

/// Runs a rule on a fresh store.
fn with_store(backend: &dyn Backend, rule: impl FnOnce(&dyn Fixture, Arc<dyn KvStore>)) {
    let fixture = backend.fresh();
    let store = fixture.connect();
    rule(&*fixture, store);
}

fn put(store: &dyn KvStore, key: &str, old: Option<&str>, new: &str) -> bool {
    store
        .put_if(AREA, key, old, new)
        .expect("the store answers")
}

fn get(store: &dyn KvStore, key: &str) -> Option<String> {
    store.get(AREA, key).expect("the store answers")
}

fn list(store: &dyn KvStore, area: &str) -> Vec<(String, String)> {
    let mut entries = store.list(area).expect("the store answers");
    entries.sort();
    entries
}

fn entry(key: &str, value: &str) -> (String, String) {
    (key.into(), value.into())
}

/// Case and trailing spaces matter, and so do characters that some collations treat as equal.
pub(super) fn values_are_compared_as_bytes(backend: &dyn Backend) {
    let values = [
        "a",
        "A",
        "a ",
        " a",
        "a\n",
        "",
        " ",
        "\u{e1}",
        "a\u{301}",
        "\u{e4}",
        "ae",
        "\u{df}",
        "ss",
        "i",
        "\u{131}",
        "\u{ff41}",
        "1",
        "01",
        "1.0",
        "\\",
        "\\\\",
        "%",
        "a'b\"c`d; DROP TABLE vesta_kv --",
        "\u{1F980}",
        "\u{1F981}",
        "\u{7d42}\u{308f}\u{308a}",
    ];
    with_store(backend, |_, store| {
        assert!(put(&*store, "1", None, values[values.len() - 1]));
        let mut current = values[values.len() - 1];
        for value in values {
            for other in values.iter().filter(|other| **other != current) {
                assert!(
                    !put(&*store, "1", Some(other), "never"),
                    "{other:?} is not {current:?}"
                );
            }
            assert!(
                put(&*store, "1", Some(current), value),
                "{current:?} to {value:?}"
            );
            assert_eq!(get(&*store, "1").as_deref(), Some(value));
            assert_eq!(list(&*store, AREA), [entry("1", value)]);
            current = value;
        }
    });
}

/// The current entry is left unchanged.
pub(super) fn a_put_over_another_value_changes_nothing(backend: &dyn Backend) {
    with_store(backend, |_, store| {
        assert_eq!(get(&*store, "1"), None);
        assert!(!put(&*store, "1", Some("old"), "new"), "absent");
        assert_eq!((get(&*store, "1"), list(&*store, AREA)), (None, vec![]));
        assert!(put(&*store, "1", None, "first"));
        assert!(!put(&*store, "1", None, "second"), "it exists");
        assert!(!put(&*store, "1", Some("second"), "third"), "it is another");
        assert_eq!(get(&*store, "1").as_deref(), Some("first"));
        assert!(put(&*store, "1", Some("first"), "second"));
        assert!(
            !put(&*store, "1", Some("first"), "third"),
            "a late copy of a request"
        );
        assert_eq!(list(&*store, AREA), [entry("1", "second")]);
    });
}

/// 8 connections, 30 rounds: each round with an absent and an existing entry.
pub(super) fn of_concurrent_puts_exactly_one_takes_effect(backend: &dyn Backend) {
    const PUTTERS: usize = 8;
    const ROUNDS: usize = 30;
    with_store(backend, |fixture, first| {
        assert!(put(&*first, "shared", None, "0"));
        let start = Barrier::new(PUTTERS);
        let rounds: Vec<Vec<[bool; 2]>> = std::thread::scope(|scope| {
            let putters: Vec<_> = (0..PUTTERS)
                .map(|putter| {
                    let store = fixture.connect();
                    let start = &start;
                    scope.spawn(move || {
                        let round = |round: usize| {
                            start.wait();
                            let shared = store.get(AREA, "shared").ok().flatten();
                            start.wait();
                            let new = format!("{round} of {putter}");
                            // No panic before the barrier: it would block the other threads
                            // forever.
                            let put = |key: &str, old| store.put_if(AREA, key, old, &new);
                            let absent = put(&round.to_string(), None);
                            let there = put("shared", Some(shared.as_deref().unwrap_or("?")));
                            [absent, there].map(|done| done.unwrap_or(false))
                        };
                        (0..ROUNDS).map(round).collect()
                    })
                })
                .collect();
            putters
                .into_iter()
                .map(|putter| putter.join().expect("no panic"))
                .collect()
        });
        #[allow(clippy::needless_range_loop, reason = "the same place in each")]
        for round in 0..ROUNDS {
            for which in 0..2 {
                let winners: Vec<_> = (0..PUTTERS)
                    .filter(|putter| rounds[*putter][round][which])
                    .collect();
                assert_eq!(winners.len(), 1, "round {round}, {which}: {winners:?}");
                if which == 0 {
                    let kept = get(&*first, &round.to_string());
                    assert_eq!(kept, Some(format!("{round} of {}", winners[0])));
                }
            }
        }
    });
}

/// This holds if one name is a prefix of another, and if only the case differs.
pub(super) fn areas_do_not_touch_each_other(backend: &dyn Backend) {
    with_store(backend, |_, store| {
        let names = ["a", "A", "a.b", "a-", "ab"];
        // In the namespace's own area, and in the areas `block/NAME/1` and `block/NAME/11`.
        let machines = [1, 10, 1024, 11 * 1024];
        for name in names {
            let leases = Leases::new(store.clone(), name);
            let namespace = leases.open(name).expect("it answers").uuid;
            for machine in machines {
                let record = Record {
                    namespace,
                    host: name.into(),
                    ..Record::default()
                };
                let put = leases.change(machine, None, &record);
                assert_eq!(put.expect("it answers"), Cas::Done, "{name} {machine}");
            }
        }
        let tags = ["segment/tags", "serial/tags", "serial/counters"];
        for (area, key) in tags
            .iter()
            .flat_map(|area| [(area, "1"), (area, "namespace")])
        {
            assert!(store.put_if(area, key, None, area).expect("it answers"));
        }
        for name in names {
            let found = Leases::new(store.clone(), name)
                .snapshot()
                .expect("it answers");
            assert_eq!(found.namespace.fingerprint, name);
            assert!(found.records.keys().eq(&machines), "{name}: {found:?}");
            assert!(
                found.records.values().all(|it| it.host == name),
                "{found:?}"
            );
            let first = list(&*store, &format!("block/{name}/1"));
            let keys: Vec<_> = first.iter().map(|(key, _)| key.as_str()).collect();
            assert_eq!(keys, ["1024"], "not those of block 11");
        }
        for area in tags {
            assert_eq!(
                list(&*store, area),
                ["1", "namespace"].map(|key| entry(key, area))
            );
        }
        // A store may also refuse them.
        for absent in [
            "lease",
            "lease/",
            "lease/b",
            "lease/a%",
            "lease/a_",
            "block/a",
            "block/a/2",
        ] {
            assert_eq!(store.list(absent).unwrap_or_default(), [], "{absent}");
        }
        assert_eq!(store.get("lease/a", "0").expect("it answers"), None);
    });
}

/// The largest value, and the longest names.
pub(super) fn values_of_16_kib_come_back(backend: &dyn Backend) {
    with_store(backend, |_, store| {
        let text = |first: char| first.to_string() + &"\u{e9}\u{1F980}xy".repeat(2047);
        let (one, two) = (text('1'), text('2'));
        assert!(one.len() <= 16 * 1024 && one.len() > 16_000);
        assert!(put(&*store, "1", None, &one));
        assert_eq!(get(&*store, "1").as_ref(), Some(&one));
        assert!(!put(&*store, "1", Some(&two), "never"));
        assert!(put(&*store, "1", Some(&one), &two));
        assert_eq!(list(&*store, AREA), [entry("1", &two)]);

        let key = "k".repeat(1600);
        assert!(put(&*store, &key, None, "long"));
        assert_eq!(get(&*store, &key).as_deref(), Some("long"));
        assert_eq!(get(&*store, &key[..1599]), None);
        let longest = Leases::new(store.clone(), LONG_NAME);
        let opened = longest.open("long").expect("it answers");
        assert_eq!(longest.find().expect("it answers"), Some(opened));
        let shorter = Leases::new(store, &LONG_NAME[..393]);
        assert_eq!(shorter.find().expect("it answers"), None);
    });
}

/// Every entry, with its latest value.
pub(super) fn an_acknowledged_put_outlives_a_restart(backend: &dyn Backend) {
    with_store(backend, |fixture, store| {
        assert!(put(&*store, "1", None, "first"));
        assert!(put(&*store, "1", Some("first"), "second"));
        assert!(put(&*store, "2", None, "other"));
        drop(store);
        fixture.restart();
        let store = fixture.connect();
        assert_eq!(
            list(&*store, AREA),
            [entry("1", "second"), entry("2", "other")]
        );
        assert!(put(&*store, "1", Some("second"), "third"));
    });
}

/// Absent entries are left out; no key stands for those that begin like it.
pub(super) fn entries_are_read_by_their_keys(backend: &dyn Backend) {
    with_store(backend, |_, store| {
        let read = |area: &str, keys: &[&str]| {
            let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
            let mut entries = store.get_all(area, &keys).expect("the store answers");
            entries.sort();
            entries
        };
        assert_eq!(read(AREA, &["1", "2"]), [], "the area does not exist");
        for (key, value) in [("1", "\u{e9}'\\"), ("10", "b"), ("births-0", "")] {
            assert!(put(&*store, key, None, value));
        }
        assert_eq!(read(AREA, &[]), []);
        let some = [entry("1", "\u{e9}'\\"), entry("births-0", "")];
        assert_eq!(read(AREA, &["births-0", "1", "2", "births-1"]), some);
        assert_eq!(read("serial/tags", &["1"]), [], "another area");
        assert!(put(&*store, "1", Some("\u{e9}'\\"), "c"));
        assert_eq!(read(AREA, &["1"]), [entry("1", "c")]);
        let most: Vec<_> = (1..=128).map(|key| key.to_string()).collect();
        let most: Vec<_> = most.iter().map(String::as_str).collect();
        assert_eq!(read(AREA, &most), [entry("1", "c"), entry("10", "b")]);
    });
}

/// Each put has its own answer, in its position: some take effect, some do not. Of concurrent puts on the same
/// entry, only one takes effect.
pub(super) fn batched_puts_take_effect_one_by_one(backend: &dyn Backend) {
    let new = |key: &str, old: Option<&str>, new: &str| Put {
        key: key.into(),
        old: old.map(str::to_owned),
        new: new.into(),
        secret: Secret::default(),
    };
    let put_all = |store: &dyn KvStore, puts: &[Put]| store.put_all(AREA, puts).expect("an answer");
    with_store(backend, |fixture, store| {
        assert_eq!(put_all(&*store, &[]), [false; 0]);
        assert_eq!(put_all(&*store, &[new("1", None, "a")]), [true]);
        assert_eq!(put_all(&*store, &[new("1", Some("b"), "c")]), [false]);
        let mixed = [
            new("1", Some("a"), "b"),    // as expected
            new("2", None, "\u{e9}'\\"), // a new one
            new("3", Some("a"), "b"),    // absent
            new("4", None, ""),          // empty
            new("births-0", None, "one"),
        ];
        assert_eq!(put_all(&*store, &mixed), [true, true, false, true, true]);
        // A late copy of the request: an entry that already has its new value may count as done.
        assert!(!put_all(&*store, &mixed)[2]);
        let mixed = [
            new("1", Some("B"), "c"),
            new("2", Some("\u{e9}'\\"), "d"),
            new("3", None, "e"),
            new("4", Some(""), "f"),
            new("4 ", Some("f"), "g"),
            new("births-0", None, "two"),
        ];
        let mixed = &mixed.map(|put| Put {
            key: put.key.replace(' ', "4"),
            ..put
        });
        assert_eq!(
            put_all(&*store, mixed),
            [false, true, true, true, false, false]
        );
        let expected = [
            ("1", "b"),
            ("2", "d"),
            ("3", "e"),
            ("4", "f"),
            ("births-0", "one"),
        ];
        let mut kept = list(&*store, AREA);
        kept.sort();
        assert_eq!(kept, expected.map(|(key, value)| entry(key, value)));
        assert_eq!(list(&*store, "serial/tags"), []);

        // The maximum number at once, twice, by clients that each win some of the entries.
        let keys: Vec<_> = (0..128).map(|key| format!("{key:03}")).collect();
        let all = |old: Option<&str>, value: &str| -> Vec<Put> {
            keys.iter().map(|key| new(key, old, value)).collect()
        };
        for (old, round) in [(None, "first"), (Some("first 0"), "second")] {
            let start = Barrier::new(4);
            let done: Vec<Vec<bool>> = std::thread::scope(|scope| {
                let clients: Vec<_> = (0..4)
                    .map(|client| {
                        let (store, start) = (fixture.connect(), &start);
                        let puts = all(old, &format!("{round} {client}"));
                        scope.spawn(move || {
                            start.wait();
                            loop {
                                // No put may wait for another forever.
                                match store.put_all(AREA, &puts) {
                                    Ok(done) => return done,
                                    Err(error) => assert!(!error.is_permanent(), "{error}"),
                                }
                            }
                        })
                    })
                    .collect();
                clients
                    .into_iter()
                    .map(|client| client.join().expect("no panic"))
                    .collect()
            });
            for (number, key) in keys.iter().enumerate() {
                let value = get(&*store, key).expect("a client put it");
                let of = |client: &usize| value == format!("{round} {client}");
                let put: Vec<_> = (0..4).filter(|client| done[*client][number]).collect();
                // A client that had to retry may not know that its put took effect.
                assert!(
                    put.len() <= 1 && put.iter().all(of),
                    "{key}: {value}, {put:?}"
                );
            }
            let current: Vec<_> = keys.iter().map(|key| get(&*store, key)).collect();
            let puts = keys
                .iter()
                .zip(&current)
                .map(|(key, old)| new(key, old.as_deref(), "first 0"));
            let puts: Vec<_> = puts
                .filter(|put| put.old.as_deref() != Some("first 0"))
                .collect();
            if !puts.is_empty() {
                assert!(put_all(&*store, &puts).into_iter().all(|done| done));
            }
        }
    });
}
