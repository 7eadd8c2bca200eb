//! Namespaces of many machine IDs: a claim reads a part of them, and goes on while it finds none there.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::common::{START, leases};
use tempfile::TempDir;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{ClaimOrder, Record, Timing};
use vesta_service::options::Drive;
use vesta_service::testing::{Answer, Intercept, ManualClock, MemoryStore};
use vesta_service::{BuildError, IdMeta, LocalIdService, MachineSource};

/// 22 bits of machine ID.
const LAYOUT: IdMeta = IdMeta::UID;
const LONG_AGO: UnixMillis = UnixMillis(START.0 - 3_600_000);
const SOON: UnixMillis = UnixMillis(START.0 + 40_000);

struct Fleet {
    memory: Arc<MemoryStore>,
    uuid: u128,
    read: Arc<AtomicUsize>,
    folder: TempDir,
}

impl Fleet {
    fn new() -> Self {
        let memory = Arc::new(MemoryStore::new());
        let namespace = leases(&memory).open(&LAYOUT.fingerprint()).expect("memory");
        Self {
            memory,
            uuid: namespace.uuid,
            read: Arc::default(),
            folder: vesta_testkit::fast_folder(),
        }
    }

    /// Other hosts hold these machine IDs until a moment.
    fn held(self, machines: impl IntoIterator<Item = u64>, until: UnixMillis) -> Self {
        let leases = leases(&self.memory);
        let seen = leases.snapshot().expect("memory");
        let bound = LAYOUT.tick_at(until).expect("inside") << 13;
        for machine in machines {
            let record = Record {
                namespace: self.uuid,
                birth: machine + 1,
                epoch: 1,
                owner: 7,
                bound,
                ..Record::default()
            };
            leases.change(machine, None, &record).expect("memory");
            assert!(leases.mark_birth(&seen, machine, &record).expect("memory"));
        }
        self
    }

    fn start(
        &self,
        range: RangeInclusive<u64>,
        order: ClaimOrder,
    ) -> Result<LocalIdService, BuildError> {
        let read = self.read.clone();
        let store = Intercept::new(self.memory.clone(), move |request, store| {
            let answer = request.send(store)?;
            read.fetch_add(
                match &answer {
                    Answer::Entries(entries) => entries.len(),
                    Answer::Value(_) => 1,
                    _ => 0,
                },
                Relaxed,
            );
            Ok(answer)
        });
        LocalIdService::builder()
            .layout(LAYOUT)
            .machine(MachineSource::Pool {
                store: Arc::new(store.timing(Timing::NETWORK)),
                range: Some(range),
            })
            .claim_order(order)
            .state_dir(self.folder.path())
            .clock(Arc::new(ManualClock::at(START)))
            .drive(Drive::ByHand)
            .build()
    }

    fn machine(&self, range: RangeInclusive<u64>) -> u64 {
        let service = self.start(range, ClaimOrder::Stable);
        service.expect("a machine ID is free").machine()
    }
}

/// Entries that a claim reads: the records of a part, its marks, and the namespace three times.
const MOST: usize = 64 + 1 + 3;

/// 61 % are in use, and no part is full.
#[test]
fn a_claim_among_10_000_members_reads_one_part() {
    let members = (0..10_000).map(|at| at * 6151 % 16_384);
    let mut fleet = Fleet::new().held(members, SOON);
    for _ in 0..20 {
        fleet.folder = vesta_testkit::fast_folder(); // another host
        fleet.read.store(0, Relaxed);
        fleet.machine(0..=16_383);
        let read = fleet.read.load(Relaxed);
        assert!(read <= MOST, "{read} entries");
    }
}

#[test]
fn a_claim_leaps_over_full_parts_of_a_namespace_with_16_660_records() {
    let fleet = Fleet::new().held(0..16_660, SOON);
    for place in 0..4 {
        // The range's last blocks have room, and the search may begin there.
        let range = 16_384..=17_407 + 1024 * place;
        fleet.read.store(0, Relaxed);
        let machine = fleet.machine(range.clone());
        assert!(machine >= 16_660 && range.contains(&machine), "{machine}");
        let read = fleet.read.load(Relaxed);
        assert!(read <= 6 * MOST, "{read} entries");
    }
    let snapshot = leases(&fleet.memory).snapshot().expect("memory");
    assert!(snapshot.records.len() > 16_660);
    assert!(snapshot.lost().is_empty());
}

#[test]
fn a_full_block_leads_to_the_next_one() {
    let fleet = Fleet::new().held((0..4096).filter(|machine| *machine != 2050), SOON);
    let last = fleet
        .start(0..=4095, ClaimOrder::Stable)
        .expect("one is free");
    assert_eq!(last.machine(), 2050);
    let error = fleet.start(0..=4095, ClaimOrder::Stable).unwrap_err();
    let BuildError::Exhausted { holders, range, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(holders.len(), 4096);
    assert_eq!(range, 0..=4095);
}

#[test]
fn the_lowest_free_machine_id_may_lie_in_a_later_block() {
    let fleet = Fleet::new().held(0..1500, SOON);
    let service = fleet.start(0..=5000, ClaimOrder::Lowest).expect("free");
    assert_eq!(service.machine(), 1500);
}

#[test]
fn a_host_finds_its_machine_id_in_its_block() {
    let fleet = Fleet::new();
    let first = fleet.machine(0..=1 << 20);
    for _ in 0..3 {
        assert_eq!(fleet.machine(0..=1 << 20), first);
    }
}

/// A part is read for the machine ID that is claimed, and with it every record that this host remembers in its block.
#[test]
fn a_record_that_the_store_forgot_is_noticed_in_another_part() {
    let fleet = Fleet::new();
    let ranges = [0..=63, 960..=1023];
    let [first, last] = ranges.map(|range| fleet.machine(range));
    assert_eq!(fleet.machine(0..=1023), first, "both are known");
    fleet.memory.delete("lease/default", &last.to_string());
    let error = fleet.start(0..=1023, ClaimOrder::Stable).unwrap_err();
    let BuildError::StoreRegressed { machine, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(machine, last);
}

/// One expired owner, and one within its grace in another block.
#[test]
fn an_owner_within_its_grace_is_replaced_only_if_no_block_has_another_candidate() {
    let in_grace = UnixMillis(START.0 - 60_000);
    for (expired, graced) in [(100, 3000), (3000, 100), (1030, 1031)] {
        let others = (0..4096).filter(|machine| ![expired, graced].contains(machine));
        let fleet = Fleet::new()
            .held(others, SOON)
            .held([expired], LONG_AGO)
            .held([graced], in_grace);
        let first = fleet.start(0..=4095, ClaimOrder::Stable).expect("expired");
        assert_eq!(first.machine(), expired);
        let second = fleet.start(0..=4095, ClaimOrder::Stable).expect("in grace");
        assert_eq!(second.machine(), graced);
    }
}

#[test]
fn several_machine_ids_are_claimed_from_several_blocks() {
    let free = [1023, 1024, 2000, 4000];
    let fleet = Fleet::new().held((0..4096).filter(|machine| !free.contains(machine)), SOON);
    let store = fleet.memory.clone();
    let service = LocalIdService::builder()
        .layout(LAYOUT)
        .machine(MachineSource::Pool {
            store,
            range: Some(0..=4095),
        })
        .machine_count(4)
        .state_dir(fleet.folder.path())
        .clock(Arc::new(ManualClock::at(START)))
        .drive(Drive::ByHand)
        .build()
        .expect("four are free");
    let mut machines: Vec<_> = service.machines().iter().map(|it| it.machine).collect();
    machines.sort_unstable();
    assert_eq!(machines, free);
}

#[test]
fn a_record_deleted_from_a_later_block_is_noticed() {
    let fleet = Fleet::new().held(0..2048, SOON);
    fleet.memory.delete("block/default/1", "1500");
    let snapshot = leases(&fleet.memory).snapshot().expect("memory");
    assert_eq!(Vec::from_iter(snapshot.lost()), [1500]);
    let error = fleet.start(0..=2047, ClaimOrder::Stable).unwrap_err();
    assert!(matches!(error, BuildError::Exhausted { .. }), "{error}");
}
