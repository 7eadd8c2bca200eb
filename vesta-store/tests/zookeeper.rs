//! ZooKeeper keeps the promises of every store, and some of its own.

#[path = "zookeeper/faults.rs"]
mod faults;
#[path = "zookeeper/proxy.rs"]
mod proxy;
#[path = "zookeeper/tree.rs"]
mod tree;

use std::sync::Arc;
use std::thread;

use tree::{Tree, Zookeeper, patient};
use vesta_service::{Cas, LeaseStore, Record, StoreError, UnixMillis};
use vesta_store::import::ForeignOwner;
use vesta_store::zookeeper::leaf_machine_ids;
use vesta_store::{OpenError, Options};
use zookeeper_client::CreateMode;

vesta_store::conformance!(Zookeeper);

const NAMESPACE: &str = "ids";

fn open(url: &str, options: &Options) -> Arc<dyn LeaseStore> {
    vesta_store::open_with(url, options).expect("a good URL")
}

fn opened(url: &str, options: &Options) -> Arc<dyn LeaseStore> {
    let store = open(url, options);
    store.open_namespace(NAMESPACE, "a layout").expect("the store answers");
    store
}

fn claimed(epoch: u64) -> Record {
    Record {
        epoch,
        owner: 70 + u128::from(epoch),
        bound: 100 * epoch,
        attempt: 1000 + epoch,
        host: "ids-1".into(),
        pid: 4711,
        ..Record::default()
    }
}

fn extended(record: &Record) -> Record {
    Record { bound: record.bound + 1, attempt: record.attempt + 500, ..record.clone() }
}

fn change(store: &dyn LeaseStore, from: &Record, to: &Record) -> Result<Cas, StoreError> {
    store.cas(NAMESPACE, 7, &from.expect(), to)
}

fn claim(store: &dyn LeaseStore) -> Record {
    let claimed = claimed(1);
    assert_eq!(change(store, &Record::unclaimed(0), &claimed).unwrap(), Cas::Done);
    claimed
}

fn permanent<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    let error = answer.expect_err("refused");
    assert!(error.is_permanent(), "{error}");
    error.to_string()
}

#[test]
fn records_are_persistent_and_outlive_the_session() {
    let tree = Tree::new();
    let store = opened(&tree.url(), &patient());
    let record = claim(&*store);
    for path in ["ids", "ids/records", "ids/records/7", "ids/alive"] {
        assert_eq!(tree.stat(path).expect(path).ephemeral_owner, 0, "{path}");
    }
    tree.wait_until("ids/alive/7", |stat| stat.is_some());
    drop(store);
    assert_eq!(tree.stat("ids/alive/7"), None, "the session ended with the store");
    assert_eq!(opened(&tree.url(), &patient()).read(NAMESPACE, 7).unwrap(), Some(record));
}

#[test]
fn an_owner_shows_that_it_is_connected() {
    let tree = Tree::new();
    let store = opened(&tree.url(), &patient());
    let record = claim(&*store);
    tree.wait_until("ids/alive/7", |stat| stat.is_some_and(|stat| stat.ephemeral_owner != 0));
    let (data, made) = tree.get("ids/alive/7");
    assert_eq!(data, r#"{"host":"ids-1","pid":4711}"#);

    let later = extended(&record);
    assert_eq!(change(&*store, &record, &later).unwrap(), Cas::Done);
    let released = Record { owner: 0, released: true, ..later.clone() };
    assert_eq!(tree.stat("ids/alive/7"), Some(made), "it stays as it is");
    assert_eq!(change(&*store, &later, &released).unwrap(), Cas::Done);
    tree.wait_until("ids/alive/7", |stat| stat.is_none());

    // A machine ID of somebody else's is not shown as ours.
    let predecessor = Record { owner: Record::FOREIGN, ..released.clone() };
    assert_eq!(change(&*store, &released, &predecessor).unwrap(), Cas::Done);
    let ours = Record { owner: 9, ..claimed(2) };
    assert_eq!(store.cas(NAMESPACE, 8, &Record::unclaimed(0).expect(), &ours).unwrap(), Cas::Done);
    tree.wait_until("ids/alive/8", |stat| stat.is_some()); // sent later
    assert_eq!(tree.stat("ids/alive/7"), None);
}

#[test]
fn what_goes_wrong_with_the_liveness_znodes_is_ignored() {
    let spoil: [fn(&Tree); 2] = [
        |tree| tree.delete("ids/alive"),
        |tree| {
            tree.create("ids/alive/7", "not ours", CreateMode::Persistent);
            tree.create("ids/alive/7/child", "so it cannot be deleted", CreateMode::Persistent);
        },
    ];
    for spoil in spoil {
        let tree = Tree::new();
        let store = opened(&tree.url(), &patient());
        spoil(&tree);
        let record = claim(&*store);
        let later = extended(&record);
        assert_eq!(change(&*store, &record, &later).unwrap(), Cas::Done);
        assert_eq!(store.list(NAMESPACE).unwrap(), [(7, later)]);
    }
}

#[test]
fn many_may_raise_the_floor_at_once() {
    let tree = Tree::new();
    let store = opened(&tree.url(), &patient());
    thread::scope(|scope| {
        for i in 1..=8 {
            let store = opened(&tree.url(), &patient());
            scope.spawn(move || {
                for j in 0..10 {
                    let wanted = 8 * j + i;
                    assert!(store.raise_floor(NAMESPACE, wanted).unwrap() >= wanted);
                }
            });
        }
    });
    assert_eq!(store.open_namespace(NAMESPACE, "x").unwrap().floor, 80);
}

#[test]
fn znodes_of_a_user_are_that_users_alone() {
    let tree = Tree::new();
    let url = |login: &str| format!("zookeeper://{login}{}{}/private", tree.servers, tree.path);
    let own = url("ids:hunter2%40@");
    let store = opened(&own, &patient());
    let record = claim(&*store);
    assert_eq!(opened(&own, &patient()).read(NAMESPACE, 7).unwrap(), Some(record.clone()));
    assert!(!format!("{store:?} {}", store.describe()).contains("hunter2"));

    for login in ["ids:hunter3@", "other:hunter2%40@", ""] {
        let store = open(&url(login), &patient());
        for answer in [
            store.open_namespace(NAMESPACE, "a layout").map(drop),
            store.read(NAMESPACE, 7).map(drop),
            change(&*store, &record, &extended(&record)).map(drop),
            store.raise_floor(NAMESPACE, 1).map(drop),
        ] {
            let said = permanent(answer);
            assert!(said.contains("/private is denied; check the user and the password"), "{said}");
            assert!(!said.contains("hunter"), "{said}");
        }
    }
    tree.wait(tree.client.auth("digest", b"ids:hunter2@")).expect("any user will do");
    for path in ["private", "private/ids", "private/ids/records", "private/ids/records/7"] {
        let (acl, _) = tree.wait(tree.client.get_acl(&tree.at(path))).expect("it is there");
        let [only] = &acl[..] else { panic!("{path}: {acl:?}") };
        assert_eq!((only.scheme(), only.id().split(':').next()), ("digest", Some("ids")), "{path}");
    }
}

#[test]
fn nothing_is_created_without_auto_init() {
    let tree = Tree::new();
    let careful = Options { auto_init: false, ..patient() };
    let store = open(&tree.url(), &careful);
    let advice = "and auto_init is off; have it created by `vesta-server store init`";
    assert!(permanent(store.open_namespace(NAMESPACE, "a layout")).ends_with(advice));
    assert_eq!(tree.stat("ids"), None);
    let made = opened(&tree.url(), &patient()).open_namespace(NAMESPACE, "x").unwrap();
    assert_eq!(store.open_namespace(NAMESPACE, "x").unwrap(), made);
    claim(&*store);
}

#[test]
fn a_namespace_that_is_no_name_of_a_znode_is_refused() {
    let tree = Tree::new();
    let store = open(&tree.url(), &patient());
    for name in ["", ".", "..", "a/b", "a\0"] {
        permanent(store.open_namespace(name, "a layout"));
        permanent(store.read(name, 0));
    }
    let large = 1 << 63;
    let expect = Record::unclaimed(0).expect();
    let store = opened(&tree.url(), &patient());
    permanent(store.read(NAMESPACE, large));
    permanent(store.raise_floor(NAMESPACE, large));
    permanent(store.cas(NAMESPACE, large, &expect, &claimed(1)));
    permanent(store.cas(NAMESPACE, 0, &expect, &Record { attempt: large, ..claimed(1) }));
    assert_eq!(store.list(NAMESPACE).unwrap(), []);
}

#[test]
fn what_no_vesta_wrote_is_refused_by_its_path() {
    let tree = Tree::new();
    let store = opened(&tree.url(), &patient());
    let record = claim(&*store);
    let (data, _) = tree.get("ids/records/7");
    let refused = |path: &str| {
        let path = tree.at(path);
        for said in [
            permanent(store.list(NAMESPACE).map(drop)),
            permanent(store.read(NAMESPACE, 7).map(drop)),
            permanent(change(&*store, &record, &extended(&record)).map(drop)),
        ] {
            assert!(said.contains(&format!("the znode {path} ")), "{said}");
        }
    };
    tree.set("ids/records/7", "7");
    refused("ids/records/7");
    tree.set("ids/records/7", &data.replace("\"schema\":1", "\"schema\":2"));
    refused("ids/records/7");
    tree.delete("ids/records/7");
    tree.create("ids/records/7", &data, CreateMode::Ephemeral);
    refused("ids/records/7");
    tree.delete("ids/records/7");
    tree.create("ids/records/x", &data, CreateMode::Persistent);
    let said = permanent(store.list(NAMESPACE));
    assert!(said.contains(&format!("the znode {} ", tree.at("ids/records/x"))), "{said}");
    tree.delete("ids/records/x");
    tree.delete("ids/records");
    let absent = Record::unclaimed(0);
    permanent(change(&*store, &absent, &record));
    assert!(permanent(store.list(NAMESPACE)).contains("ids/records "));
    tree.set("ids", "7");
    let said = permanent(store.open_namespace(NAMESPACE, "x"));
    assert!(said.contains(&format!("the znode {} ", tree.at("ids"))), "{said}");
}

#[test]
fn the_machine_ids_of_leaf_are_found() {
    let tree = Tree::new();
    let url = format!("{}/forever", tree.url());
    let failed = |url: &str| match leaf_machine_ids(url) {
        Err(OpenError::Store { source, .. }) => permanent(Err::<(), _>(source)),
        other => panic!("{other:?}"),
    };
    assert!(failed(&url).contains("there is no znode"));
    tree.create("forever", "", CreateMode::Persistent);
    assert_eq!(leaf_machine_ids(&url).unwrap(), []);
    let worker = |number: u64| ForeignOwner {
        machine: number,
        host: format!("10.0.0.{number}:8080"),
        last_used: Some(UnixMillis(1_767_225_600_000 + number)),
    };
    for number in 0..12 {
        let data = format!(
            r#"{{"ip":"10.0.0.{number}","port":"8080","timestamp":{}}}"#,
            1_767_225_600_000u64 + number
        );
        let name = format!("forever/10.0.0.{number}:8080-");
        tree.create(&name, &data, CreateMode::PersistentSequential);
    }
    assert_eq!(leaf_machine_ids(&url).unwrap(), (0..12).map(worker).collect::<Vec<_>>());

    tree.create("forever/leader", "", CreateMode::Persistent);
    tree.create("forever/10.0.0.99:8080-0000000099", "{}", CreateMode::Persistent);
    let said = failed(&url);
    assert!(said.contains("no workers of Leaf: 10.0.0.99:8080-0000000099, leader;"), "{said}");
}
