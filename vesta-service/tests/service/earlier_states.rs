//! Stores that refuse for a while, and stores that are rolled back under running processes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::common::leases;
use crate::common::setting::Setting;
use vesta_service::clock::Clock as _;
use vesta_service::lease::{KvStore as _, Timing};
use vesta_service::options::Drive;
use vesta_service::testing::{FlakyStore, MemoryStore};
use vesta_service::{BuildError, ErrorKind, IdMeta, LocalIdService, MachineSource};

const SECOND: Duration = Duration::from_secs(1);
const AREA: &str = "lease/default";

/// The entries of the store, to which it can be rolled back.
struct Backup(Vec<(String, String)>);

impl Backup {
    fn of(memory: &MemoryStore) -> Self {
        Self(memory.list(AREA).expect("memory"))
    }

    fn restore(&self, memory: &MemoryStore) {
        memory.forget();
        for (key, value) in &self.0 {
            assert!(memory.put_if(AREA, key, None, value).expect("memory"));
        }
    }
}

/// Another host that uses the same store over a second connection.
fn elsewhere(setting: &Setting) -> Setting {
    let memory = setting.memory.clone();
    Setting {
        store: FlakyStore::new(memory),
        ..setting.elsewhere()
    }
}

fn position(id: u64) -> u64 {
    let id = IdMeta::MAX_PEAK.unpack(id).expect("an ID of the layout");
    id.time << 20 | id.seq
}

/// Takes IDs and keeps the lease for some seconds; none repeats.
fn run(service: &LocalIdService, setting: &Setting, seconds: u32, known: &mut BTreeSet<u64>) {
    for _ in 0..seconds {
        setting.clock.advance(SECOND);
        service.maintain();
        for _ in 0..10 {
            assert!(
                known.insert(service.try_gen_id().expect("a lease")),
                "an ID came twice"
            );
        }
    }
}

#[test]
fn a_refused_owner_issues_up_to_its_bound_and_recovers_its_lease() {
    let setting = Setting::new();
    let service = setting.start();
    let (machine, mut known) = (service.machine(), BTreeSet::new());
    run(&service, &setting, 3, &mut known);
    let bound = setting.record(machine).bound;

    setting.store.set_refuses(true);
    let mut refused_at = None;
    for tenth in 0..600 {
        setting.clock.advance(SECOND / 10);
        service.maintain();
        match service.try_gen_id() {
            Ok(id) => assert!(refused_at.is_none() && position(id) < bound),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::AwaitingLease, "{error}");
                refused_at.get_or_insert(tenth);
            }
        }
    }
    let refused_at = refused_at.expect("the window ends");
    assert!(
        (30..=60).contains(&refused_at),
        "refused after {refused_at} tenths of a second"
    );
    let because = service
        .status()
        .all
        .not_ready_because
        .clone()
        .expect("it is not ready");
    assert!(because.contains("UPDATE command denied"), "{because}");

    setting.store.set_refuses(false);
    let renewal = Timing::ONE_HOST.renew_every;
    setting.clock.advance(renewal);
    service.maintain();
    assert!(known.insert(service.try_gen_id().expect("within one renewal")));
    let status = service.status();
    assert_eq!(
        (status.fenced_total, status.rehomed_total, status.epoch),
        (0, 0, 1)
    );
    assert_eq!((service.machine(), &status.sealed), (machine, &None));
}

#[test]
fn a_starting_process_ends_at_once_if_refused() {
    let setting = Setting::new();
    setting.store.set_refuses(true);
    let refused = setting.try_start().expect_err("refused");
    assert!(matches!(refused, BuildError::Store { .. }), "{refused}");
}

/// The state directory is not writable, so only the process's own memory is left.
#[test]
fn a_process_repeats_nothing_when_its_store_is_rolled_back() {
    let setting = Setting::new();
    let file = setting.folder.path().join("not-a-folder");
    std::fs::write(&file, "").expect("a file");
    let service = setting
        .builder()
        .state_dir(file.join("state"))
        .build()
        .expect("a machine ID");
    let mut known = BTreeSet::new();
    let backup = Backup::of(&setting.memory);
    run(&service, &setting, 8, &mut known);

    backup.restore(&setting.memory);
    setting.clock.advance(2 * SECOND);
    service.maintain();
    assert_eq!(service.status().went_back_total, 1);
    run(&service, &setting, 5, &mut known);
    assert_eq!(service.status().rehomed_total, 1);
}

#[test]
fn the_first_owner_to_notice_raises_the_floor_above_its_ids() {
    let setting = Setting::new();
    let service = setting.start();
    let mut known = BTreeSet::new();
    let backup = Backup::of(&setting.memory);
    run(&service, &setting, 8, &mut known);
    let last = position(*known.last().expect("IDs"));

    backup.restore(&setting.memory);
    setting.clock.advance(2 * SECOND);
    service.maintain();
    let floor = leases(&setting.memory)
        .find()
        .expect("memory")
        .expect("a namespace")
        .floor;
    assert!(floor > last, "{floor} is not above {last}");
    // A clock that is behind: only the floor keeps the positions apart.
    let starter = elsewhere(&setting);
    let now = setting.clock.wall();
    starter
        .clock
        .set_wall(vesta_service::contract::UnixMillis(now.0 - 4_000));
    let successor = starter.start();
    for _ in 0..100 {
        assert!(
            known.insert(successor.gen_id().expect("an ID")),
            "an ID came twice"
        );
    }
}

/// The floor that it raised is forgotten too.
#[test]
fn a_process_forgotten_twice_reports_it_instead_of_repeating() {
    let setting = Setting::new();
    let service = setting
        .builder()
        .state_dir("/dev/null/state")
        .build()
        .expect("a machine ID");
    let mut known = BTreeSet::new();
    let backup = Backup::of(&setting.memory);
    run(&service, &setting, 8, &mut known);

    // Whenever the floor is raised, the store forgets it at once.
    let (memory, clock) = (setting.memory.clone(), setting.clock.clone());
    backup.restore(&memory);
    clock.advance(2 * SECOND);
    for request in 0..40 {
        let (memory, entries) = (memory.clone(), Backup(backup.0.clone()));
        setting
            .store
            .after(request, move || entries.restore(&memory));
    }
    service.maintain();
    assert!(service.try_gen_id().is_err());
    let because = service
        .status()
        .all
        .not_ready_because
        .clone()
        .expect("it is not ready");
    assert!(
        because.contains("has forgotten that machine ID"),
        "{because}"
    );
}

/// Services of one process share its memory, on the system's clock.
#[test]
fn a_process_remembers_its_positions_after_its_service_ends() {
    let memory = Arc::new(MemoryStore::new());
    let pool = || {
        LocalIdService::builder()
            .machine(MachineSource::Pool {
                store: memory.clone(),
                range: Some(3..=3),
            })
            .state_dir("/dev/null/state")
            .drive(Drive::ByHand)
            .build()
    };
    let first = pool().expect("a machine ID");
    let backup = Backup::of(&memory);
    for _ in 0..100 {
        first.gen_id().expect("an ID");
    }
    drop(first);
    memory.forget();
    let entries: Vec<_> = backup
        .0
        .iter()
        .filter(|(key, _)| key != "3")
        .cloned()
        .collect();
    Backup(entries).restore(&memory);
    let refused = pool().expect_err("the store forgot the record");
    assert!(
        matches!(refused, BuildError::StoreRegressed { machine: 3, .. }),
        "{refused}"
    );
}

/// A window of ten minutes next to a process with the usual one, and a fail-over that loses a renewal.
#[test]
fn the_distance_covers_the_longest_window_in_the_namespace() {
    let minutes = Timing {
        window: 600 * SECOND,
        renew_every: 100 * SECOND,
        takeover_grace: 1_800 * SECOND,
        ..Timing::ONE_HOST
    };
    let setting = Setting::new();
    let service = setting
        .builder()
        .timing(minutes)
        .build()
        .expect("a machine ID");
    let machine = service.machine();
    let ahead = |setting: &Setting| {
        let tick = IdMeta::MAX_PEAK
            .tick_at(setting.clock.wall())
            .expect("inside");
        (setting.record(machine).bound >> 20) - tick
    };
    assert!(
        ahead(&setting) <= 15,
        "{} s before it was announced",
        ahead(&setting)
    );
    for _ in 0..120 {
        setting.clock.advance(10 * SECOND);
        service.maintain();
    }
    assert!(ahead(&setting) > 400, "{} s", ahead(&setting));
    let replica = Backup::of(&setting.memory);
    setting.clock.advance(110 * SECOND);
    service.maintain();
    let bound = setting.record(machine).bound;

    replica.restore(&setting.memory);
    let other = elsewhere(&setting);
    other.store.set_doubt();
    let successor = other.start();
    let record = other.record(successor.machine());
    assert!(
        record.from >= bound,
        "{} s too early",
        (bound - record.from) >> 20
    );
}
