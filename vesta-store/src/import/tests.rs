//! Which records are written, and that nothing else changes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use vesta_service::{KvStore, MemoryStore, Timing};

use super::*;

const NOW: UnixMillis = UnixMillis(1_767_225_600_000);
const LAYOUT: IdMeta = IdMeta::SNOWFLAKE;
const NAMESPACE: &str = "default";

fn found(machine: u64, host: &str, last_used: Option<u64>) -> ForeignOwner {
    ForeignOwner { machine, host: host.into(), last_used: last_used.map(UnixMillis) }
}

fn target(floor: u64) -> Target {
    Target { layout: LAYOUT, namespace: 0, floor, now: NOW }
}

fn position(moment: u64) -> u64 {
    LAYOUT.tick_at(UnixMillis(moment)).expect("inside the layout") << LAYOUT.spec().seq_bits
}

fn planned(found: &[ForeignOwner], records: &[(u64, Record)], floor: u64) -> Plan {
    let records = &records.iter().cloned().collect();
    let mut attempts = 100..;
    plan(found, records, &target(floor), || attempts.next().expect("endless")).expect("a plan")
}

fn opened(store: Arc<dyn KvStore>) -> Leases {
    let leases = Leases::new(store, NAMESPACE);
    leases.open(&LAYOUT.fingerprint()).expect("memory");
    leases
}

fn all(leases: &Leases) -> Vec<(u64, Record)> {
    leases.snapshot().expect("memory").records.into_iter().collect()
}

#[test]
fn a_predecessor_gets_a_record_that_no_pool_hands_out() {
    let plan = planned(&[found(7, "10.0.0.7:8080", None)], &[], 0);
    let record = Record {
        epoch: 1,
        owner: Record::FOREIGN,
        bound: position(NOW.0 + 10_000),
        attempt: 101,
        released: false,
        host: "10.0.0.7:8080".into(),
        pid: 0,
        info_time: NOW,
        namespace: 0,
        birth: 100,
    };
    assert_eq!(plan, Plan { write: vec![(7, record)], left_alone: vec![] });
}

#[test]
fn the_bound_covers_what_was_used_ahead_of_our_clock_and_never_undercuts_the_floor() {
    let bound =
        |last_used, floor| planned(&[found(7, "h", last_used)], &[], floor).write[0].1.bound;
    assert_eq!(bound(Some(NOW.0 - 60_000), 0), position(NOW.0 + 10_000));
    assert_eq!(bound(Some(NOW.0 + 60_000), 0), position(NOW.0 + 70_000));
    let floor = position(NOW.0 + 90_000) + 3;
    assert_eq!(bound(Some(NOW.0 + 60_000), floor), floor);
}

#[test]
fn a_machine_id_found_twice_is_one_record_with_the_later_bound() {
    let both = [found(7, "a", Some(NOW.0 + 50_000)), found(3, "c", None), found(7, "b", None)];
    let plan = planned(&[&both[..], &both[..]].concat(), &[], 0);
    let said: Vec<_> = plan.write.iter().map(|(m, r)| (*m, r.host.as_str(), r.bound)).collect();
    let expected = [(3, "c", position(NOW.0 + 10_000)), (7, "a, b", position(NOW.0 + 60_000))];
    assert_eq!(said, expected);
}

#[test]
fn a_machine_id_with_a_record_is_left_alone() {
    for record in [
        Record::default(),
        Record { epoch: 3, owner: 9, bound: 5, ..Record::default() },
        Record { epoch: 3, released: true, bound: 5, ..Record::default() },
    ] {
        let records = [(7, record.clone())];
        let plan = planned(&[found(7, "h", None), found(8, "i", None)], &records, 0);
        assert_eq!(plan.left_alone, records);
        assert_eq!(plan.write.iter().map(|it| it.0).collect::<Vec<_>>(), [8]);
    }
}

#[test]
fn what_the_layout_does_not_have_is_refused_before_anything_is_written() {
    let refusal = |found: &[ForeignOwner]| {
        plan(found, &BTreeMap::new(), &target(0), || 1).expect_err("refused").to_string()
    };
    assert_eq!(
        refusal(&[found(1, "a", None), found(1024, "b", None), found(5000, "c", None)]),
        "the layout snowflake has machine IDs of 0 to 1023, but the foreign owners use 1024, 5000; \
         choose the layout that they have"
    );
    let many: Vec<_> = (1024..1040).map(|machine| found(machine, "h", None)).collect();
    assert!(refusal(&many).contains("1032, 1033, …; choose"), "{}", refusal(&many));
    let late = refusal(&[found(1, "a", Some(LAYOUT.end().0))]);
    assert!(late.starts_with("machine ID 1 was used at 2080-07-10T"), "{late}");
    assert!(refusal(&[found(1, "a", Some(u64::MAX))]).starts_with("machine ID 1 was used at"));
}

#[test]
fn a_host_name_of_any_length_fits_the_stores() {
    let plan = planned(&[found(7, &"ü".repeat(1000), None)], &[], 0);
    assert_eq!(plan.write[0].1.host, "ü".repeat(200));
}

#[test]
fn written_twice_it_changes_nothing() {
    let store = opened(Arc::new(MemoryStore::new()));
    let found = [found(3, "a", None), found(7, "b", None)];
    let once = planned(&found, &all(&store), 0);
    let written = write(&store, once.write.clone()).expect("memory");
    assert_eq!(written, [(3, Outcome::Written), (7, Outcome::Written)]);
    let records = all(&store);
    assert_eq!(records, once.write);

    let again = planned(&found, &records, 0);
    assert_eq!(again, Plan { write: vec![], left_alone: records.clone() });
    // A second importer that looked before the first one wrote.
    let late: Vec<_> =
        once.write.iter().map(|(m, r)| (*m, Record { attempt: 5, ..r.clone() })).collect();
    let outcomes = write(&store, late).expect("memory");
    let left: Vec<_> = records.iter().map(|(m, r)| (*m, Outcome::LeftAlone(r.clone()))).collect();
    assert_eq!(outcomes, left);
    assert_eq!(all(&store), records);
}

#[test]
fn a_floor_that_was_raised_is_where_records_begin() {
    let store = opened(Arc::new(MemoryStore::new()));
    let floor = store.raise_floor(position(NOW.0 + 30_000)).expect("memory");
    let plan = planned(&[found(7, "h", None)], &[], floor);
    let written = write(&store, plan.write).expect("memory");
    assert_eq!(written, [(7, Outcome::Written)]);
    assert_eq!(store.record(7).expect("memory").map(|r| r.bound), Some(floor));
}

/// Carries out every change, but loses the first so many replies.
#[derive(Debug)]
struct LosesReplies(Arc<MemoryStore>, AtomicU32);

impl KvStore for LosesReplies {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn timing(&self) -> Timing {
        self.0.timing()
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.0.list(area)
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        self.0.get(area, key)
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        let answer = self.0.put_if(area, key, old, new);
        let lost = |left: u32| left.checked_sub(1);
        match self.1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lost) {
            Ok(_) => Err(StoreError::unavailable("no answer", io::Error::other("lost"))),
            Err(_) => answer,
        }
    }
}

#[test]
fn a_lost_reply_is_no_failure_and_a_silent_store_is() {
    for (lost, arrives) in [(2, true), (3, false)] {
        let memory = Arc::new(MemoryStore::new());
        opened(memory.clone());
        let store = opened(Arc::new(LosesReplies(memory, AtomicU32::new(lost))));
        let plan = planned(&[found(7, "h", None)], &[], 0);
        let written = write(&store, plan.write.clone());
        assert_eq!(written.ok(), arrives.then(|| vec![(7, Outcome::Written)]));
        assert_eq!(all(&store), plan.write, "written once");
    }
}
