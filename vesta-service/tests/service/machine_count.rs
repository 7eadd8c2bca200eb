//! A service with several machine IDs.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::common::{START, leases};
use vesta_service::lease::Record;
use vesta_service::options::{Drive, PopulatorKind};
use vesta_service::testing::{ManualClock, MemoryStore};
use vesta_service::{BuildError, ErrorKind, IdMeta, LocalIdService, MachineSource};

struct Setting {
    store: Arc<MemoryStore>,
    clock: ManualClock,
    folder: tempfile::TempDir,
}

impl Setting {
    fn new() -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            clock: ManualClock::at(START),
            folder: vesta_testkit::fast_folder(),
        }
    }

    fn start(&self, layout: IdMeta, count: usize) -> Result<LocalIdService, BuildError> {
        LocalIdService::builder()
            .layout(layout)
            .machine(MachineSource::Pool {
                store: self.store.clone(),
                range: Some(0..=5),
            })
            .machine_count(count)
            .state_dir(self.folder.path())
            .pacing(false)
            .clock(Arc::new(self.clock.clone()))
            .drive(Drive::ByHand)
            .build()
    }

    fn steal(&self, machine: u64) {
        let record = leases(&self.store).record(machine).unwrap().unwrap();
        let (epoch, from) = (record.epoch + 1, record.bound);
        let thief = Record {
            epoch,
            owner: 99,
            from,
            attempt: 1,
            ..record.clone()
        };
        leases(&self.store)
            .change(machine, Some(&record), &thief)
            .unwrap();
    }
}

#[test]
fn capacity_multiplies_and_each_machine_id_strictly_increases() {
    for layout in [IdMeta::MAX_PEAK, IdMeta::MIN_GRANULARITY] {
        let setting = Setting::new();
        let service = setting.start(layout, 4).unwrap();
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        let mut taken = 0;
        let refused = loop {
            match service.try_gen_id() {
                Ok(id) => {
                    let machine = service.exp_id(id).unwrap().machine;
                    assert!(last.insert(machine, id).is_none_or(|last| last < id));
                    taken += 1;
                }
                Err(error) => break error,
            }
        };
        assert_eq!(
            taken,
            4 << layout.spec().seq_bits,
            "four times the tick of one machine ID"
        );
        assert_eq!(refused.kind(), ErrorKind::SequenceUsedUp);
        assert_eq!(
            last.keys().copied().collect::<Vec<_>>(),
            service.status().machines.sorted()
        );
    }
}

trait Sorted {
    fn sorted(self) -> Self;
}

impl Sorted for Vec<u64> {
    fn sorted(mut self) -> Self {
        self.sort_unstable();
        self
    }
}

#[test]
fn a_batch_larger_than_a_tick_ascends_without_repeats() {
    let setting = Setting::new();
    let service = setting.start(IdMeta::MIN_GRANULARITY, 3).unwrap();
    let mut batch = vec![0; 5_000];
    assert_eq!(service.try_gen_ids(&mut batch).unwrap(), 3 * 960);
    assert!(batch[..3 * 960].is_sorted_by(|a, b| a < b));
    service.gen_ids(&mut batch).unwrap();
    assert!(batch.is_sorted_by(|a, b| a < b));
}

#[test]
fn threads_are_spread_and_nothing_repeats() {
    for populator in PopulatorKind::ALL {
        let setting = Setting::new();
        let layout = IdMeta::MAX_PEAK;
        let service = LocalIdService::builder()
            .layout(layout)
            .populator(populator)
            .machine(MachineSource::Pool {
                store: setting.store.clone(),
                range: Some(0..=5),
            })
            .machine_count(4)
            .state_dir(setting.folder.path())
            .clock(Arc::new(setting.clock.clone()))
            .drive(Drive::ByHand)
            .build()
            .unwrap();
        let ids: Vec<Vec<u64>> = std::thread::scope(|scope| {
            let start = || {
                (0..5_000)
                    .map(|_| service.gen_id().unwrap())
                    .collect::<Vec<_>>()
            };
            let workers: Vec<_> = (0..16).map(|_| scope.spawn(start)).collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap())
                .collect()
        });
        let lines: HashSet<u64> = ids
            .iter()
            .map(|of| service.exp_id(of[0]).unwrap().machine)
            .collect();
        assert_eq!(
            lines.len(),
            4,
            "threads started one after another begin on different machine IDs"
        );
        let all: HashSet<u64> = ids.into_iter().flatten().collect();
        assert_eq!(all.len(), 80_000);
    }
}

#[test]
fn losing_a_machine_id_costs_its_share_until_it_is_replaced() {
    let setting = Setting::new();
    let service = setting.start(IdMeta::MAX_PEAK, 4).unwrap();
    let lost = service.machine();
    setting.steal(lost);
    setting.clock.advance(Duration::from_secs(2));
    for _ in 0..1000 {
        service.try_gen_id().expect("the others go on");
    }
    service.maintain();
    let status = service.status();
    assert!(
        status.ready && !status.machines.contains(&lost),
        "{status:?}"
    );
    assert_eq!((status.fenced_total, status.rehomed_total), (1, 1));
    let lines = service.machines();
    assert_eq!(
        lines.iter().filter(|line| line.fenced_total == 1).count(),
        1
    );
    assert!(lines.iter().all(|line| line.ready));
}

#[test]
fn claims_are_given_back_when_the_pool_is_too_small() {
    let setting = Setting::new();
    let refused = setting.start(IdMeta::MAX_PEAK, 7).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("every machine ID of 0 to 5 is in use"),
        "{refused}"
    );
    let held = leases(&setting.store).snapshot().unwrap().records;
    assert!(held.iter().all(|(_, record)| record.owner == 0), "{held:?}");
    setting
        .start(IdMeta::MAX_PEAK, 6)
        .expect("they are free again");
}

#[test]
fn only_a_pool_provides_several_machine_ids() {
    let folder = vesta_testkit::fast_folder();
    for (source, count) in [
        (MachineSource::Fixed(1), 2),
        (MachineSource::Stateless(1), 3),
        (MachineSource::Fixed(1), 0),
    ] {
        let refused = LocalIdService::builder()
            .machine(source)
            .machine_count(count)
            .state_dir(folder.path())
            .build()
            .unwrap_err();
        assert!(refused.is_configuration(), "{refused}");
        assert!(refused.to_string().contains("machine count"), "{refused}");
    }
}

#[test]
fn a_restart_reclaims_all_its_machine_ids() {
    let setting = Setting::new();
    let first = setting.start(IdMeta::MAX_PEAK, 3).unwrap();
    let had = first.status().machines.sorted();
    let before: Vec<u64> = (0..3000).map(|_| first.gen_id().unwrap()).collect();
    drop(first);
    let second = setting.start(IdMeta::MAX_PEAK, 3).unwrap();
    assert_eq!(second.status().machines.sorted(), had);
    let after: HashSet<u64> = (0..3000).map(|_| second.gen_id().unwrap()).collect();
    assert!(before.iter().all(|id| !after.contains(id)));
}
