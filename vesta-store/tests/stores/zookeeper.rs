//! ZooKeeper: conformance suite and further tests.

mod beside;
mod faults;
mod proxy;
pub(crate) mod tree;

use std::sync::Arc;

use tree::{Tree, Zookeeper, patient};
use vesta_numbers::segment::SegmentStore;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{KvStore, StoreError};
use vesta_store::import::{ForeignOwner, Legacy, machine_ids};
use vesta_store::segment_conformance::{Database, Databases};
use vesta_store::{OpenError, Options, open_segments};
use zookeeper_client::CreateMode;

vesta_store::conformance!(Zookeeper);
vesta_store::segment_conformance!(Zookeeper);

impl Databases for Zookeeper {
    fn fresh(&self) -> Box<dyn Database> {
        Box::new(Tree::new())
    }
}

impl Database for Tree {
    fn connect(&self) -> Arc<dyn SegmentStore> {
        open_segments(&self.url().parse().unwrap(), &patient()).expect("a good URL")
    }
}

const AREA: &str = "lease/ids";
/// Znode of the changed entry.
const ENTRY: &str = "lease:ids/7";

fn open(url: &str, options: &Options) -> Arc<dyn KvStore> {
    vesta_store::open_with(&url.parse().unwrap(), options).expect("a good URL")
}

fn put(store: &Arc<dyn KvStore>, old: Option<&str>, new: &str) -> Result<bool, StoreError> {
    store.put_if(AREA, "7", old, new)
}

fn get(store: &Arc<dyn KvStore>) -> Option<String> {
    store.get(AREA, "7").expect("the store answers")
}

/// A store with one entry.
fn begun(url: &str) -> Arc<dyn KvStore> {
    let store = open(url, &patient());
    assert!(put(&store, None, "1").expect("the store answers"));
    store
}

fn permanent<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    let error = answer.expect_err("refused");
    assert!(error.is_permanent(), "{error}");
    error.to_string()
}

#[test]
fn entries_are_persistent_and_outlive_the_session() {
    let tree = Tree::new();
    let store = begun(&tree.url());
    for path in ["lease:ids", ENTRY] {
        assert_eq!(tree.stat(path).expect(path).ephemeral_owner, 0, "{path}");
    }
    drop(store);
    assert_eq!(get(&open(&tree.url(), &patient())).as_deref(), Some("1"));
}

#[test]
fn the_znodes_are_as_documented() {
    let documented = include_str!("../../src/backends/zookeeper/mod.rs");
    assert!(documented.contains("/// /vesta/lease:orders/17 "));
    let tree = Tree::new();
    let store = begun(&tree.url());
    assert!(put(&store, Some("1"), "2").unwrap());
    assert_eq!(tree.get(ENTRY).0, "2");
}

#[test]
fn znodes_of_a_user_are_accessible_to_that_user_only() {
    let tree = Tree::new();
    let url = |login: &str| format!("zookeeper://{login}{}{}/private", tree.servers, tree.path);
    let own = url("ids:hunter2%40@");
    let store = begun(&own);
    assert_eq!(get(&open(&own, &patient())).as_deref(), Some("1"));
    assert!(!format!("{store:?} {}", store.describe()).contains("hunter2"));

    for login in ["ids:hunter3@", "other:hunter2%40@", ""] {
        let store = open(&url(login), &patient());
        for answer in [
            store.list(AREA).map(drop),
            store.get(AREA, "7").map(drop),
            put(&store, Some("1"), "2").map(drop),
            store.put_if(AREA, "8", None, "1").map(drop),
            store.put_if("lease/others", "8", None, "1").map(drop),
        ] {
            let error = answer.expect_err("refused");
            assert!(
                !error.is_permanent(),
                "an operator may change the ACL: {error}"
            );
            let said = error.to_string();
            assert!(
                said.contains("/private is denied; check the user and the password"),
                "{said}"
            );
            assert!(!said.contains("hunter"), "{said}");
        }
    }
    tree.wait(tree.client.auth("digest", b"ids:hunter2@"))
        .expect("any user will do");
    for path in ["", "/lease:ids", "/lease:ids/7"] {
        let path = format!("private{path}");
        let (acl, _) = tree
            .wait(tree.client.get_acl(&tree.at(&path)))
            .expect("it is there");
        let [only] = &acl[..] else {
            panic!("{path}: {acl:?}")
        };
        assert_eq!(
            (only.scheme(), only.id().split(':').next()),
            ("digest", Some("ids")),
            "{path}"
        );
    }
}

#[test]
fn nothing_is_created_without_auto_init() {
    let tree = Tree::new();
    let store = open(
        &tree.url(),
        &Options {
            auto_init: false,
            ..patient()
        },
    );
    let advice = "and auto_init is off; create it with `vesta store init`. If it existed \
                  before, restore it instead: an empty one can repeat IDs";
    assert!(permanent(store.put_if(AREA, "namespace", None, "n")).ends_with(advice));
    assert_eq!(store.list(AREA).unwrap(), []);
    assert_eq!(tree.stat("lease:ids"), None);
    assert!(
        open(&tree.url(), &patient())
            .put_if(AREA, "namespace", None, "n")
            .unwrap()
    );
    assert!(put(&store, None, "1").unwrap());
}

#[test]
fn a_znode_not_written_by_vesta_is_refused_with_its_path() {
    let tree = Tree::new();
    let store = begun(&tree.url());
    let refused = || {
        for said in [
            permanent(store.list(AREA).map(drop)),
            permanent(store.get(AREA, "7").map(drop)),
            permanent(put(&store, Some("1"), "2").map(drop)),
        ] {
            assert!(
                said.contains(&format!("the znode {} ", tree.at(ENTRY))),
                "{said}"
            );
        }
    };
    tree.set(ENTRY, b"\xff");
    refused();
    tree.delete(ENTRY);
    tree.create(ENTRY, "1", CreateMode::Ephemeral);
    refused();
}

#[test]
fn the_machine_ids_of_leaf_are_found() {
    let tree = Tree::new();
    let url = format!("{}/forever", tree.url());
    let failed = |url: &str| match machine_ids(&url.parse().unwrap(), Legacy::Leaf) {
        Err(OpenError::Store { source, .. }) => permanent(Err::<(), _>(source)),
        other => panic!("{other:?}"),
    };
    assert!(failed(&url).contains("no znode"));
    tree.create("forever", "", CreateMode::Persistent);
    assert_eq!(
        machine_ids(&url.parse().unwrap(), Legacy::Leaf).unwrap(),
        []
    );
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
    assert_eq!(
        machine_ids(&url.parse().unwrap(), Legacy::Leaf).unwrap(),
        (0..12).map(worker).collect::<Vec<_>>()
    );

    tree.create("forever/leader", "", CreateMode::Persistent);
    tree.create(
        "forever/10.0.0.99:8080-0000000099",
        "{}",
        CreateMode::Persistent,
    );
    let said = failed(&url);
    assert!(
        said.contains("not Leaf workers: 10.0.0.99:8080-0000000099, leader;"),
        "{said}"
    );
}

/// The clock is read by a change, which is beside the entries.
#[test]
fn the_leader_shows_its_clock_whatever_the_root() {
    let tree = Tree::new();
    let store = begun(&tree.url());
    for _ in 0..2 {
        assert!(store.now().expect("the store answers").is_some());
    }
    let entries = store.list(AREA).expect("the store answers");
    assert_eq!(entries, [("7".into(), "1".into())]);
}
