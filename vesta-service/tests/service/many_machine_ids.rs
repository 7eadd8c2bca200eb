//! Hundreds of machine IDs in one process: requests, faults and restarts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::START;
use vesta_service::lease::{KvStore, Leases, Record, StoreError};
use vesta_service::options::Drive;
use vesta_service::testing::{FlakyStore, Intercept, ManualClock, MemoryStore, Request};
use vesta_service::{Builder, IdMeta, LocalIdService, MachineSource};

const LAYOUT: IdMeta = IdMeta::MAX_PEAK;
const SECOND: Duration = Duration::from_secs(1);

/// Counts requests, and fails to change one entry, as if its row were locked.
#[derive(Debug, Default)]
struct Counting {
    requests: AtomicU64,
    /// The machine ID whose record is locked; 0 for none.
    locked: AtomicU64,
}

impl Counting {
    /// The requests since the last call.
    fn requests(&self) -> u64 {
        self.requests.swap(0, Ordering::SeqCst)
    }

    fn store() -> (Arc<Self>, Arc<dyn KvStore>) {
        let counting = Arc::new(Self::default());
        let seen = counting.clone();
        let store = Intercept::new(Arc::new(MemoryStore::new()), move |request, store| {
            if !matches!(request, Request::Doubt | Request::Now) {
                seen.requests.fetch_add(1, Ordering::SeqCst);
            }
            if let Request::Put { puts, .. } = request {
                assert!(puts.len() <= 128 && puts.is_sorted_by(|one, next| one.key < next.key));
                let locked = seen.locked.load(Ordering::SeqCst);
                if locked > 0 && puts.iter().any(|put| put.key == locked.to_string()) {
                    let cause = std::io::Error::other("by hand");
                    return Err(StoreError::unavailable("a row is locked", cause));
                }
            }
            request.send(store)
        });
        (counting, Arc::new(store))
    }
}

struct Setting {
    counting: Arc<Counting>,
    store: Arc<dyn KvStore>,
    clock: ManualClock,
    folder: tempfile::TempDir,
}

impl Setting {
    fn new() -> Self {
        let ((counting, store), clock) = (Counting::store(), ManualClock::at(START));
        Self {
            counting,
            store,
            clock,
            folder: vesta_testkit::fast_folder(),
        }
    }

    fn start(&self, count: usize) -> LocalIdService {
        self.start_over(self.store.clone(), count)
    }

    fn start_over(&self, store: Arc<dyn KvStore>, count: usize) -> LocalIdService {
        self.builder(store, count, None).build().unwrap()
    }

    fn builder(
        &self,
        store: Arc<dyn KvStore>,
        count: usize,
        range: Option<RangeInclusive<u64>>,
    ) -> Builder {
        LocalIdService::builder()
            .layout(LAYOUT)
            .machine(MachineSource::Pool { store, range })
            .machine_count(count)
            .state_dir(self.folder.path())
            .clock(Arc::new(self.clock.clone()))
            .drive(Drive::ByHand)
    }

    fn records(&self) -> BTreeMap<u64, Record> {
        store_leases(&self.store).snapshot().unwrap().records
    }
}

fn machines(service: &LocalIdService) -> BTreeSet<u64> {
    service.status().machines.into_iter().collect()
}

fn store_leases(store: &Arc<dyn KvStore>) -> Leases {
    Leases::new(store.clone(), "default")
}

/// Takes some IDs of each machine ID, none of which may be known.
fn take(service: &LocalIdService, known: &mut BTreeSet<u64>) {
    for _ in 0..4 * service.machines().len() {
        assert!(known.insert(service.gen_id().unwrap()), "twice");
    }
}

#[test]
fn claims_run_in_parallel() {
    for (count, at_first, again) in [(1, 9, 5), (64, 9, 5), (256, 11, 7), (1024, 23, 19)] {
        let setting = Setting::new();
        let service = setting.start(count);
        assert_eq!(machines(&service).len(), count, "all different");
        let requests = setting.counting.requests();
        assert!(
            requests <= at_first,
            "{requests} requests for {count} on an empty pool"
        );
        let had = machines(&service);
        drop(service);
        setting.counting.requests();
        let service = setting.start(count);
        let requests = setting.counting.requests();
        assert!(
            requests <= again,
            "{requests} requests for {count} after a restart"
        );
        assert_eq!(machines(&service), had);
    }
}

#[test]
fn renewals_are_batched() {
    let setting = Setting::new();
    let service = setting.start(256);
    setting.counting.requests();
    let (mut rounds, mut renewals) = (0, 0);
    for _ in 0..150 {
        setting.clock.advance(SECOND / 10);
        service.maintain();
        let requests = setting.counting.requests();
        rounds += u64::from(requests > 0);
        renewals += requests;
        assert!(service.machines().iter().all(|machine| machine.ready));
    }
    let all: u64 = service
        .machines()
        .iter()
        .map(|machine| machine.renewals_ok)
        .sum();
    assert!(all >= 9 * 256, "{all}");
    assert!(
        rounds <= 12 && renewals <= 2 * rounds,
        "{renewals} requests in {rounds} rounds"
    );
}

#[test]
fn a_takeover_of_one_machine_id_does_not_affect_the_others() {
    let setting = Setting::new();
    let service = setting.start(256);
    let (lost, mut known) = (service.machine(), BTreeSet::new());
    take(&service, &mut known);
    let record = setting.records()[&lost].clone();
    let (epoch, from) = (record.epoch + 1, record.bound);
    let thief = Record {
        epoch,
        owner: 99,
        from,
        attempt: 1,
        ..record.clone()
    };
    store_leases(&setting.store)
        .change(lost, Some(&record), &thief)
        .unwrap();
    let before = setting.records();
    setting.clock.advance(2 * SECOND);
    service.maintain();
    take(&service, &mut known);
    let status = service.status();
    assert_eq!((status.fenced_total, status.rehomed_total), (1, 1));
    let after = setting.records();
    let held: Vec<_> = machines(&service).into_iter().collect();
    assert!(held.len() == 256 && !held.contains(&lost));
    let renewed = held
        .iter()
        .filter(|machine| after[machine].bound > before.get(machine).map_or(0, |r| r.bound));
    assert_eq!(
        renewed.count(),
        256,
        "all others were renewed in the same round"
    );
    assert_eq!(after[&lost], thief);
}

#[test]
fn a_locked_row_delays_only_its_own_machine_id() {
    let setting = Setting::new();
    let service = setting.start(256);
    let locked = machines(&service)
        .into_iter()
        .find(|machine| *machine > 0)
        .unwrap();
    setting.counting.locked.store(locked, Ordering::SeqCst);
    for _ in 0..8 {
        setting.clock.advance(SECOND);
        service.maintain();
    }
    for machine in service.machines() {
        assert_eq!(machine.ready, machine.machine != locked, "{machine:?}");
        assert_eq!(machine.renewals_failed > 0, machine.machine == locked);
    }
    setting.counting.locked.store(0, Ordering::SeqCst);
    setting.clock.advance(SECOND);
    service.maintain();
    assert!(
        service
            .machines()
            .iter()
            .all(|machine| machine.ready && machine.fenced_total == 0)
    );
}

#[test]
fn an_outage_ends_ids_at_the_bounds_and_all_recover_together() {
    let setting = Setting::new();
    let flaky = FlakyStore::new(setting.store.clone());
    let service = setting.start_over(flaky.clone(), 256);
    let mut known = BTreeSet::new();
    flaky.go_away();
    for _ in 0..30 {
        setting.clock.advance(SECOND / 4);
        service.maintain();
    }
    assert!(
        service
            .machines()
            .iter()
            .all(|machine| !machine.ready && machine.renewals_failed > 3)
    );
    assert!(service.try_gen_id().is_err(), "beyond every bound");
    flaky.come_back();
    setting.clock.advance(SECOND);
    setting.counting.requests();
    service.maintain();
    assert!(
        setting.counting.requests() <= 8,
        "the delayed renewals, a check, and the next ones"
    );
    assert!(
        service
            .machines()
            .iter()
            .all(|machine| machine.ready && machine.fenced_total == 0)
    );
    take(&service, &mut known);
}

/// Some replies are lost, and some changes come late: no process mistakes its own success for another's.
#[test]
fn lost_replies_are_recognised_one_by_one() {
    let setting = Setting::new();
    let flaky = FlakyStore::new(setting.store.clone());
    let service = setting.start_over(flaky.clone(), 256);
    let (held, mut known) = (machines(&service), BTreeSet::new());
    for round in 0..12 {
        if round % 3 == 0 {
            flaky.lose_replies(4);
        }
        if round % 3 == 1 {
            flaky.hold_back(2);
        }
        setting.clock.advance(2 * SECOND);
        service.maintain();
        setting.clock.advance(SECOND / 2);
        service.maintain();
        let late = flaky.deliver();
        assert!(
            late.iter().all(|late| !late.as_ref().unwrap()),
            "it was resent before"
        );
        take(&service, &mut known);
    }
    assert_eq!(machines(&service), held);
    assert!(
        service
            .machines()
            .iter()
            .all(|machine| machine.fenced_total == 0)
    );
    assert!(service.status().renewals_failed > 0);
}

#[test]
fn a_killed_process_resumes_its_machine_ids_above_its_ids() {
    let setting = Setting::new();
    let (mut known, mut had) = (BTreeSet::new(), None);
    for killed in [true, false, true, true, false] {
        let flaky = FlakyStore::new(setting.store.clone());
        let service = setting.start_over(flaky.clone(), 256);
        take(&service, &mut known);
        setting.clock.advance(2 * SECOND);
        service.maintain();
        take(&service, &mut known);
        let held = machines(&service);
        let had = had.get_or_insert(held.clone());
        assert!(
            *had == held,
            "the files of this host say which: {:?}",
            held.difference(had)
        );
        if killed {
            flaky.go_away(); // no release reaches the store
        }
        drop(service);
        setting.clock.advance(10 * SECOND); // a start takes a while
    }
}

#[test]
fn a_stop_releases_all_with_few_requests() {
    let setting = Setting::new();
    let service = setting.start(1024);
    let last: Vec<u64> = (0..100).map(|_| service.gen_id().unwrap()).collect();
    setting.counting.requests();
    service.close();
    assert!(setting.counting.requests() <= 8);
    assert!(
        setting
            .records()
            .values()
            .all(|record| record.released && record.owner == 0)
    );
    let next = setting.start(1024);
    assert!((0..100).all(|_| !last.contains(&next.gen_id().unwrap())));
}

#[test]
fn a_failed_start_gives_back_its_claims() {
    let setting = Setting::new();
    let refused = setting
        .builder(setting.store.clone(), 201, Some(0..=199))
        .build();
    let refused = refused.expect_err("the pool is too small").to_string();
    assert!(
        refused.contains("every machine ID of 0 to 199 is in use"),
        "{refused}"
    );
    let records = setting.records();
    assert!(records.len() == 200 && records.values().all(|record| record.owner == 0));
}
