//! The entries of a store: namespaces, records, marks and tags.

use std::sync::Arc;

use crate::common::{START, leases};
use vesta_numbers::segment::{KvSegments, NewSegmentTag, SegmentStore as _};
use vesta_service::lease::{Cas, KvStore as _, Leases, Record, Snapshot};
use vesta_service::testing::{FlakyStore, MemoryStore};

/// An open namespace, in memory.
struct Opened {
    memory: Arc<MemoryStore>,
    leases: Leases,
    uuid: u128,
}

impl Opened {
    fn new() -> Self {
        let memory = Arc::new(MemoryStore::new());
        let leases = leases(&memory);
        let uuid = leases.open("a layout").unwrap().uuid;
        Self {
            memory,
            leases,
            uuid,
        }
    }

    fn born(&self, birth: u64) -> Record {
        Record {
            namespace: self.uuid,
            birth,
            info_time: START,
            ..Record::default()
        }
    }

    fn create(&self, machine: u64, record: &Record) {
        assert_eq!(
            self.leases.change(machine, None, record).unwrap(),
            Cas::Done
        );
    }

    fn snapshot(&self) -> Snapshot {
        self.leases.snapshot().unwrap()
    }

    /// Lost machine IDs, and those whose record has no mark yet.
    fn odd(&self) -> (Vec<u64>, Vec<u64>) {
        let seen = self.snapshot();
        let all = (0..10).filter(|machine| seen.is_lost(*machine)).collect();
        assert_eq!(seen.lost().into_iter().collect::<Vec<_>>(), all);
        (
            all,
            (0..10)
                .filter(|machine| seen.is_unmarked(*machine))
                .collect(),
        )
    }
}

#[test]
fn each_namespace_has_its_own_area() {
    let memory = Arc::new(MemoryStore::new());
    let [one, two] = ["one", "two"].map(|name| Leases::new(memory.clone(), name));
    assert_eq!((one.name(), two.name()), ("one", "two"));
    assert_ne!(
        one.open("a layout").unwrap().uuid,
        two.open("a layout").unwrap().uuid
    );
    for area in ["lease/one", "lease/two"] {
        assert_eq!(memory.list(area).unwrap().len(), 1, "{area}");
    }
}

#[test]
fn a_record_is_valid_only_with_the_mark_of_its_birth() {
    let opened = Opened::new();
    let first = opened.born(5);
    opened.create(3, &first);
    assert_eq!(opened.odd(), (vec![], vec![3]));
    assert!(
        opened
            .leases
            .mark_birth(&opened.snapshot(), 3, &first)
            .unwrap()
    );
    assert_eq!(opened.odd(), (vec![], vec![]));

    opened.memory.delete("lease/default", "3");
    assert_eq!(opened.odd(), (vec![3], vec![]), "deleted");
    opened.create(3, &opened.born(6));
    assert_eq!(
        opened.odd(),
        (vec![3], vec![]),
        "replaced by another record"
    );
    opened.create(
        4,
        &Record {
            namespace: opened.uuid + 1,
            ..opened.born(5)
        },
    );
    assert_eq!(opened.odd(), (vec![3, 4], vec![]), "of another namespace");
}

#[test]
fn a_mark_that_lost_the_race_is_reported() {
    let opened = Opened::new();
    let (first, second) = (opened.born(5), opened.born(6));
    opened.create(3, &first);
    let before = opened.snapshot();
    for _ in 0..2 {
        assert!(
            opened.leases.mark_birth(&before, 3, &first).unwrap(),
            "even if the record exists"
        );
    }
    assert!(
        !opened.leases.mark_birth(&before, 3, &second).unwrap(),
        "does not replace it"
    );
    assert_eq!(opened.odd(), (vec![], vec![]));
    assert!(
        opened
            .leases
            .mark_birth(&opened.snapshot(), 3, &second)
            .unwrap(),
        "a caller that has seen it"
    );
    assert_eq!(opened.odd(), (vec![3], vec![]));
}

#[test]
fn marks_of_others_are_left_unchanged() {
    let opened = Opened::new();
    let record = opened.born(5);
    for machine in 0..4 {
        opened.create(machine, &record);
    }
    let seen = opened.snapshot();
    assert!(opened.leases.mark_birth(&seen, 0, &record).unwrap());
    // Another host marks between this host's read and write.
    let store = FlakyStore::new(opened.memory.clone());
    let (theirs, before, at_once) = (opened.leases.clone(), seen.clone(), record.clone());
    store.after(1, move || {
        assert!(theirs.mark_birth(&before, 1, &at_once).unwrap())
    });
    let ours = Leases::new(store, "default");
    assert!(ours.mark_birth(&seen, 2, &record).unwrap());
    assert_eq!(opened.odd(), (vec![], vec![3]));
}

#[test]
fn marks_of_another_namespace_are_replaced() {
    let opened = Opened::new();
    let foreign = Record {
        namespace: opened.uuid + 1,
        ..opened.born(5)
    };
    assert!(
        opened
            .leases
            .mark_birth(&opened.snapshot(), 3, &foreign)
            .unwrap()
    );
    let own = opened.born(6);
    opened.create(3, &own);
    assert!(opened.snapshot().is_lost(3));
    assert!(
        opened
            .leases
            .mark_birth(&opened.snapshot(), 3, &own)
            .unwrap()
    );
    assert_eq!(opened.odd(), (vec![], vec![]));
}

#[test]
fn the_higher_of_two_concurrent_floors_counts() {
    for (theirs, ours) in [(10, 20), (20, 10), (20, 20)] {
        let opened = Opened::new();
        let store = FlakyStore::new(opened.memory.clone());
        let others = opened.leases.clone();
        store.after(1, move || {
            assert_eq!(others.raise_floor(theirs).unwrap(), theirs)
        });
        let raised = Leases::new(store, "default").raise_floor(ours).unwrap();
        assert_eq!((raised, opened.snapshot().namespace.floor), (20, raised));
    }
}

#[test]
fn a_tag_round_trips_with_its_optional_fields() {
    let tags = KvSegments::new(Arc::new(MemoryStore::new()));
    let orders = NewSegmentTag::new("orders", 1000).unwrap();
    let described = NewSegmentTag::new("users", 1)
        .unwrap()
        .described_as("all of them")
        .unwrap();
    assert!(tags.create(&orders).unwrap() && tags.create(&described).unwrap());
    let [orders, users] = &tags.tags().unwrap()[..] else {
        panic!("two tags")
    };
    assert_eq!(
        (&orders.description, users.description.as_deref()),
        (&None, Some("all of them"))
    );
    assert!(orders.update_time.is_some());
}
