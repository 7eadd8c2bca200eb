//! A fixed machine ID and its state file: restarts, damage, and conflicting owners.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::common::{START, generating_layouts};
use vesta_intf::Field;
use vesta_service::clock::{Clock as _, ClockKind};
use vesta_service::contract::UnixMillis;
use vesta_service::options::{Drive, PopulatorKind};
use vesta_service::testing::ManualClock;
use vesta_service::{BuildError, IdMeta, LocalIdService, MachineSource};
use vesta_testkit::namespace_of;

fn file(folder: &Path) -> PathBuf {
    folder.join(format!("{}-7.state", namespace_of(folder)))
}

fn start(folder: &Path, clock: &ManualClock) -> Result<LocalIdService, BuildError> {
    LocalIdService::builder()
        .namespace(namespace_of(folder))
        .machine(MachineSource::Fixed(7))
        .state_dir(folder)
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build()
}

/// Stops a service as `kill -9` does: nothing is released, but the lock is dropped.
fn kill(folder: &Path, service: LocalIdService) {
    kill_with(&file(folder), service);
}

fn kill_with(file: &Path, service: LocalIdService) {
    let state = fs::read(file).unwrap();
    drop(service);
    fs::write(file, state).unwrap();
}

fn position(service: &LocalIdService, id: u64) -> u64 {
    let id = service.exp_id(id).unwrap();
    id.time << 20 | id.seq
}

#[test]
fn after_a_kill_a_restart_in_the_same_second_starts_at_the_bound() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let mut last = 0;
    for _ in 0..10 {
        let service = start(folder.path(), &clock).unwrap();
        for _ in 0..1000 {
            let id = service.gen_id().unwrap();
            assert!(id > last);
            last = id;
        }
        assert!(
            service.status().lead <= Duration::from_secs(5),
            "{:?}",
            service.status()
        );
        kill(folder.path(), service);
    }
}

#[test]
fn after_a_clean_stop_it_continues_without_waiting() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let mut last = None;
    for _ in 0..100 {
        let service = start(folder.path(), &clock).unwrap();
        let at = position(&service, service.gen_id().unwrap());
        if let Some(last) = last {
            assert_eq!(at, last + 1, "not one position is lost");
        }
        last = Some(at);
        drop(service);
    }
    assert_eq!(clock.wall(), START, "no time has passed");
}

/// Kills and clean stops in turn, with the clock standing still, advancing and set back a little.
#[test]
fn every_layout_continues_above_its_ids_after_each_restart() {
    for layout in generating_layouts() {
        let folder = vesta_testkit::fast_folder();
        let machine = layout.max(Field::Machine);
        let namespace = namespace_of(folder.path());
        let file = folder.path().join(format!("{namespace}-{machine}.state"));
        let clock = ManualClock::at(START);
        let mut last = 0;
        for life in 0..12 {
            let service = LocalIdService::builder()
                .layout(layout)
                .populator(PopulatorKind::ALL[life % 3])
                .clock_kind(ClockKind::ALL[life % 2])
                .pacing(life % 5 == 4)
                .borrow_ahead(Duration::from_millis([0, 1000, 3000][life % 3]))
                .namespace(&namespace)
                .machine(MachineSource::Fixed(machine))
                .state_dir(folder.path())
                .clock(Arc::new(clock.clone()))
                .drive(Drive::ByHand)
                .build()
                .unwrap();
            for _ in 0..300 {
                let id = service.gen_id().unwrap();
                assert!(id > last, "{id} after {last}: {layout}, life {life}");
                last = id;
            }
            assert_eq!(service.exp_id(last).unwrap().machine, machine);
            match life % 2 {
                0 => kill_with(&file, service),
                _ => drop(service),
            }
            match life % 3 {
                0 => {}
                1 => clock.advance(Duration::from_millis(3)),
                _ => clock.set_wall(UnixMillis(clock.wall().0 - 1500)),
            }
        }
    }
}

#[test]
fn with_the_clock_set_back_across_a_restart_the_bound_decides() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let service = start(folder.path(), &clock).unwrap();
    let before = service.gen_id().unwrap();
    kill(folder.path(), service);

    clock.set_wall(UnixMillis(START.0 - 20_000));
    let service = start(folder.path(), &clock).unwrap();
    assert!(service.gen_id().unwrap() > before);
    assert!(
        clock.wall().0 > START.0 - 20_000 + 10_000,
        "it waited for the clock"
    );
    kill(folder.path(), service);

    clock.set_wall(UnixMillis(START.0 - 86_400_000));
    let error = start(folder.path(), &clock).unwrap_err();
    assert!(error.to_string().contains("set the clock"), "{error}");
}

/// Damaging any single byte, or cutting the file anywhere: either the next IDs are above all issued
/// ones, or the start is refused.
#[test]
fn damage_at_any_offset_never_causes_repetition_or_a_fresh_start() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let service = start(folder.path(), &clock).unwrap();
    clock.advance(Duration::from_secs(2));
    service.maintain(); // so that the second slot also holds a bound that was in use
    let last = service.gen_id().unwrap();
    kill(folder.path(), service);
    let good = fs::read(file(folder.path())).unwrap();
    assert_eq!(good.len(), 2048);

    let (mut refused, mut started) = (0, 0);
    let mut restart_with = |bytes: &[u8], what: String| {
        fs::write(file(folder.path()), bytes).unwrap();
        clock.set_wall(UnixMillis(START.0 + 2_000));
        match start(folder.path(), &clock) {
            Ok(service) => {
                started += 1;
                assert!(service.gen_id().unwrap() > last, "{what}");
            }
            Err(BuildError::Damaged(_)) => refused += 1,
            Err(other) => panic!("{what}: {other}"),
        }
    };
    for at in 0..good.len() {
        let mut flipped = good.clone();
        flipped[at] ^= 0x10;
        restart_with(&flipped, format!("flipped at {at}"));
        restart_with(&good[..at], format!("cut at {at}"));
    }
    assert_eq!(
        refused, 1024,
        "both slots are gone when the file is cut inside the first"
    );
    assert_eq!(started, 2048 + 1024);
}

#[test]
fn an_empty_or_foreign_file_is_refused_with_instructions() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    fs::write(file(folder.path()), b"").unwrap();
    let error = start(folder.path(), &clock).unwrap_err();
    assert!(error.is_configuration());
    assert!(error.to_string().contains("damaged or empty"), "{error}");

    fs::write(file(folder.path()), vec![b'x'; 2048]).unwrap();
    assert!(
        start(folder.path(), &clock)
            .unwrap_err()
            .to_string()
            .contains("damaged")
    );
    fs::remove_file(file(folder.path())).unwrap();

    drop(start(folder.path(), &clock).unwrap());
    let namespace = namespace_of(folder.path());
    let other_layout = LocalIdService::builder()
        .namespace(&namespace)
        .layout(IdMeta::MIN_GRANULARITY)
        .machine(MachineSource::Fixed(7))
        .state_dir(folder.path())
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build();
    let error = other_layout.unwrap_err();
    assert!(matches!(error, BuildError::Foreign { .. }), "{error}");

    fs::rename(
        file(folder.path()),
        folder.path().join(format!("{namespace}-8.state")),
    )
    .unwrap();
    let renamed = LocalIdService::builder()
        .namespace(&namespace)
        .machine(MachineSource::Fixed(8))
        .state_dir(folder.path())
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build();
    let error = renamed.unwrap_err().to_string();
    assert!(error.contains("belongs to machine ID 7"), "{error}");
}

#[test]
fn the_same_fixed_id_twice_is_refused_even_within_a_process() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let first = start(folder.path(), &clock).unwrap();
    let error = start(folder.path(), &clock).unwrap_err();
    assert!(
        matches!(error, BuildError::BuiltTwice { machine: 7, .. }),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("of this very process; build one and share it")
    );
    assert!(error.is_configuration());
    drop(first);
    start(folder.path(), &clock).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_fixed_id_in_two_state_folders_of_a_host_is_refused() {
    let folders = [(); 2].map(|()| vesta_testkit::fast_folder());
    let namespace = namespace_of(folders[0].path());
    let clock = ManualClock::at(START);
    let start = |folder: &Path, namespace: &str| {
        LocalIdService::builder()
            .namespace(namespace)
            .machine(MachineSource::Fixed(7))
            .state_dir(folder)
            .clock(Arc::new(clock.clone()))
            .drive(Drive::ByHand)
            .build()
    };
    let [one, two] = [0, 1].map(|number| folders[number].path());
    let first = start(one, &namespace).unwrap();
    let error = start(two, &namespace).unwrap_err();
    assert!(error.is_configuration());
    let expected = format!(
        "machine ID 7 of namespace `{namespace}` is in use by another service of this very process"
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
    start(two, &namespace_of(two)).expect("another namespace");
    first.gen_id().unwrap();
    drop(first);
    start(two, &namespace).unwrap().gen_id().unwrap();
    start(one, &namespace).unwrap().gen_id().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_fixed_id_with_a_moved_folder_is_refused_while_its_owner_lives() {
    for moved in [true, false] {
        let folder = vesta_testkit::fast_folder();
        let clock = ManualClock::at(START);
        let first = start(folder.path(), &clock).unwrap();
        first.gen_id().unwrap();
        let file = file(folder.path());
        match moved {
            true => fs::rename(&file, folder.path().join("elsewhere")).unwrap(),
            false => fs::remove_file(&file).unwrap(),
        }
        let error = start(folder.path(), &clock).unwrap_err();
        assert!(
            matches!(error, BuildError::BuiltTwice { machine: 7, .. }),
            "{error}"
        );
    }
}

#[test]
fn an_unwritable_folder_is_a_clear_error() {
    let folder = vesta_testkit::fast_folder();
    let file_in_the_way = folder.path().join("file");
    fs::write(&file_in_the_way, b"").unwrap();
    let error = start(&file_in_the_way.join("sub"), &ManualClock::at(START)).unwrap_err();
    assert!(error.to_string().contains("cannot"), "{error}");
    assert!(!error.is_configuration());
}

#[test]
fn unusable_settings_are_refused() {
    let folder = vesta_testkit::fast_folder();
    let build = |machine| {
        LocalIdService::builder()
            .machine(machine)
            .state_dir(folder.path())
            .build()
            .unwrap_err()
    };
    let error = build(MachineSource::Fixed(1024));
    assert_eq!(
        error.to_string(),
        "machine ID must be 0 to 1023, but is 1024"
    );
    assert!(build(MachineSource::Stateless(1024)).is_configuration());
    let error = LocalIdService::builder().build().unwrap_err();
    assert!(
        error.to_string().contains("no machine ID is configured"),
        "{error}"
    );
    let error = LocalIdService::builder()
        .machine(MachineSource::Fixed(1))
        .namespace("../etc")
        .state_dir(folder.path())
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("namespace: `../etc`"), "{error}");
    let before_epoch = ManualClock::at(UnixMillis(1_000_000_000_000));
    let error = start(folder.path(), &before_epoch).unwrap_err();
    assert!(
        error.to_string().contains("before the layout's epoch"),
        "{error}"
    );
    let after_end = ManualClock::at(IdMeta::MAX_PEAK.end());
    let error = start(folder.path(), &after_end).unwrap_err();
    assert!(error.to_string().contains("run out"), "{error}");
}

#[test]
fn deleting_or_replacing_the_state_file_ends_the_service() {
    for replaced in [false, true] {
        let folder = vesta_testkit::fast_folder();
        let clock = ManualClock::at(START);
        let service = start(folder.path(), &clock).unwrap();
        service.gen_id().unwrap();
        let file = file(folder.path());
        let content = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        if replaced {
            fs::write(&file, content).unwrap();
        }
        clock.advance(Duration::from_secs(2));
        service.maintain();
        let error = service.gen_id().unwrap_err().to_string();
        assert!(error.contains("deleted or replaced"), "{error}");
        assert!(service.status().sealed.is_some());
        assert_eq!(service.status().renewals_failed, 1);
    }
}

/// Damage and a clock set back at once: an acknowledged bound is in both slots, so even the very
/// first bound is not lost with one of them.
#[test]
fn a_damaged_slot_loses_no_acknowledged_bound() {
    for at in [100, 612] {
        let folder = vesta_testkit::fast_folder();
        let clock = ManualClock::at(START);
        let service = start(folder.path(), &clock).unwrap();
        let last = service.gen_id().unwrap();
        kill(folder.path(), service);
        let mut state = fs::read(file(folder.path())).unwrap();
        state[at] ^= 1;
        fs::write(file(folder.path()), state).unwrap();
        clock.set_wall(UnixMillis(START.0 - 10_000));
        let service = start(folder.path(), &clock).unwrap();
        assert!(service.gen_id().unwrap() > last);
    }
}

#[test]
fn a_path_that_is_not_a_folder_is_an_error_with_its_cause() {
    let folder = vesta_testkit::fast_folder();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = start(&file, &ManualClock::at(START)).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(error.to_string().ends_with(&cause) && error.to_string().starts_with("cannot "));
}

#[test]
fn a_missing_folder_is_created() {
    let folder = vesta_testkit::fast_folder();
    let nested = folder.path().join("a").join(namespace_of(folder.path()));
    let clock = ManualClock::at(START);
    let before = start(&nested, &clock).unwrap().gen_id().unwrap();
    assert!(start(&nested, &clock).unwrap().gen_id().unwrap() > before);
}
