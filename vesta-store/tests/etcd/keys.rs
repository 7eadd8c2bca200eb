//! The keys and their values, looked at without the store.

use std::sync::Barrier;

use vesta_service::{Cas, LeaseStore as _, Record};
use vesta_store::conformance::Fixture as _;
use vesta_store::{OpenError, Options};

use crate::{Area, claimed, refused};

/// A claim, an extend, a release: nothing that could vanish comes up, and nothing else.
#[test]
fn there_is_one_key_a_record_and_none_has_a_lease() {
    let area = Area::new();
    let (store, raw) = (area.connect(), area.raw());
    let opened = store.open_namespace("ids", "a layout").unwrap();
    let released = Record { owner: 0, bound: 150, attempt: 3, released: true, ..claimed(1) };
    let mut before = Record::unclaimed(0);
    for after in [claimed(1), Record { bound: 200, attempt: 2, ..claimed(1) }, released] {
        assert_eq!(store.cas("ids", 7, &before.expect(), &after).unwrap(), Cas::Done);
        let found = raw.below(&area.prefix);
        let keys: Vec<_> = found.iter().map(|kv| (kv.key(), kv.lease)).collect();
        let (meta, record) =
            (format!("{}/ids/meta", area.prefix), format!("{}/ids/record/{:019}", area.prefix, 7));
        assert_eq!(keys, [(&*meta, 0), (&*record, 0)]);
        assert_eq!(
            found[0].value(),
            format!(
                "{{\"schema\":1,\"uuid\":\"{:032x}\",\"fingerprint\":\"a layout\",\"floor\":0}}",
                opened.uuid
            )
        );
        assert_eq!(
            found[1].value(),
            format!(
                "{{\"schema\":1,\"epoch\":1,\"owner\":\"{:032x}\",\"bound\":{},\"attempt\":{},\
                 \"released\":{},\"host\":\"a host\",\"pid\":0,\"info_time\":0}}",
                after.owner, after.bound, after.attempt, after.released
            )
        );
        before = after;
    }
}

/// Either the claim came first, or it saw the new floor: nothing in between.
#[test]
fn a_floor_raised_during_a_first_claim_is_not_overlooked() {
    let area = Area::new();
    let raw = area.raw();
    let (one, two) = (area.connect(), area.connect());
    let (mut before, mut after) = (0, 0);
    for round in 0..1000 {
        if round >= 50 && before > 0 && after > 0 {
            return;
        }
        let name = format!("round-{round}");
        one.open_namespace(&name, "a layout").unwrap();
        two.open_namespace(&name, "a layout").unwrap(); // both are connected now
        let start = Barrier::new(2);
        let reply = std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                assert_eq!(one.raise_floor(&name, 1000).unwrap(), 1000);
            });
            start.wait();
            two.cas(&name, 0, &Record::unclaimed(0).expect(), &claimed(1)).unwrap()
        });
        let found = raw.below(&format!("{}/{name}/", area.prefix));
        match reply {
            Cas::Done => {
                let [meta, record] = &found[..] else { panic!("{found:?}") };
                assert!(record.mod_revision < meta.mod_revision, "round {round}");
                before += 1;
            }
            Cas::Conflict(current) => {
                assert_eq!(current, Record::unclaimed(1000), "round {round}");
                assert_eq!(found.len(), 1);
                after += 1;
            }
        }
        assert_eq!(two.open_namespace(&name, "x").unwrap().floor, 1000);
    }
    panic!("{before} claims came before the floor was raised, {after} after");
}

/// More records than fit into one answer of etcd's.
#[test]
fn a_long_list_is_read_in_pages() {
    let area = Area::new();
    let (store, raw) = (area.connect(), area.raw());
    store.open_namespace("ids", "a layout").unwrap();
    store.cas("ids", 0, &Record::unclaimed(0).expect(), &claimed(1)).unwrap();
    let value = raw.below(&format!("{}/ids/record/", area.prefix))[0].value().to_owned();
    let last = 2000;
    let machines: Vec<u64> = (1..=last).collect();
    for some in machines.chunks(100) {
        let key = |machine| format!("{}/ids/record/{machine:019}", area.prefix);
        raw.put_all(some.iter().map(|machine| (key(*machine), value.clone())));
    }
    for missing in [0, 1] {
        let listed = store.list("ids").unwrap();
        let expected: Vec<_> = (0..=last + missing).map(|machine| (machine, claimed(1))).collect();
        assert_eq!(listed, expected);
        store.cas("ids", last + 1, &Record::unclaimed(0).expect(), &claimed(1)).unwrap();
    }
}

/// By name, and whatever is asked for.
#[test]
fn what_no_vesta_wrote_is_refused() {
    let area = Area::new();
    let (store, raw) = (area.connect(), area.raw());
    store.open_namespace("ids", "a layout").unwrap();
    store.cas("ids", 0, &Record::unclaimed(0).expect(), &claimed(1)).unwrap();
    let value = raw.below(&format!("{}/ids/record/", area.prefix))[0].value().to_owned();
    let record = format!("{}/ids/record/{:019}", area.prefix, 0);
    let (expect, new) = (claimed(1).expect(), claimed(2));

    for (value, lease) in [
        ("17", 0),
        ("", 0),
        (&*value.replace("\"schema\":1", "\"schema\":2"), 0),
        (&*value, raw.lease()),
    ] {
        raw.put(&record, value, lease);
        for said in [
            refused(store.read("ids", 0)),
            refused(store.list("ids")),
            refused(store.cas("ids", 0, &expect, &new)),
        ] {
            assert!(said.contains(&format!("the key {record} ")), "{said}");
            assert_eq!(said.contains("has a lease"), lease != 0, "{said}");
        }
    }
    raw.put(&record, &value, 0);
    assert_eq!(store.read("ids", 0).unwrap(), Some(claimed(1)), "mended");

    let foreign = format!("{}/ids/record/7", area.prefix);
    raw.put(&foreign, &value, 0);
    let said = refused(store.list("ids"));
    assert!(said.contains(&foreign) && said.contains("does not end with a machine ID"), "{said}");

    let meta = format!("{}/ids/meta", area.prefix);
    raw.put(&meta, "{}", 0);
    for said in [
        refused(store.open_namespace("ids", "a layout")),
        refused(store.read("ids", 0)),
        refused(store.cas("ids", 0, &expect, &new)),
        refused(store.raise_floor("ids", 1)),
    ] {
        assert!(said.contains(&format!("the key {meta} is damaged")), "{said}");
    }
}

/// And nothing of them is cut off.
#[test]
fn numbers_beyond_63_bits_are_refused() {
    let area = Area::new();
    let store = area.connect();
    store.open_namespace("ids", "a layout").unwrap();
    let expect = Record::unclaimed(0).expect();
    for record in [
        Record { epoch: 1 << 63, ..claimed(1) },
        Record { bound: u64::MAX, ..claimed(1) },
        Record { attempt: 1 << 63, ..claimed(1) },
    ] {
        assert!(refused(store.cas("ids", 1, &expect, &record)).contains("more than 63 bits"));
    }
    refused(store.cas("ids", 1 << 63, &expect, &claimed(1)));
    refused(store.raise_floor("ids", 1 << 63));
    assert_eq!(store.list("ids").unwrap(), []);
}

/// It is part of a key.
#[test]
fn the_name_of_a_namespace_leads_nowhere_else() {
    let store = Area::new().connect();
    for name in ["", "a/b", "a/record", "a b", "ä", "a\0"] {
        let said = refused(store.open_namespace(name, "a layout"));
        assert!(said.contains("the name of a namespace"), "{said}");
    }
}

#[test]
fn without_auto_init_nothing_is_created() {
    let area = Area::new();
    let options = Options { auto_init: false, ..Options::default() };
    let careful = vesta_store::open_with(&area.url(), &options).unwrap();
    let said = refused(careful.open_namespace("ids", "a layout"));
    assert!(said.contains("auto_init is off; have it created by `vesta-server store init`"));
    assert_eq!(area.raw().below(&area.prefix), []);

    let made = area.connect().open_namespace("ids", "a layout").unwrap();
    assert_eq!(careful.open_namespace("ids", "another layout").unwrap(), made);
    let claim = careful.cas("ids", 0, &Record::unclaimed(0).expect(), &claimed(1));
    assert_eq!(claim.unwrap(), Cas::Done);
}

#[test]
fn it_says_what_it_is_and_keeps_its_password() {
    let url = "etcd://ann:hunter2@a,b:1/ids";
    let store = vesta_store::open(url).unwrap();
    assert_eq!(store.describe(), "etcd ann@a:2379,b:1/ids");
    assert!(!format!("{store:?}").contains("hunter2"), "{store:?}");
    assert_eq!(store.now().unwrap(), None);
    assert!(!store.may_forget());

    let request_timeout = Some(std::time::Duration::from_millis(700));
    let options = Options { request_timeout, ..Options::default() };
    let store = vesta_store::etcd::EtcdStore::open_with(url, &options).unwrap();
    assert_eq!(Some(store.timing().request_timeout), request_timeout);
    assert!(!format!("{store:?} {store:#?}").contains("hunter2"), "{store:?}");

    for url in ["etcd://ann:hunter2", "etcd://ann:hunter2@a?secret=hunter2"] {
        let error = vesta_store::open(url).expect_err(url);
        assert!(matches!(error, OpenError::Malformed { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}

/// As long as it has one thread alone, too.
#[test]
fn it_may_be_called_from_inside_a_runtime() {
    let area = Area::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = area.connect();
        store.open_namespace("ids", "a layout").unwrap();
        assert_eq!(store.list("ids").unwrap(), []);
        drop(store);
    });
}
