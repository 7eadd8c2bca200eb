//! A floor raised by an operator while a machine ID is being claimed.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{START, leases, put};
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{KvStore as _, Record};
use vesta_service::options::Drive;
use vesta_service::testing::{FlakyStore, ManualClock, MemoryStore};
use vesta_service::{BuildError, Builder, IdMeta, LocalIdService, MachineSource};

const LAYOUT: IdMeta = IdMeta::MAX_PEAK;
const SECOND: u64 = 1000;

fn position(moment: UnixMillis) -> u64 {
    LAYOUT.tick_at(moment).unwrap() << LAYOUT.spec().seq_bits
}

/// A claim of machine ID 0, with the floor raised after a given number of its requests.
struct Raised {
    memory: Arc<MemoryStore>,
    store: Arc<FlakyStore>,
    floor: u64,
    after: u64,
    folder: tempfile::TempDir,
}

impl Raised {
    /// With a free record of machine ID 0, or without any.
    fn new(present: bool, floor: u64, after: u64) -> Self {
        let memory = Arc::new(MemoryStore::new());
        let namespace = leases(&memory).open(&LAYOUT.fingerprint()).unwrap().uuid;
        if present {
            let bound = position(UnixMillis(START.0 - 60 * SECOND));
            let free = Record {
                namespace,
                epoch: 1,
                bound,
                released: true,
                ..Record::default()
            };
            put(&leases(&memory), 0, &free);
        }
        let store = FlakyStore::new(memory.clone());
        let raised = leases(&memory);
        store.after(after, move || {
            assert_eq!(raised.raise_floor(floor).unwrap(), floor)
        });
        store.after(50, || panic!("it asks again and again"));
        Self {
            memory,
            store,
            floor,
            after,
            folder: vesta_testkit::fast_folder(),
        }
    }

    fn builder(&self) -> Builder {
        LocalIdService::builder()
            .layout(LAYOUT)
            .machine(MachineSource::Pool {
                store: self.store.clone(),
                range: Some(0..=0),
            })
            .state_dir(self.folder.path())
            .clock(Arc::new(ManualClock::at(START)))
            .drive(Drive::ByHand)
    }

    /// True if the claim was not complete before the floor was raised.
    fn is_raised(&self) -> bool {
        self.store.asked() > self.after
    }
}

/// Claims with the floor raised before each request in turn, until the claim makes no more requests.
fn each_step(present: bool, ahead: Duration, check: impl Fn(&Raised)) {
    let floor = position(UnixMillis(
        START.0 + u64::try_from(ahead.as_millis()).unwrap(),
    )) + 7;
    for after in 0.. {
        let raised = Raised::new(present, floor, after);
        check(&raised);
        if !raised.is_raised() {
            assert!(
                after >= 4,
                "the floor was raised between any two of {after} requests"
            );
            return;
        }
    }
}

/// The first ID is at or above a floor that was raised at any moment before the claim was complete.
fn starts_above_a_floor_four_seconds_ahead(present: bool) {
    each_step(present, Duration::from_secs(4), |raised| {
        let service = raised.builder().build().unwrap();
        let in_time = raised.is_raised();
        let id = LAYOUT.unpack(service.gen_id().unwrap()).unwrap();
        let first = id.time << LAYOUT.spec().seq_bits | id.seq;
        assert!(
            first >= raised.floor || !in_time,
            "after {} requests",
            raised.after
        );
    });
}

#[test]
fn a_claim_of_a_record_starts_above_a_floor_raised_meanwhile() {
    starts_above_a_floor_four_seconds_ahead(true);
}

#[test]
fn a_first_claim_starts_above_a_floor_raised_meanwhile() {
    starts_above_a_floor_four_seconds_ahead(false);
}

#[test]
fn a_floor_far_ahead_leaves_no_claim_behind() {
    for present in [true, false] {
        each_step(present, Duration::from_secs(3600), |raised| {
            let built = raised.builder().build();
            if !raised.is_raised() {
                return; // it was complete before the floor was raised
            }
            let error = match built {
                Err(error @ (BuildError::Exhausted { .. } | BuildError::FloorAhead { .. })) => {
                    error.to_string()
                }
                _ => panic!("it was not refused, after {} requests", raised.after),
            };
            let named = ["used up to", "the floor of namespace"];
            assert!(named.iter().any(|it| error.contains(it)), "{error}");
            let record = leases(&raised.memory)
                .record(0)
                .unwrap()
                .unwrap_or_default();
            assert_eq!(record.owner, 0, "after {} requests", raised.after);
            assert!(record.released || record.epoch == 0, "it was given back");
            assert!(
                record.bound <= position(START),
                "it bought nothing beyond the clock"
            );
        });
    }
}

/// Another process wipes and reopens the store: the claim grants nothing in the new namespace.
#[test]
fn a_claim_is_void_if_the_namespace_is_replaced_at_any_step() {
    let mut granted = 0;
    for after in 0..20 {
        let raised = Raised::new(true, 0, u64::MAX);
        let memory = raised.memory.clone();
        raised.store.after(after, move || {
            let area = "lease/default";
            let old = memory
                .get(area, "namespace")
                .unwrap()
                .expect("it was opened");
            let uuid = leases(&memory).find().unwrap().unwrap().uuid;
            let other = old.replace(&format!("{uuid:032x}"), &format!("{:032x}", 1));
            assert_ne!(old, other);
            assert!(
                memory
                    .put_if(area, "namespace", Some(&old), &other)
                    .unwrap()
            );
        });
        let Ok(service) = raised.builder().build() else {
            continue;
        };
        granted += 1;
        let record = leases(&raised.memory).record(0).unwrap().unwrap();
        let namespace = leases(&raised.memory).find().unwrap().unwrap();
        assert!(
            raised.store.asked() <= after || record.namespace == namespace.uuid,
            "{after}"
        );
        drop(service);
    }
    assert!(granted > 0, "undisturbed, it is granted");
}
