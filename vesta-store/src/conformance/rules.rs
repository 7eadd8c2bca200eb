//! Rules of the store itself.

use std::sync::Barrier;

use vesta_service::IdMeta;
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::contract::UnixMillis;
use vesta_service::lease::Record;

use super::world::{NAMESPACE, World, next_position, position_at};
use super::{Backend, Cas, RecordExt as _, Records};

fn claimed(epoch: u64, owner: u128, bound: u64, attempt: u64) -> Record {
    Record {
        epoch,
        owner,
        bound,
        attempt,
        host: "a host".into(),
        pid: 4711,
        info_time: UnixMillis(1_700_000_000_000 + attempt % 1000),
        ..Record::default()
    }
}

fn change(store: &Records, machine: u64, from: &Record, to: &Record) -> Cas {
    store
        .cas(NAMESPACE, machine, &from.expect(), to)
        .expect("the store answers")
}

fn read(store: &Records, machine: u64) -> Option<Record> {
    store.read(NAMESPACE, machine).expect("the store answers")
}

/// Every field, at its limits.
pub(super) fn a_record_comes_back_as_it_was_written(backend: &dyn Backend) {
    let world = World::new(backend);
    let store = world.raw();
    let mut before = Record::unclaimed(0);
    for (i, record) in [
        claimed(1, 1, 0, 1),
        claimed(2, u128::MAX, (1 << 62) - 1, (1 << 63) - 1),
        claimed(3, 1 << 64, 1 << 53 | 1, 1 << 53 | 1),
        Record {
            released: true,
            owner: 0,
            ..claimed(3, 0, 77, 3)
        },
        Record {
            host: "h'ö\"s\\t; DROP TABLE x --\u{1F980}".into(),
            pid: u32::MAX,
            info_time: UnixMillis(1 << 42),
            ..claimed(4, 5, 6, 7)
        },
        Record {
            host: String::new(),
            pid: 0,
            info_time: UnixMillis(0),
            ..claimed(5, 5, 6, 0)
        },
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(
            change(&store, 1023, &before, &record),
            Cas::Done,
            "record {i}"
        );
        assert_eq!(read(&store, 1023), Some(record.clone()), "record {i}");
        assert_eq!(
            store.list(NAMESPACE).unwrap(),
            [(1023, record.clone())],
            "record {i}"
        );
        before = record;
    }
}

/// Records never claimed are not listed, and the first claim starts from the floor.
pub(super) fn an_absent_record_counts_as_unclaimed(backend: &dyn Backend) {
    let world = World::new(backend);
    let store = world.raw();
    assert_eq!(store.list(NAMESPACE).unwrap(), []);
    assert_eq!(read(&store, 0), None);
    let wrong = claimed(1, 2, 3, 4);
    assert_eq!(
        change(&store, 0, &wrong, &wrong),
        Cas::Conflict(Record::unclaimed(0))
    );
    assert_eq!(read(&store, 0), None, "a conflict changes nothing");
    assert_eq!(store.list(NAMESPACE).unwrap(), []);
    assert_eq!(change(&store, 0, &Record::unclaimed(0), &wrong), Cas::Done);
    assert_eq!(store.list(NAMESPACE).unwrap(), [(0, wrong)]);
}

/// One differing field is enough; the conflict returns the current record.
pub(super) fn a_change_takes_effect_only_if_epoch_owner_and_bound_are_as_expected(
    backend: &dyn Backend,
) {
    let world = World::new(backend);
    let store = world.raw();
    let current = claimed(2, 20, 200, 2);
    change(&store, 5, &Record::unclaimed(0), &current);
    let new = claimed(3, 30, 300, 3);
    for stale in [
        claimed(1, 20, 200, 2),
        claimed(3, 20, 200, 2),
        claimed(2, 21, 200, 2),
        claimed(2, 20 | 1 << 64, 200, 2),
        claimed(2, 0, 200, 2),
        claimed(2, 20, 199, 2),
        claimed(2, 20, 201, 2),
        Record::unclaimed(0),
    ] {
        assert_eq!(
            change(&store, 5, &stale, &new),
            Cas::Conflict(current.clone()),
            "{stale:?}"
        );
        assert_eq!(read(&store, 5), Some(current.clone()), "{stale:?}");
    }
    // The other fields are not part of the condition.
    let same = Record {
        attempt: 99,
        host: "other".into(),
        ..current.clone()
    };
    assert_eq!(change(&store, 5, &same, &new), Cas::Done);
    assert_eq!(read(&store, 5), Some(new));
    assert_eq!(
        store.list(NAMESPACE).unwrap().len(),
        1,
        "no other record came up"
    );
}

/// 8 connections, 50 rounds, for a first claim and for the ones after it.
pub(super) fn of_concurrent_changes_exactly_one_takes_effect(backend: &dyn Backend) {
    const STARTERS: u64 = 8;
    const ROUNDS: u64 = 50;
    let world = World::new(backend);
    let start = Barrier::new(STARTERS.try_into().expect("a small number"));
    let done: Vec<Vec<bool>> = std::thread::scope(|scope| {
        let starters: Vec<_> = (1..=STARTERS)
            .map(|starter| {
                let (store, start) = (world.raw(), &start);
                scope.spawn(move || {
                    let mut rounds = Vec::new();
                    for round in 1..=ROUNDS {
                        start.wait();
                        // Even rounds are claims of new machine IDs, odd ones of the same.
                        let machine = if round % 2 == 0 { round } else { 0 };
                        // No panic before the barrier: it would block the other threads forever.
                        let before = store.read(NAMESPACE, machine);
                        start.wait();
                        let before = before.ok().flatten().unwrap_or_default();
                        let owner = u128::from(round * 100 + starter);
                        let new = claimed(before.epoch + 1, owner, round * 100 + starter, starter);
                        let reply = store.cas(NAMESPACE, machine, &before.expect(), &new);
                        rounds.push(matches!(reply, Ok(Cas::Done)));
                    }
                    rounds
                })
            })
            .collect();
        starters
            .into_iter()
            .map(|starter| starter.join().expect("no panic"))
            .collect()
    });
    for round in 0..done[0].len() {
        let winners = done.iter().filter(|rounds| rounds[round]).count();
        assert_eq!(winners, 1, "round {round}");
    }
}

/// A request may be in flight for any time: it then fails its condition.
pub(super) fn a_delayed_extend_is_rejected_after_a_newer_claim(backend: &dyn Backend) {
    let world = World::new(backend);
    let store = world.raw();
    let first = claimed(1, 10, 100, 1);
    let extend = claimed(1, 10, 200, 2);
    let newer = claimed(2, 20, 150, 3);
    assert_eq!(change(&store, 0, &Record::unclaimed(0), &first), Cas::Done);
    assert_eq!(change(&store, 0, &first, &newer), Cas::Done);
    assert_eq!(
        change(&store, 0, &first, &extend),
        Cas::Conflict(newer.clone())
    );
    assert_eq!(read(&store, 0), Some(newer.clone()));
    // A request that took effect does not do so again once its owner has moved on.
    let moved = claimed(2, 20, 250, 4);
    assert_eq!(change(&store, 0, &newer, &moved), Cas::Done);
    let again = claimed(2, 20, 250, 5);
    assert_eq!(change(&store, 0, &newer, &again), Cas::Conflict(moved));
}

/// The first connection also sees what the second wrote.
pub(super) fn a_second_connection_sees_what_the_first_wrote(backend: &dyn Backend) {
    let world = World::new(backend);
    let (one, two) = (world.raw(), world.raw());
    let (first, second) = (claimed(1, 10, 100, 1), claimed(2, 20, 200, 2));
    assert_eq!(read(&two, 3), None);
    change(&one, 3, &Record::unclaimed(0), &first);
    assert_eq!(read(&two, 3), Some(first.clone()));
    assert_eq!(two.list(NAMESPACE).unwrap(), [(3, first.clone())]);
    assert_eq!(change(&two, 3, &first, &second), Cas::Done);
    assert_eq!(
        change(&one, 3, &first, &second),
        Cas::Conflict(second.clone())
    );
    assert_eq!(one.list(NAMESPACE).unwrap(), [(3, second)]);
}

/// Records and namespaces.
pub(super) fn acknowledged_writes_outlive_a_restart(backend: &dyn Backend) {
    let world = World::new(backend);
    let store = world.raw();
    let record = claimed(1, 10, 100, 1);
    change(&store, 9, &Record::unclaimed(0), &record);
    let namespace = store.open_namespace(NAMESPACE, "x").unwrap();
    drop(store);
    world.restart();
    let store = world.raw();
    assert_eq!(read(&store, 9), Some(record));
    assert_eq!(store.open_namespace(NAMESPACE, "x").unwrap(), namespace);
}

/// The same machine ID in two namespaces has two records.
pub(super) fn namespaces_do_not_touch_each_other(backend: &dyn Backend) {
    let world = World::new(backend);
    let store = world.raw();
    let other = store
        .open_namespace("other", &IdMeta::MIN_GRANULARITY.fingerprint())
        .unwrap();
    assert_eq!(other.fingerprint, IdMeta::MIN_GRANULARITY.fingerprint());
    let own = store.open_namespace(NAMESPACE, "x").unwrap();
    assert_ne!(own.uuid, other.uuid);

    let (mine, theirs) = (claimed(1, 10, 100, 1), claimed(1, 20, 200, 2));
    change(&store, 4, &Record::unclaimed(0), &mine);
    assert_eq!(store.list("other").unwrap(), []);
    assert_eq!(store.read("other", 4).unwrap(), None);
    let first = Record::unclaimed(0).expect();
    assert_eq!(store.cas("other", 4, &first, &theirs).unwrap(), Cas::Done);
    assert_eq!(read(&store, 4), Some(mine));
    assert_eq!(store.list("other").unwrap(), [(4, theirs)]);
}

/// Later openers see and compare them.
pub(super) fn a_namespace_keeps_its_first_fingerprint_and_uuid(backend: &dyn Backend) {
    let world = World::new(backend);
    let made = world.raw();
    let start = Barrier::new(4);
    let seen: Vec<_> = std::thread::scope(|scope| {
        let openers: Vec<_> = (0..4)
            .map(|i| {
                let (store, start) = (Records(world.connect()), &start);
                scope.spawn(move || {
                    start.wait();
                    store
                        .open_namespace("raced", &format!("layout {i}"))
                        .unwrap()
                })
            })
            .collect();
        openers
            .into_iter()
            .map(|opener| opener.join().expect("no panic"))
            .collect()
    });
    let kept = made.open_namespace("raced", "a later layout").unwrap();
    assert!(kept.fingerprint.starts_with("layout "), "{kept:?}");
    assert_ne!(kept.uuid, 0);
    assert_eq!(kept.floor, 0);
    assert!(
        seen.iter().all(|namespace| *namespace == kept),
        "{seen:?} and {kept:?}"
    );
}

/// It is not treated as empty.
pub(super) fn a_namespace_that_was_not_opened_is_refused(backend: &dyn Backend) {
    let world = World::new(backend);
    let store = world.raw();
    let record = claimed(1, 10, 100, 1);
    let expect = Record::unclaimed(0).expect();
    let refused = [
        store.list("unknown").map(|_| ()),
        store.read("unknown", 0).map(|_| ()),
        store.cas("unknown", 0, &expect, &record).map(|_| ()),
    ];
    for answer in refused {
        assert!(answer.expect_err("refused").is_permanent());
    }
}

/// The store's own durations are valid.
pub(super) fn the_durations_are_consistent_and_the_clock_is_right(backend: &dyn Backend) {
    let fixture = backend.fresh();
    let store = fixture.connect();
    store.timing().check().expect("durations that fit together");
    assert!(!store.describe().is_empty());
    if let Some(theirs) = store.now().expect("the store answers") {
        let ours = SystemClock::new().wall();
        assert!(
            ours.0.abs_diff(theirs.0) < 60_000,
            "ours {ours}, the store's {theirs}"
        );
    }
}

/// An operator raises the floor after a store forgot: concurrent raises never lower it.
pub(super) fn a_floor_is_only_ever_raised_and_new_records_start_there(backend: &dyn Backend) {
    let world = World::new(backend);
    let store = world.raw();
    let old = claimed(1, 2, 30, 4);
    assert_eq!(change(&store, 0, &Record::unclaimed(0), &old), Cas::Done);
    let high = 1 << 60 | 1;
    assert_eq!(
        store
            .raise_floor(NAMESPACE, 1000)
            .expect("the store answers"),
        1000
    );
    assert_eq!(
        store
            .raise_floor(NAMESPACE, 999)
            .expect("the store answers"),
        1000
    );
    std::thread::scope(|scope| {
        for floor in [high - 1, high, 5000, 70] {
            let world = &world;
            scope.spawn(move || {
                world
                    .raw()
                    .raise_floor(NAMESPACE, floor)
                    .expect("it answers")
            });
        }
    });
    assert_eq!(
        store.raise_floor(NAMESPACE, 0).expect("the store answers"),
        high
    );
    let namespace = store
        .open_namespace(NAMESPACE, "any")
        .expect("the store answers");
    assert_eq!(namespace.floor, high);

    assert_eq!(read(&store, 0), Some(old), "a record that was there stays");
    assert!(store.raise_floor("another", 1).is_err(), "never opened");

    let world = World::new(backend);
    let floor = position_at(UnixMillis(world.clock.wall().0 + 3000)) + 7;
    world
        .raw()
        .raise_floor(NAMESPACE, floor)
        .expect("the store answers");
    let service = world.pool("host", 1..=1).build().expect("a machine ID");
    assert_eq!(next_position(&service), floor);
}
