//! Beside another system that keeps worker IDs as children of the same path.

use std::collections::BTreeSet;
use std::thread;

use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Cas, ClaimOrder, Leases, Record};
use vesta_service::{IdMeta, LocalIdService, MachineSource};
use vesta_store::import::{Legacy, machine_ids};
use vesta_store::{Options, StoreUrl};
use zookeeper_client::CreateMode;

use super::open;
use super::tree::{Tree, patient};
use crate::workers::Worker;

const IDS: usize = 50_000;

fn worker(tree: &Tree) -> Worker {
    Worker::start(&tree.servers, &tree.path)
}

fn start_over(url: &str) -> LocalIdService {
    let store = open(url, &Options::default());
    let machine = MachineSource::Pool { store, range: None };
    let folder = tempfile::tempdir().expect("a folder");
    LocalIdService::builder()
        .layout(IdMeta::SNOWFLAKE)
        .namespace("ids")
        .state_dir(folder.path())
        .claim_order(ClaimOrder::Lowest)
        .machine(machine)
        .build()
        .expect("a machine ID")
}

fn start(tree: &Tree) -> LocalIdService {
    start_over(&tree.url())
}

fn ids(service: &LocalIdService) -> Vec<u64> {
    let mut ids = vec![0; IDS];
    service.gen_ids(&mut ids).expect("IDs");
    ids
}

fn record(tree: &Tree, machine: u64) -> Option<Record> {
    let leases = Leases::new(open(&tree.url(), &patient()), "ids");
    leases.record(machine).expect("the store answers")
}

/// Both make IDs at the same time.
fn none_repeats(worker: &mut Worker, service: &LocalIdService) {
    assert_ne!(worker.number, service.machine());
    let (theirs, ours) = thread::scope(|scope| {
        let theirs = scope.spawn(|| worker.ids(IDS));
        let ours = ids(service);
        (theirs.join().expect("no panic"), ours)
    });
    let distinct: BTreeSet<_> = theirs.iter().chain(&ours).collect();
    assert_eq!(distinct.len(), 2 * IDS, "of {} IDs", 2 * IDS);
}

#[test]
fn no_id_repeats_if_the_other_system_starts_first() {
    let tree = Tree::new();
    let mut first = worker(&tree);
    assert_eq!(first.number, 0);
    let service = start(&tree);
    assert_eq!(service.machine(), 1);
    none_repeats(&mut first, &service);
    assert_eq!(worker(&tree).number, 2);
}

#[test]
fn no_id_repeats_if_vesta_starts_first() {
    let tree = Tree::new();
    let service = start(&tree);
    assert_eq!(service.machine(), 0);
    let mut second = worker(&tree);
    assert_eq!(second.number, 1);
    none_repeats(&mut second, &service);
    second.reconnect();
    none_repeats(&mut second, &service);
}

#[test]
fn a_number_that_the_other_system_held_stays_its_own_until_it_is_freed() {
    let tree = Tree::new();
    let first = worker(&tree);
    drop(start(&tree));
    let reserved = record(&tree, 0).expect("a record");
    assert_eq!(reserved.owner, Record::FOREIGN);
    let znode = format!("10.0.0.5 (znode {})", tree.at("0"));
    assert_eq!(reserved.host, znode);
    drop(first); // it may go on with its number, although the znode is gone
    while tree.stat("0").is_some() {}
    assert_ne!(start(&tree).machine(), 0);
    assert_eq!(worker(&tree).number, 0, "it is still the other system's");
}

#[test]
fn a_child_of_any_kind_whose_name_is_a_number_holds_it() {
    let tree = Tree::new();
    tree.create("0", "", CreateMode::Persistent);
    tree.create("0000000001", "Vesta lease:ids", CreateMode::Ephemeral);
    assert_eq!(start(&tree).machine(), 2);
}

#[test]
fn the_child_of_a_holder_outlives_its_session() {
    let tree = Tree::new();
    let proxy = tree.proxy();
    let service = start_over(&tree.url_over(proxy.address()));
    proxy.expire_session();
    let mut other = worker(&tree);
    assert_eq!(other.number, 1);
    none_repeats(&mut other, &service);
    assert_eq!(tree.stat("0").expect("a child").ephemeral_owner, 0);
}

#[test]
fn each_number_has_one_holder_when_both_systems_start_at_once() {
    let tree = Tree::new();
    let numbers = thread::scope(|scope| {
        let theirs: Vec<_> = (0..4).map(|_| scope.spawn(|| worker(&tree))).collect();
        let ours: Vec<_> = (0..4).map(|_| scope.spawn(|| start(&tree))).collect();
        let ours: Vec<_> = ours
            .into_iter()
            .map(|it| it.join().expect("no panic"))
            .collect();
        // A process of the other system may find its number taken, and starts again.
        let theirs: Vec<_> = theirs.into_iter().filter_map(|it| it.join().ok()).collect();
        let ours = ours.iter().map(LocalIdService::machine);
        ours.chain(theirs.iter().map(|it| it.number))
            .collect::<Vec<_>>()
    });
    assert!(numbers.len() >= 4, "{numbers:?}");
    let distinct: BTreeSet<_> = numbers.iter().collect();
    assert_eq!(distinct.len(), numbers.len(), "{numbers:?}");
}

#[test]
fn numbers_are_imported_from_the_names_of_children() {
    let tree = Tree::new();
    let url: StoreUrl = tree.url().parse().expect("a good URL");
    let _vesta = start(&tree);
    let _other = worker(&tree);
    tree.create("0000000007", "", CreateMode::Persistent);
    tree.create("leader", "", CreateMode::Persistent);
    let found = machine_ids(&url, Legacy::Nodes).expect("an answer");
    let found: Vec<_> = found
        .iter()
        .map(|it| (it.machine, it.host.clone()))
        .collect();
    let znode = |name: &str| format!("(znode {})", tree.at(name));
    let holder = format!("10.0.0.5 {}", znode("1"));
    assert_eq!(found, [(1, holder), (7, znode("0000000007"))]);
    let nowhere = format!("{}/nowhere", tree.url())
        .parse()
        .expect("a good URL");
    let refused = machine_ids(&nowhere, Legacy::Nodes).expect_err("no znode");
    assert!(format!("{refused:?}").contains("no znode"), "{refused:?}");
}

/// Claims and releases machine IDs as a process does, at moments of the test's choice.
struct Holder {
    leases: Leases,
    machine: u64,
    record: Record,
}

impl Holder {
    fn claim(tree: &Tree, namespace: &str, machine: u64, from: u64) -> Self {
        let leases = Leases::new(open(&tree.url(), &patient()), namespace);
        let (record, done) = Self::try_claim(&leases, machine, from);
        assert_eq!(done, Cas::Done);
        Self {
            leases,
            machine,
            record,
        }
    }

    fn try_claim(leases: &Leases, machine: u64, from: u64) -> (Record, Cas<Record>) {
        let before = leases.record(machine).expect("the store answers");
        let record = Record {
            epoch: before.as_ref().map_or(0, |it| it.epoch) + 1,
            owner: 7,
            from,
            bound: from + 100,
            claimed: UnixMillis(100_000),
            ..Record::default()
        };
        let done = leases.change(machine, before.as_ref(), &record);
        (record, done.expect("the store answers"))
    }

    fn release(&self, at: u64) {
        let free = Record {
            owner: 0,
            released: true,
            info_time: UnixMillis(at),
            ..self.record.clone()
        };
        let done = self.leases.change(self.machine, Some(&self.record), &free);
        assert_eq!(done.expect("the store answers"), Cas::Done);
    }
}

#[test]
fn a_reserved_number_is_claimed_by_name_once_its_child_is_gone() {
    let tree = Tree::new();
    let first = worker(&tree);
    let leases = Leases::new(open(&tree.url(), &patient()), "ids");
    let refused = || match Holder::try_claim(&leases, 0, 1_000).1 {
        Cas::Conflict(Some(reserved)) => reserved,
        Cas::Conflict(None) | Cas::Done => panic!("it is in use"),
    };
    let reserved = refused();
    assert_eq!(reserved.owner, Record::FOREIGN);
    assert_eq!(refused().owner, Record::FOREIGN);
    drop(first);
    while tree.stat("0").is_some() {}
    Holder::claim(&tree, "ids", 0, 2_000);
    assert_eq!(worker(&tree).number, 1);
}

#[test]
fn a_released_number_goes_back_once_it_is_safe() {
    let tree = Tree::new();
    let has = |machine: u64| tree.stat(&machine.to_string()).is_some();
    let [old, held, recent] = [(3, 1_000), (4, 1_000), (5, 1_901)]
        .map(|(machine, from)| Holder::claim(&tree, "ids", machine, from));
    old.release(101_000);
    recent.release(101_000);
    let soon = Holder::claim(&tree, "ids", 6, 2_000);
    soon.release(159_999);
    assert!([3, 4, 5, 6].into_iter().all(has), "too soon");
    let later = Holder::claim(&tree, "ids", 7, 2_000);
    later.release(160_000);
    assert!(!has(3), "released, and long past");
    assert!([4, 5, 7].into_iter().all(has), "held, or not yet past");
    assert_eq!(worker(&tree).number, 0);

    // Numbers that another namespace holds, too.
    let both = Holder::claim(&tree, "others", 4, 1_000);
    assert_eq!(tree.get("4").0, "Vesta lease:ids lease:others");
    held.release(200_000);
    Holder::claim(&tree, "ids", 8, 3_000).release(260_000);
    assert_eq!(tree.get("4").0, "Vesta lease:others");
    both.release(200_000);
    Holder::claim(&tree, "others", 9, 3_000).release(260_000);
    assert!(!has(4));
}

#[test]
fn a_number_that_was_claimed_again_is_not_given_back() {
    let tree = Tree::new();
    let proxy = tree.proxy();
    Holder::claim(&tree, "ids", 3, 1_000).release(101_000);
    let late = Holder::claim(&tree, "ids", 4, 2_000);
    let late = Holder {
        leases: Leases::new(open(&tree.url_over(proxy.address()), &patient()), "ids"),
        ..late
    };
    proxy.hold(super::proxy::MULTI);
    let releasing = thread::spawn(move || late.release(160_000));
    proxy.wait_until_caught();
    let again = Holder::claim(&tree, "ids", 3, 3_000);
    proxy.release();
    releasing.join().expect("no panic");
    assert!(tree.stat("3").is_some(), "held by {:?}", again.record);
}
