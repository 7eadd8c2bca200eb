//! Imports: the records that are written, and that concurrent changes are never overwritten.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Cas, KvStore, Leases, Record, Snapshot, StoreError};
use vesta_service::options::Drive;
use vesta_service::testing::{FlakyStore, ManualClock, MemoryStore};
use vesta_service::{IdMeta, LocalIdService, MachineSource};
use vesta_store::import::{ForeignOwner, Outcome, Outcomes, Target, plan, put, write};

const NOW: UnixMillis = UnixMillis(1_767_225_600_000);
const LAYOUT: IdMeta = IdMeta::SNOWFLAKE;
const NAMESPACE: &str = "default";

fn found(machine: u64, host: &str, last_used: Option<u64>) -> ForeignOwner {
    ForeignOwner {
        machine,
        host: host.into(),
        last_used: last_used.map(UnixMillis),
    }
}

fn target(floor: u64) -> Target {
    Target {
        layout: LAYOUT,
        namespace: 0,
        floor,
        now: NOW,
    }
}

fn position(moment: u64) -> u64 {
    LAYOUT
        .tick_at(UnixMillis(moment))
        .expect("inside the layout")
        << LAYOUT.spec().seq_bits
}

fn planned(found: &[ForeignOwner], records: &[(u64, Record)], floor: u64) -> Outcomes {
    let records = &records.iter().cloned().collect();
    let mut attempts = 100..;
    plan(found, records, &target(floor), || {
        attempts.next().expect("endless")
    })
    .expect("a plan")
}

/// The records that are written.
fn written(outcomes: &Outcomes) -> Vec<(u64, Record)> {
    let record = |(machine, outcome): &(u64, Outcome)| match outcome {
        Outcome::Written(record) => Some((*machine, record.clone())),
        Outcome::LeftAlone(_) => None,
    };
    outcomes.iter().filter_map(record).collect()
}

fn opened(store: Arc<dyn KvStore>) -> Leases {
    let leases = Leases::new(store, NAMESPACE);
    leases.open(&LAYOUT.fingerprint()).expect("memory");
    leases
}

fn all(leases: &Leases) -> Vec<(u64, Record)> {
    leases
        .snapshot()
        .expect("memory")
        .records
        .into_iter()
        .collect()
}

#[test]
fn a_foreign_owner_gets_a_record_that_no_pool_hands_out() {
    let plan = planned(&[found(7, "10.0.0.7:8080", None)], &[], 0);
    let record = Record {
        epoch: 1,
        owner: Record::FOREIGN,
        bound: position(NOW.0 + 10_000),
        attempt: 101,
        host: "10.0.0.7:8080".into(),
        pid: 0,
        claimed: NOW,
        info_time: NOW,
        birth: 100,
        ..Record::default()
    };
    assert_eq!(plan, [(7, Outcome::Written(record))]);
}

#[test]
fn the_bound_covers_use_ahead_of_our_clock_and_is_never_below_the_floor() {
    let bound = |last_used, floor| {
        written(&planned(&[found(7, "h", last_used)], &[], floor))[0]
            .1
            .bound
    };
    assert_eq!(bound(Some(NOW.0 - 60_000), 0), position(NOW.0 + 10_000));
    assert_eq!(bound(Some(NOW.0 + 60_000), 0), position(NOW.0 + 70_000));
    let floor = position(NOW.0 + 90_000) + 3;
    assert_eq!(bound(Some(NOW.0 + 60_000), floor), floor);
}

#[test]
fn a_machine_id_found_twice_is_one_record_with_the_later_bound() {
    let both = [
        found(7, "a", Some(NOW.0 + 50_000)),
        found(3, "c", None),
        found(7, "b", None),
    ];
    let plan = written(&planned(&[&both[..], &both[..]].concat(), &[], 0));
    let said: Vec<_> = plan
        .iter()
        .map(|(m, r)| (*m, r.host.as_str(), r.bound))
        .collect();
    let expected = [
        (3, "c", position(NOW.0 + 10_000)),
        (7, "a, b", position(NOW.0 + 60_000)),
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_machine_id_with_a_record_is_left_alone() {
    for record in [
        Record::default(),
        Record {
            epoch: 3,
            owner: 9,
            bound: 5,
            ..Record::default()
        },
        Record {
            epoch: 3,
            released: true,
            bound: 5,
            ..Record::default()
        },
    ] {
        let records = [(7, record.clone())];
        let plan = planned(&[found(7, "h", None), found(8, "i", None)], &records, 0);
        assert_eq!(plan[0], (7, Outcome::LeftAlone(record)));
        assert_eq!(
            written(&plan).iter().map(|it| it.0).collect::<Vec<_>>(),
            [8]
        );
    }
}

#[test]
fn ids_outside_the_layout_are_refused_before_anything_is_written() {
    let refusal = |found: &[ForeignOwner]| {
        plan(found, &BTreeMap::new(), &target(0), || 1)
            .expect_err("refused")
            .to_string()
    };
    assert_eq!(
        refusal(&[
            found(1, "a", None),
            found(1024, "b", None),
            found(5000, "c", None)
        ]),
        "the layout snowflake has machine IDs of 0 to 1023, but the foreign owners use 1024, 5000; \
         choose their layout"
    );
    let many: Vec<_> = (1024..1040)
        .map(|machine| found(machine, "h", None))
        .collect();
    assert!(
        refusal(&many).contains("1032, 1033, …; choose"),
        "{}",
        refusal(&many)
    );
    let late = refusal(&[found(1, "a", Some(LAYOUT.end().0))]);
    assert!(
        late.starts_with("machine ID 1 was used at 2080-07-10T"),
        "{late}"
    );
    assert!(refusal(&[found(1, "a", Some(u64::MAX))]).starts_with("machine ID 1 was used at"));
}

#[test]
fn a_host_name_of_any_length_fits_the_stores() {
    let plan = planned(&[found(7, &"ü".repeat(1000), None)], &[], 0);
    assert_eq!(written(&plan)[0].1.host, "ü".repeat(200));
}

#[test]
fn writing_twice_changes_nothing() {
    let store = opened(Arc::new(MemoryStore::new()));
    let owners = [found(3, "a", None), found(7, "b", None)];
    let empty = store.snapshot().expect("memory");
    let once = planned(&owners, &[], 0);
    assert_eq!(write(&store, &empty, once.clone()).expect("memory"), once);
    let records = all(&store);
    assert_eq!(records, written(&once));
    let left_alone: Outcomes = records
        .iter()
        .map(|(it, record)| (*it, Outcome::LeftAlone(record.clone())))
        .collect();

    let again = planned(&owners, &records, 0);
    assert_eq!(again, left_alone);
    // A second importer that read the records before the first one wrote.
    let later = |(machine, record)| {
        (
            machine,
            Outcome::Written(Record {
                attempt: 5,
                ..record
            }),
        )
    };
    let late = written(&once).into_iter().map(later).collect();
    assert_eq!(write(&store, &empty, late).expect("memory"), left_alone);
    assert_eq!(all(&store), records);
}

#[test]
fn records_begin_at_a_raised_floor() {
    let store = opened(Arc::new(MemoryStore::new()));
    let floor = store.raise_floor(position(NOW.0 + 30_000)).expect("memory");
    import(&store, &[found(7, "h", None)]).expect("memory");
    assert_eq!(
        store.record(7).expect("memory").map(|r| r.bound),
        Some(floor)
    );
}

/// Outcome of an import of these machine IDs.
fn import(leases: &Leases, found: &[ForeignOwner]) -> Result<Vec<(u64, Outcome)>, StoreError> {
    let seen = leases.snapshot()?;
    let target = Target {
        namespace: seen.namespace.uuid,
        ..target(seen.namespace.floor)
    };
    let mut numbers = 100..;
    let number = || numbers.next().expect("endless");
    let plan = plan(found, &seen.records, &target, number).expect("a plan");
    write(leases, &seen, plan)
}

/// A memory store with an open namespace, and a connection to it that may fail.
fn flaky() -> (Arc<MemoryStore>, Leases, Arc<FlakyStore>, Leases) {
    let memory = Arc::new(MemoryStore::new());
    let connection = FlakyStore::new(memory.clone());
    let bad = Leases::new(connection.clone(), NAMESPACE);
    (memory.clone(), opened(memory), connection, bad)
}

#[test]
fn a_lost_reply_is_not_a_failure_but_an_unresponsive_store_is() {
    let (_, leases, connection, bad) = flaky();
    connection.lose_replies(2);
    let outcomes = import(&bad, &[found(7, "h", None)]).expect("two replies were lost");
    let [(7, Outcome::Written(written))] = &outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert_eq!(all(&leases), [(7, written.clone())], "written once");
    connection.go_away();
    assert!(import(&bad, &[found(8, "i", None)]).is_err());
    assert_eq!(all(&leases).len(), 1);
}

#[test]
fn an_import_that_stops_between_any_two_steps_is_completed_by_the_next() {
    let owners = [
        found(3, "a", None),
        found(9, "b", None),
        found(70, "c", None),
    ];
    let mut left_unmarked = 0;
    for steps in 0.. {
        let (memory, leases, connection, bad) = flaky();
        let away = connection.clone();
        connection.after(steps, move || away.go_away());
        let done = import(&bad, &owners).is_ok();
        let seen = leases.snapshot().expect("memory");
        left_unmarked += (0..1024)
            .filter(|machine| seen.is_unmarked(*machine))
            .count();

        import(&leases, &owners).expect("memory");
        let seen = leases.snapshot().expect("memory");
        for ForeignOwner { machine, host, .. } in &owners {
            let record = &seen.records[machine];
            assert_eq!(
                (record.owner, &record.host),
                (Record::FOREIGN, host),
                "{steps} steps"
            );
            assert!(
                !seen.is_unmarked(*machine) && !seen.is_lost(*machine),
                "{steps} steps"
            );
            memory.delete("lease/default", &machine.to_string());
        }
        let seen = leases.snapshot().expect("memory");
        assert!(
            owners.iter().all(|owner| seen.is_lost(owner.machine)),
            "a deletion is noticed"
        );
        if done {
            assert!(steps >= 6, "it stopped between any two of {steps} steps");
            assert!(left_unmarked >= 3, "between a record and its mark, too");
            return;
        }
    }
}

/// A process of this fleet that claims machine ID 7, if it is free.
fn starter(store: Arc<MemoryStore>, folder: &Path) -> Option<LocalIdService> {
    let pool = MachineSource::Pool {
        store,
        range: Some(7..=7),
    };
    let builder = LocalIdService::builder()
        .layout(LAYOUT)
        .machine(pool)
        .state_dir(folder);
    builder
        .clock(Arc::new(ManualClock::at(NOW)))
        .drive(Drive::ByHand)
        .build()
        .ok()
}

#[test]
fn an_import_never_overwrites_a_claim_made_between_its_steps() {
    let [mut kept, mut reserved] = [0, 0];
    for steps in 0.. {
        let (memory, leases, connection, bad) = flaky();
        let folder = tempfile::tempdir().expect("a folder");
        let claimed = Arc::new(Mutex::new(None));
        let (into, path) = (claimed.clone(), folder.path().to_owned());
        connection.after(steps, move || {
            *into.lock().expect("no panic") = starter(memory, &path)
        });
        let outcomes = import(&bad, &[found(7, "h", None)]).expect("memory");
        let record = leases.record(7).expect("memory").expect("a record");
        let ids = claimed.lock().expect("no panic").take();
        match (&outcomes[..], &ids) {
            ([(7, Outcome::LeftAlone(found))], Some(ids)) => {
                assert_eq!((found, found.epoch), (&record, 1));
                ids.gen_id().expect("an ID");
                kept += 1;
            }
            ([(7, Outcome::Written(written))], None) => {
                assert_eq!((written, written.owner), (&record, Record::FOREIGN));
                reserved += 1;
            }
            _ => panic!("{steps} steps: {outcomes:?} and {ids:?}"),
        }
        assert_eq!(
            leases.snapshot().expect("memory").lost(),
            [].into(),
            "{steps} steps"
        );
        if connection.asked() <= steps {
            assert!(
                kept >= 2 && reserved >= 2,
                "{kept} kept, {reserved} reserved"
            );
            return;
        }
    }
}

/// A deleted record of machine ID 7 as seen in a snapshot, and the new one.
fn lost(leases: &Leases, memory: &MemoryStore, birth: u64) -> (Snapshot, Record) {
    import(leases, &[found(7, "h", None)]).expect("memory");
    memory.delete("lease/default", "7");
    let seen = leases.snapshot().expect("memory");
    assert!(seen.is_lost(7));
    (seen.clone(), repaired(&seen, birth))
}

fn repaired(seen: &Snapshot, birth: u64) -> Record {
    let namespace = seen.namespace.uuid;
    Record {
        namespace,
        birth,
        attempt: birth,
        released: true,
        ..Record::default()
    }
}

#[test]
fn a_repair_that_stops_between_any_two_steps_is_completed_by_the_next() {
    for steps in 0.. {
        let (memory, leases, connection, bad) = flaky();
        let (seen, new) = lost(&leases, &memory, 1);
        let away = connection.clone();
        connection.after(steps, move || away.go_away());
        let done = put(&bad, &seen, 7, &new);
        let seen = leases.snapshot().expect("memory");
        if let Ok(done) = done {
            assert_eq!(
                (done, seen.is_lost(7), &seen.records[&7]),
                (Cas::Done, false, &new)
            );
            assert!(steps >= 3, "it stopped between any two of {steps} steps");
            return;
        }
        assert!(seen.is_lost(7), "{steps} steps: it must not be claimed yet");
        let again = repaired(&seen, 2);
        assert_eq!(put(&leases, &seen, 7, &again).expect("memory"), Cas::Done);
        let seen = leases.snapshot().expect("memory");
        assert_eq!((seen.is_lost(7), &seen.records[&7]), (false, &again));
    }
}

#[test]
fn a_repair_never_overwrites_a_concurrent_repair_and_its_claim() {
    for steps in 0.. {
        let (memory, leases, connection, bad) = flaky();
        let (seen, new) = lost(&leases, &memory, 1);
        let folder = tempfile::tempdir().expect("a folder");
        let claimed = Arc::new(Mutex::new(None));
        let (into, path, other) = (claimed.clone(), folder.path().to_owned(), leases.clone());
        connection.after(steps, move || {
            let seen = other.snapshot().expect("memory");
            if seen.is_lost(7) {
                put(&other, &seen, 7, &repaired(&seen, 2)).expect("memory");
            }
            *into.lock().expect("no panic") = starter(memory, &path);
        });
        let done = put(&bad, &seen, 7, &new);
        let seen = leases.snapshot().expect("memory");
        assert!(!seen.is_lost(7), "{steps} steps, {done:?}");
        if connection.asked() <= steps {
            assert!(
                steps >= 3,
                "another one was faster between any two of {steps} steps"
            );
            return;
        }
        let ids = claimed
            .lock()
            .expect("no panic")
            .take()
            .expect("claimed after a repair");
        let record = &seen.records[&7];
        assert_eq!(
            (record.epoch, record.released),
            (1, false),
            "{steps} steps, {done:?}"
        );
        assert_eq!(ids.status().fenced_total, 0);
    }
}
