//! Wrong clocks: only the time field suffers, and callers get errors only for large differences.

use std::sync::Arc;
use std::time::Duration;

use crate::common::START;
use vesta_service::clock::Clock as _;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::Timing;
use vesta_service::options::{Drive, PopulatorKind};
use vesta_service::testing::{FlakyStore, ManualClock, MemoryStore};
use vesta_service::{ErrorKind, IdMeta, LocalIdService, MachineSource};
use vesta_testkit::{Rng, namespace_of};

fn fixed(clock: &ManualClock, layout: IdMeta, folder: &tempfile::TempDir) -> LocalIdService {
    LocalIdService::builder()
        .layout(layout)
        .populator(PopulatorKind::Atomic)
        .namespace(namespace_of(folder.path()))
        .machine(MachineSource::Fixed(1))
        .state_dir(folder.path())
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build()
        .unwrap()
}

/// A million small steps in both directions: no error, no pause, no repetition.
#[test]
fn steps_of_up_to_five_seconds_are_invisible() {
    for layout in [IdMeta::MAX_PEAK, IdMeta::MIN_GRANULARITY] {
        let folder = vesta_testkit::fast_folder();
        let clock = ManualClock::at(START);
        let service = fixed(&clock, layout, &folder);
        let (mut last, mut rng, mut real) = (0, Rng::new(1), START.0);
        for step in 0..1_000_000_u64 {
            // Time passes; the wall clock shows anything between 4 s late and the right time.
            clock.advance(Duration::from_millis(1));
            real += 1;
            clock.set_wall(UnixMillis(real - rng.below(4000)));
            if step % 500 == 0 {
                service.maintain();
            }
            let id = service
                .try_gen_id()
                .unwrap_or_else(|e| panic!("step {step}: {e}"));
            assert!(id > last);
            last = id;
        }
    }
}

#[test]
fn a_clock_far_behind_is_an_error_with_a_delay_until_it_catches_up() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let service = fixed(&clock, IdMeta::MAX_PEAK, &folder);
    let before = service.gen_id().unwrap();
    clock.set_wall(UnixMillis(START.0 - 3_600_000));

    let error = service.try_gen_id().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ClockBehind);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3595)));
    let blocking = service.gen_id().unwrap_err();
    assert_eq!(
        blocking.kind(),
        ErrorKind::ClockBehind,
        "max_wait is shorter, so it does not wait"
    );
    assert!(!service.status().ready);

    clock.advance(Duration::from_secs(3596));
    service.maintain();
    assert!(service.try_gen_id().unwrap() > before);
    assert!(service.status().ready);
}

#[test]
fn in_a_pool_a_clock_far_behind_costs_only_the_machine_id() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let service = LocalIdService::builder()
        .machine(MachineSource::Pool {
            store: Arc::new(MemoryStore::new()),
            range: None,
        })
        .state_dir(folder.path())
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build()
        .unwrap();
    let first = service.machine();
    service.gen_id().unwrap();
    clock.set_wall(UnixMillis(START.0 - 5_000));
    service.maintain();
    service.try_gen_id().unwrap();
    assert_eq!(service.machine(), first, "five seconds are not far");
    clock.set_wall(UnixMillis(START.0 - 3_600_000));
    assert!(service.try_gen_id().is_err());
    service.maintain();
    service.try_gen_id().unwrap();
    assert_ne!(service.machine(), first);
    let time = service.exp_id(service.gen_id().unwrap()).unwrap().time;
    let shown = service.trans_time(time).unwrap();
    assert_eq!(
        shown,
        UnixMillis(START.0 - 3_600_000).to_system_time(),
        "on time again"
    );
}

/// For hours the clock is hours behind, with and without another machine ID to use meanwhile.
#[test]
fn a_clock_set_right_after_hours_is_followed() {
    let hour = Duration::from_secs(3600);
    for machines in [1, 2] {
        let folder = vesta_testkit::fast_folder();
        let clock = ManualClock::at(START);
        let pool = Arc::new(MemoryStore::new());
        let service = LocalIdService::builder()
            .machine(MachineSource::Pool {
                store: pool,
                range: Some(1..=machines),
            })
            .state_dir(folder.path())
            .clock(Arc::new(clock.clone()))
            .drive(Drive::ByHand)
            .build()
            .unwrap();
        let before = service.gen_id().unwrap();
        clock.set_wall(UnixMillis(START.0 - 8 * 3_600_000));
        for _ in 0..7 * 360 {
            clock.advance(hour / 360);
            service.maintain();
            assert_eq!(service.try_gen_id().is_ok(), machines > 1);
        }
        let right = UnixMillis(START.0 + 7 * 3_600_000);
        clock.set_wall(right);
        service.maintain();
        clock.advance(Duration::from_secs(10));
        service.maintain();
        let id = service.try_gen_id().unwrap();
        assert!(id > before);
        assert!(!service.status().clock_suspect);
        let moment = service
            .meta()
            .moment_of(service.exp_id(id).unwrap().time)
            .unwrap();
        assert!(
            (right..UnixMillis(right.0 + 12_000)).contains(&moment),
            "{moment}"
        );
    }
}

#[test]
fn a_jump_far_ahead_is_ignored_and_nothing_far_ahead_is_recorded() {
    for jump in [86_400_000, 100 * 365 * 86_400_000] {
        let folder = vesta_testkit::fast_folder();
        let clock = ManualClock::at(START);
        let service = fixed(&clock, IdMeta::MIN_GRANULARITY, &folder);
        clock.set_wall(UnixMillis(START.0 + jump));
        for _ in 0..10 {
            clock.advance(Duration::from_millis(500));
            service.maintain();
            let id = service.exp_id(service.gen_id().unwrap()).unwrap();
            let shown = service.meta().moment_of(id.time).unwrap();
            assert!(shown.0 <= START.0 + 6_000, "{shown}");
        }
        assert!(service.status().clock_suspect);
        drop(service);
        clock.set_wall(UnixMillis(START.0 + 10_000));
        fixed(&clock, IdMeta::MIN_GRANULARITY, &folder)
            .gen_id()
            .unwrap();
    }
}

const HOUR: u64 = 3_600_000;

/// A pool of one machine ID, whose store has a clock or none.
fn pool(
    clock: &ManualClock,
    folder: &tempfile::TempDir,
    store: &Arc<FlakyStore>,
) -> LocalIdService {
    LocalIdService::builder()
        .machine(MachineSource::Pool {
            store: store.clone(),
            range: Some(1..=1),
        })
        .timing(Timing::NETWORK)
        .state_dir(folder.path())
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build()
        .unwrap()
}

/// Seconds until a call returns an ID with the clock's time.
fn recovers(service: &LocalIdService, clocks: &[&ManualClock]) -> Option<u64> {
    (0..1_200).find(|_| {
        service.maintain();
        let right = service.try_gen_id().is_ok_and(|id| {
            let time = service.exp_id(id).unwrap().time;
            let shown = service.meta().moment_of(time).unwrap();
            shown.0.abs_diff(clocks[0].wall().0) <= 2_000
        });
        clocks
            .iter()
            .filter(|_| !right)
            .for_each(|clock| clock.advance(Duration::from_secs(1)));
        right
    })
}

/// A machine that was resumed, or started with a wrong clock: the clock is two hours behind, and is
/// set right. The store's clock is right, or as wrong as the host's was, or does not exist.
#[test]
fn a_clock_set_right_is_followed_once_the_store_agrees_or_after_ten_minutes() {
    for (store_is, within) in [(None, 585..=600), (Some(true), 0..=17)] {
        let folder = vesta_testkit::fast_folder();
        let (clock, right) = (ManualClock::at(START), ManualClock::at(START));
        let store = FlakyStore::new(Arc::new(MemoryStore::new()));
        let service = pool(&clock, &folder, &store);
        for clock in [&clock, &right] {
            clock.advance(Duration::from_secs(20));
        }
        service.maintain();
        clock.set_wall(UnixMillis(clock.wall().0 + 2 * HOUR));
        right.set_wall(clock.wall());
        if store_is.is_some() {
            store.show_clock(&right);
        }
        let after = recovers(&service, &[&clock, &right]);
        assert!(
            after.is_some_and(|seconds| within.contains(&seconds)),
            "{store_is:?}: {after:?}"
        );
        assert!(!service.status().clock_suspect);
        println!(
            "store with a clock: {}, IDs on time after {after:?} s",
            store_is.is_some()
        );
    }
}

#[test]
fn a_wrong_clock_that_the_store_contradicts_is_never_followed() {
    let folder = vesta_testkit::fast_folder();
    let (clock, right) = (ManualClock::at(START), ManualClock::at(START));
    let store = FlakyStore::new(Arc::new(MemoryStore::new()));
    store.show_clock(&right);
    let service = pool(&clock, &folder, &store);
    clock.set_wall(UnixMillis(START.0 + 2 * HOUR));
    for _ in 0..1_800 {
        clock.advance(Duration::from_secs(1));
        right.advance(Duration::from_secs(1));
        service.maintain();
        let id = service.exp_id(service.try_gen_id().unwrap()).unwrap();
        let shown = service.meta().moment_of(id.time).unwrap();
        assert!(shown.0 <= right.wall().0, "{shown}");
    }
    assert!(service.status().clock_suspect);
}

/// Another process takes the machine ID while the clock is suspect. With the store's clock a new
/// one is claimed at once; without one after ten minutes, and a restart would help until then.
#[test]
fn a_process_without_a_machine_id_claims_one_once_its_clock_is_believed() {
    for store_has_clock in [true, false] {
        let folder = vesta_testkit::fast_folder();
        let (clock, right) = (ManualClock::at(START), ManualClock::at(START));
        let store = FlakyStore::new(Arc::new(MemoryStore::new()));
        let service = pool(&clock, &folder, &store);
        service.gen_id().unwrap();
        // The process stops for two hours, which its monotonic clock does not count.
        right.advance(Duration::from_millis(2 * HOUR));
        let elsewhere = vesta_testkit::fast_folder();
        drop(pool(&right, &elsewhere, &store));
        clock.set_wall(right.wall());
        for clock in [&clock, &right] {
            clock.advance(Duration::from_secs(17));
        }
        if store_has_clock {
            store.show_clock(&right);
            // Until then, the store contradicts the host's clock.
            right.set_wall(START);
        }
        service.maintain();
        assert!(service.try_gen_id().is_err());
        clock.advance(Duration::from_secs(60));
        service.maintain();
        let status = service.status();
        assert!(
            status.restart_helps && !status.ready && status.clock_suspect,
            "{status:?}"
        );
        let why = status.all.not_ready_because.unwrap();
        let said = if store_has_clock {
            "synchronise them"
        } else {
            "is not believed yet"
        };
        assert!(why.contains(said), "{why}");
        right.set_wall(clock.wall());
        let after = recovers(&service, &[&clock, &right]).expect("it recovers");
        assert!(!service.status().restart_helps);
        let within = if store_has_clock { 0..=2 } else { 500..=600 };
        assert!(within.contains(&after), "{store_has_clock}: {after} s");
        println!("store with a clock: {store_has_clock}, claimed again after {after} s");
    }
}

/// The doubt that an owner records while its clock is suspect starts at the effective time.
#[test]
fn a_doubt_reaches_no_further_than_the_believed_clock() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let memory = Arc::new(MemoryStore::new());
    let store = FlakyStore::new(memory.clone());
    let service = pool(&clock, &folder, &store);
    clock.set_wall(UnixMillis(START.0 + 50 * 365 * 24 * HOUR));
    store.set_doubt();
    for _ in 0..60 {
        clock.advance(Duration::from_secs(1));
        service.maintain();
    }
    let doubt = crate::common::leases(&memory)
        .find()
        .unwrap()
        .unwrap()
        .doubt
        .expect("it is written");
    assert!(doubt.reach.0 < START.0 + HOUR, "{}", doubt.reach);
}

#[test]
fn the_end_of_the_layout_is_an_error_and_does_not_wrap() {
    let folder = vesta_testkit::fast_folder();
    let end = IdMeta::MAX_PEAK.end();
    let clock = ManualClock::at(UnixMillis(end.0 - 2_000));
    let service = fixed(&clock, IdMeta::MAX_PEAK, &folder);
    let mut last = service.gen_id().unwrap();
    for _ in 0..30 {
        clock.advance(Duration::from_millis(100));
        service.maintain();
        match service.try_gen_id() {
            Ok(id) => {
                assert!(id > last && clock.wall() < end);
                last = id;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimeExhausted);
                assert!(clock.wall() >= end);
            }
        }
    }
    assert_eq!(
        service.gen_id().unwrap_err().kind(),
        ErrorKind::TimeExhausted
    );
    assert!(!service.status().ready);
}

#[test]
fn a_timed_out_call_pushes_nothing_into_the_future() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let service = fixed(&clock, IdMeta::MIN_GRANULARITY, &folder);
    let tick = [0; 1024].map(|_| service.try_gen_id().unwrap());
    for _ in 0..10_000 {
        let error = service.try_gen_id().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SequenceUsedUp);
        assert!(error.retry_after() <= Some(Duration::from_millis(1)));
        assert_eq!(
            service.try_gen_ids(&mut [0; 5]).unwrap_err().kind(),
            ErrorKind::SequenceUsedUp
        );
    }
    clock.advance(Duration::from_millis(1));
    assert_eq!(
        service.try_gen_id().unwrap(),
        tick[1023] + 1024,
        "the very next position"
    );
}

#[test]
fn a_batch_larger_than_a_tick_is_filled_over_several() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let service = fixed(&clock, IdMeta::MIN_GRANULARITY, &folder);
    let mut batch = vec![0; 5_000];
    assert_eq!(
        service.try_gen_ids(&mut batch).unwrap(),
        960,
        "all except a sixteenth of this tick"
    );
    service.gen_ids(&mut batch).unwrap();
    assert!(batch.is_sorted_by(|a, b| a < b));
    assert_eq!(
        clock.wall(),
        UnixMillis(START.0 + 6),
        "it waited for the ticks and no longer"
    );
}
