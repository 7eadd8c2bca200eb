//! A floor that an operator raises while a machine ID is being claimed.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{START, leases};
use vesta_service::{
    BuildError, Builder, Drive, IdMeta, IdService as _, KvStore, LocalIdService, MachineSource,
    ManualClock, MemoryStore, Record, StoreError, Timing, UnixMillis,
};

const LAYOUT: IdMeta = IdMeta::MAX_PEAK;
const SECOND: u64 = 1000;

fn position(moment: UnixMillis) -> u64 {
    LAYOUT.tick_at(moment).unwrap() << LAYOUT.spec().seq_bits
}

/// A store whose floor is raised just before one of its calls.
#[derive(Debug)]
struct Raised {
    store: Arc<MemoryStore>,
    floor: u64,
    before: u64,
    calls: AtomicU64,
}

impl Raised {
    /// With a record of machine ID 0 that is free, or without any.
    fn new(present: bool, floor: u64, before: u64) -> Arc<Self> {
        let store = Arc::new(MemoryStore::new());
        let namespace = leases(&store).open(&LAYOUT.fingerprint()).unwrap().uuid;
        if present {
            let bound = position(UnixMillis(START.0 - 60 * SECOND));
            let free = Record { namespace, epoch: 1, bound, released: true, ..Record::default() };
            leases(&store).put(0, &free).unwrap();
        }
        Arc::new(Self { store, floor, before, calls: AtomicU64::new(0) })
    }

    fn call(&self) {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        assert!(number < 50, "it asks again and again");
        if number == self.before {
            leases(&self.store).raise_floor(self.floor).unwrap();
        }
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn builder(self: &Arc<Self>, folder: &tempfile::TempDir) -> Builder {
        LocalIdService::builder()
            .layout(LAYOUT)
            .machine(MachineSource::Pool { store: self.clone(), range: Some(0..=0) })
            .state_dir(folder.path())
            .clock(Arc::new(ManualClock::at(START)))
            .drive(Drive::ByHand)
    }
}

impl KvStore for Raised {
    fn describe(&self) -> String {
        "raised".into()
    }
    fn timing(&self) -> Timing {
        Timing::ONE_HOST
    }
    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.call();
        self.store.list(area)
    }
    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        self.call();
        self.store.get(area, key)
    }
    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        self.call();
        self.store.put_if(area, key, old, new)
    }
}

/// Claims with the floor raised before each call in turn, until there are no more calls.
fn each_step(present: bool, ahead: Duration, check: impl Fn(&Arc<Raised>, u64, Builder)) {
    let floor = position(UnixMillis(START.0 + u64::try_from(ahead.as_millis()).unwrap())) + 7;
    for before in 0.. {
        let store = Raised::new(present, floor, before);
        let folder = tempfile::tempdir().unwrap();
        check(&store, floor, store.builder(&folder));
        if store.calls() <= before {
            assert!(before >= 4, "the floor was raised between any two of {before} calls");
            return;
        }
    }
}

/// The first ID lies at or above a floor that was raised at any moment before the claim was complete.
fn starts_above_a_floor_four_seconds_ahead(present: bool) {
    each_step(present, Duration::from_secs(4), |store, floor, builder| {
        let service = builder.build().unwrap();
        let raised = store.calls() > store.before;
        let id = LAYOUT.unpack(service.gen_id().unwrap()).unwrap();
        let first = id.time << LAYOUT.spec().seq_bits | id.seq;
        assert!(first >= floor || !raised, "before call {}", store.before);
    });
}

#[test]
fn a_claim_of_a_record_starts_above_a_floor_that_was_raised_meanwhile() {
    starts_above_a_floor_four_seconds_ahead(true);
}

#[test]
fn a_first_claim_starts_above_a_floor_that_was_raised_meanwhile() {
    starts_above_a_floor_four_seconds_ahead(false);
}

#[test]
fn a_floor_far_ahead_leaves_no_claim_behind() {
    for present in [true, false] {
        each_step(present, Duration::from_secs(3600), |store, floor, builder| {
            let built = builder.build();
            if store.calls() <= store.before {
                return; // it was complete before
            }
            let error = match built {
                Err(error @ BuildError::Exhausted { .. }) => error.to_string(),
                _ => panic!("it was not refused, before call {}", store.before),
            };
            assert!(error.contains("used up to"), "{error}");
            let record = leases(&store.store).record(0).unwrap().unwrap_or_default();
            assert_eq!(record.owner, 0, "before call {}", store.before);
            assert!(record.bound < floor, "it bought nothing beyond the clock");
        });
    }
}
