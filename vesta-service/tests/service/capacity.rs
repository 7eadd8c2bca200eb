//! At full capacity: slices of a tick, positions for waiting callers, and borrowed ticks.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use vesta_service::clock::{Clock, ClockKind};
use vesta_service::contract::{SequenceStart, UnixMillis};
use vesta_service::options::{Drive, PopulatorKind};
use vesta_service::testing::ManualClock;
use vesta_service::{Builder, ErrorKind, IdError, IdMeta, LocalIdService, MachineSource};
use vesta_testkit::namespace_of;

use crate::common::START;

const UID_PER_SECOND: u64 = 8192;
/// A second of `max-peak` has an eighth of its IDs for bursts, and 256 slices of 3,584.
const FOR_BURSTS: u64 = 131_072;
const PER_SLICE: u64 = 3584;

fn start(
    folder: &Path,
    clock: &Arc<dyn Clock>,
    tune: impl FnOnce(Builder) -> Builder,
) -> LocalIdService {
    tune(LocalIdService::builder())
        .namespace(namespace_of(folder))
        .machine(MachineSource::Fixed(7))
        .state_dir(folder)
        .clock(clock.clone())
        .drive(Drive::ByHand)
        .build()
        .unwrap()
}

fn manual() -> (ManualClock, Arc<dyn Clock>) {
    let clock = ManualClock::at(START);
    (clock.clone(), Arc::new(clock))
}

/// Takes all available IDs, including those that batches leave to single calls; returns the final
/// refusal too.
fn exhaust(service: &LocalIdService) -> (u64, IdError) {
    let mut count = 0;
    loop {
        match service
            .try_gen_run(u32::MAX)
            .or_else(|_| service.try_gen_run(1))
        {
            Ok(run) => count += u64::from(run.count),
            Err(error) => return (count, error),
        }
    }
}

#[test]
fn a_second_is_released_in_slices_without_losing_any() {
    let folder = vesta_testkit::fast_folder();
    let (clock, shared) = manual();
    let service = start(folder.path(), &shared, |builder| builder);
    let mut all = 0;
    // With a look every 50 ms only, the rests of the slices between are still available.
    for step in 1..=20 {
        let (count, refusal) = exhaust(&service);
        all += count;
        assert_eq!(refusal.kind(), ErrorKind::SequenceUsedUp);
        let wait = refusal.retry_after().unwrap();
        assert!(wait <= Duration::from_millis(4), "{wait:?}");
        let begun = (step - 1) * 50 * 256 / 1000 + 1;
        assert_eq!(
            all,
            FOR_BURSTS + begun * PER_SLICE,
            "after {} ms",
            (step - 1) * 50
        );
        clock.advance(Duration::from_millis(50));
        service.maintain();
    }
}

/// Without pacing, single calls get the last sixteenth of a second; with pacing, that of each slice.
#[test]
fn single_calls_are_served_next_to_continuous_batches() {
    for (pacing, left) in [(false, 65_536), (true, 256)] {
        let folder = vesta_testkit::fast_folder();
        let (clock, shared) = manual();
        let service = start(folder.path(), &shared, |builder| builder.pacing(pacing));
        for _ in 0..3 {
            while service.try_gen_run(1 << 20).is_ok() {}
            for _ in 0..left {
                service
                    .try_gen_id()
                    .expect("there is one for a single call");
                let error = service
                    .try_gen_run(2)
                    .expect_err("there is none for a batch");
                assert_eq!(error.kind(), ErrorKind::SequenceUsedUp);
            }
            let wait = service.try_gen_id().unwrap_err().retry_after().unwrap();
            clock.advance(wait);
            service.maintain();
        }
    }
}

#[test]
fn only_waiting_calls_reserve_positions_and_are_served_in_turn() {
    for layout in [IdMeta::MAX_PEAK, IdMeta::MIN_GRANULARITY] {
        let folder = vesta_testkit::fast_folder();
        let (clock, shared) = manual();
        let service = start(folder.path(), &shared, |builder| {
            builder.layout(layout).pacing(true)
        });
        exhaust(&service);
        for _ in 0..1000 {
            service.try_gen_id().unwrap_err();
        }
        let before = clock.wall();
        let last = service.exp_id(service.gen_id().unwrap()).unwrap();
        let waited = clock.wall().since(before).unwrap();
        assert!((1..=4).contains(&waited), "{layout}: {waited} ms");
        let (rest, _) = exhaust(&service);
        let in_a_slice = if layout == IdMeta::MAX_PEAK {
            PER_SLICE
        } else {
            1024
        };
        assert_eq!(
            rest,
            in_a_slice - 1,
            "{layout}: all positions after the waiting caller's"
        );
        if layout == IdMeta::MAX_PEAK {
            assert_eq!(last.seq, FOR_BURSTS + PER_SLICE, "the very next position");
        }
    }
}

#[test]
fn with_short_ticks_to_borrow_one_wait_covers_4_ms() {
    let folder = vesta_testkit::fast_folder();
    let (clock, shared) = manual();
    let layout = IdMeta::MIN_GRANULARITY;
    let wait = |max_wait| {
        let service = start(folder.path(), &shared, |builder| {
            let borrowed = Duration::from_millis(8);
            builder
                .layout(layout)
                .pacing(true)
                .borrow_ahead(borrowed)
                .max_wait(max_wait)
        });
        let ticks = (clock.wall().0 - layout.spec().epoch.0) % 4;
        clock.advance(Duration::from_millis(4 - ticks)); // all four are used up
        exhaust(&service);
        let before = clock.wall();
        service.gen_id().unwrap();
        let waited = clock.wall().since(before).unwrap();
        let (rest, _) = exhaust(&service);
        assert_eq!(rest + 1, waited * 1024);
        waited
    };
    assert_eq!(wait(Duration::from_secs(1)), 4);
    assert_eq!(
        wait(Duration::from_millis(3)),
        1,
        "a caller with a shorter max_wait wakes up when its position is due"
    );
}

#[test]
fn a_wait_that_is_too_long_takes_no_position() {
    let folder = vesta_testkit::fast_folder();
    let (_, shared) = manual();
    let service = start(folder.path(), &shared, |builder| {
        builder.pacing(true).max_wait(Duration::from_millis(2))
    });
    exhaust(&service);
    let refusal = service.gen_id().unwrap_err();
    assert_eq!(refusal.kind(), ErrorKind::SequenceUsedUp);
    assert_eq!(service.status().positions_lost_total, 0);
}

#[test]
fn a_burst_borrows_seconds_and_a_restart_repeats_none() {
    let folder = vesta_testkit::fast_folder();
    let file = folder
        .path()
        .join(format!("{}-7.state", namespace_of(folder.path())));
    let (clock, shared) = manual();
    let tune = |builder: Builder| {
        builder
            .layout(IdMeta::UID)
            .pacing(false)
            .borrow_ahead(Duration::from_secs(8))
    };
    let service = start(folder.path(), &shared, tune);
    let first = service.gen_id().unwrap();
    let (count, refusal) = exhaust(&service);
    assert_eq!(count + 1, 9 * UID_PER_SECOND, "this second and eight more");
    assert_eq!(
        refusal.retry_after(),
        Some(Duration::from_secs(1)),
        "one more is due then"
    );
    clock.advance(Duration::from_secs(1));
    service.maintain();
    let mut ids = vec![0; 8192];
    ids.iter_mut()
        .for_each(|id| *id = service.gen_id().unwrap());
    let last = *ids.last().unwrap();
    let lead = service.exp_id(last).unwrap().time - service.exp_id(first).unwrap().time;
    assert_eq!(lead, 9, "eight ahead of the second second");

    // Killed: only the file is known.
    let bytes = std::fs::read(&file).unwrap();
    drop(service);
    std::fs::write(&file, bytes).unwrap();
    let again = start(folder.path(), &shared, tune);
    let next = again.gen_id().unwrap();
    assert!(next > last, "{next} after {last}");
}

/// After a clean stop it continues at the next position, without waiting until the borrowed time has passed.
#[test]
fn a_clean_stop_needs_no_wait_for_borrowed_time() {
    let folder = vesta_testkit::fast_folder();
    let (clock, shared) = manual();
    let tune = |builder: Builder| builder.pacing(false).borrow_ahead(Duration::from_secs(8));
    let service = start(folder.path(), &shared, tune);
    let (count, _) = exhaust(&service);
    assert_eq!(count, 9 << 20);
    drop(service);
    let before = clock.wall();
    let service = start(folder.path(), &shared, tune);
    clock.advance(Duration::from_secs(1));
    service.maintain();
    service.try_gen_id().unwrap();
    assert!(clock.wall().since(before).unwrap() < 1100);
    assert_eq!(service.status().machines, [7]);
}

/// The wall clock, plus a coarse one that was read at the end of every 4 ms.
#[derive(Debug)]
struct Coarse(ManualClock);

impl Clock for Coarse {
    fn wall(&self) -> UnixMillis {
        self.0.wall()
    }

    fn wall_coarse(&self) -> u64 {
        self.0.wall().0 / 4
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn park(&self, duration: Duration) {
        self.0.park(duration);
    }
}

#[test]
fn the_coarse_clock_lags_by_an_interrupt_but_ends_ticks_precisely() {
    for kind in PopulatorKind::ALL {
        let clock = ManualClock::at(START);
        let shared: Arc<dyn Clock> = Arc::new(Coarse(clock.clone()));
        let folder = vesta_testkit::fast_folder();
        let service = start(folder.path(), &shared, |builder| {
            builder
                .layout(IdMeta::MIN_GRANULARITY)
                .clock_kind(ClockKind::Coarse)
                .populator(kind)
        });
        let time = |id: u64| service.exp_id(id).unwrap().time;
        let now = || service.meta().tick_at(clock.wall()).unwrap();
        let begin = now();
        for step in 0..4 {
            assert_eq!(
                time(service.try_gen_id().unwrap()),
                begin,
                "{step} ms later it lags"
            );
            clock.advance(Duration::from_millis(1));
        }
        assert_eq!(
            time(service.try_gen_id().unwrap()),
            begin + 4,
            "another interrupt"
        );
        clock.advance(Duration::from_millis(1));
        let mut ids = vec![0; 2000];
        let taken = service.try_gen_ids(&mut ids).unwrap();
        assert!(
            taken > 1024,
            "{}: more than one tick has: {taken}",
            kind.name()
        );
        assert_eq!(
            time(ids[taken - 1]),
            now(),
            "the tick that the precise clock shows"
        );
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let refusal = |tune: fn(Builder) -> Builder| {
        let builder = LocalIdService::builder().machine(MachineSource::Stateless(1));
        tune(builder).build().unwrap_err().to_string()
    };
    for (tune, sentence) in [
        (
            (|b| b.borrow_ahead(Duration::from_secs(1))) as fn(Builder) -> Builder,
            "a stateless machine ID cannot borrow",
        ),
        (
            |b| b.borrow_ahead(Duration::from_millis(999)),
            "at least one tick of the layout",
        ),
        (|b| b.borrow_ahead(Duration::from_secs(11)), "0 to 10000"),
        (
            |b| b.sequence_start(SequenceStart::Random(134_657)),
            "with pacing at most random:134656",
        ),
    ] {
        let said = refusal(tune);
        assert!(said.contains(sentence), "{said}");
    }
}
