//! No duplicates where the original repeats: across sequence overflows, with many threads.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{START, START_OF_2023, Seen, generating_layouts};
use vesta_intf::{Field, LayoutSpec};
use vesta_service::clock::{Clock as _, ClockKind, SystemClock};
use vesta_service::contract::SequenceStart;
use vesta_service::options::{Drive, PopulatorKind};
use vesta_service::testing::{ManualClock, MemoryStore};
use vesta_service::{Builder, IdMeta, LocalIdService, MachineSource};
use vesta_testkit::{Rng, full_or, namespace_of};

const THREADS: u64 = 8;
/// IDs by a scripted clock, and by the real one: more than a second's worth, so that ticks are used up.
fn amounts() -> (u64, u64) {
    full_or((50_000_000, 5_000_000), (25_000_000, 1_300_000))
}
/// This fraction is enough where only the settings differ.
const PART: u64 = 5;

/// Each thread takes single IDs and batches of many sizes, and checks that its own IDs increase.
fn take(service: &LocalIdService, seen: &Seen, thread: u64, wanted: u64) {
    let meta = service.meta();
    let mut batch = vec![0; 3000];
    let (mut taken, mut last, mut rng) = (0, 0, Rng::new(thread));
    while taken < wanted {
        let size = if rng.percent(50) {
            1
        } else {
            rng.within(1..=3000)
        };
        let out = &mut batch[..usize::try_from(size).expect("small")];
        if size == 1 {
            out[0] = service.gen_id().expect("an ID");
        } else {
            service.gen_ids(out).expect("IDs");
        }
        for &id in &*out {
            assert!(id > last, "{id} after {last}: not increasing");
            last = id;
            let parts = meta.unpack(id).expect("of this layout");
            assert!(seen.is_new(&parts), "duplicate: {parts:?}");
        }
        taken += size;
    }
}

fn take_with_all_threads(service: &LocalIdService, seen: &Seen, total: u64) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || take(service, seen, thread, total.div_ceil(THREADS)));
        }
    });
    assert!(seen.count() >= total);
}

/// Changes the settings of generation.
type Tune = fn(Builder) -> Builder;

/// Settings that affect what a call may take, and when.
const TUNES: [Tune; 4] = [
    |builder| builder.pacing(false),
    |builder| builder,
    |builder| builder.pacing(false).clock_kind(ClockKind::Coarse),
    |builder| builder.clock_kind(ClockKind::Coarse),
];

fn scripted(populator: PopulatorKind, layout: IdMeta, tune: Tune, part: u64) {
    let total = amounts().0 / part;
    let clock = ManualClock::at(START);
    let service = tune(LocalIdService::builder())
        .layout(layout)
        .populator(populator)
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        // A thread that is not scheduled for a while sees much scripted time pass.
        .max_wait(Duration::from_secs(1_000_000))
        .machine(MachineSource::Pool {
            store: Arc::new(MemoryStore::new()),
            range: None,
        })
        .state_dir(vesta_testkit::fast_folder().path())
        .build()
        .unwrap();
    // Each thread that waits at an overflow advances the clock by its wait.
    let ticks = total / (1 << layout.spec().seq_bits) * (THREADS + 2);
    take_with_all_threads(&service, &Seen::new(&layout, START, ticks), total);
    let passed = clock.wall().since(START).unwrap() / layout.spec().unit.millis();
    assert!(
        passed > total / (1 << layout.spec().seq_bits) / 2,
        "only {passed} overflows"
    );
}

fn real(populator: PopulatorKind, layout: IdMeta, tune: Tune, part: u64) {
    let folder = vesta_testkit::fast_folder();
    let service = tune(LocalIdService::builder())
        .layout(layout)
        .populator(populator)
        .namespace(namespace_of(folder.path()))
        .machine(MachineSource::Fixed(1023))
        .state_dir(folder.path())
        .max_wait(Duration::from_secs(60))
        .build()
        .unwrap();
    let seconds = 600; // far longer than it takes
    let ticks = seconds * 1000 / layout.spec().unit.millis();
    let seen = Seen::new(&layout, SystemClock::new().wall(), ticks);
    take_with_all_threads(&service, &seen, amounts().1 / part);
}

/// IDs per layout; they use up a short sequence thousands of times.
const EACH: u64 = 300_000;

fn every_layout_scripted(populator: PopulatorKind) {
    for layout in generating_layouts() {
        let numbers = layout.max(Field::Seq) + 1;
        let half = u32::try_from(numbers / 2).expect("few bits");
        let starts = TUNES.map(|tune| (tune, SequenceStart::Zero));
        let random: (Tune, _) = (TUNES[0], SequenceStart::Random(half));
        for (tune, start) in starts.into_iter().chain([random]) {
            let service = tune(LocalIdService::builder())
                .layout(layout)
                .populator(populator)
                .sequence_start(start)
                .clock(Arc::new(ManualClock::at(START)))
                .drive(Drive::ByHand)
                .max_wait(Duration::from_secs(1_000_000))
                .machine(MachineSource::Stateless(layout.max(Field::Machine)))
                .build()
                .unwrap();
            // As above; with a random start a tick has at least half of its numbers.
            let ticks = (EACH.div_ceil(numbers) + 1) * 2 * (THREADS + 2);
            take_with_all_threads(&service, &Seen::new(&layout, START, ticks), EACH);
        }
    }
}

/// All at once: they mostly wait.
fn every_layout_real(populator: PopulatorKind) {
    std::thread::scope(|scope| {
        for layout in generating_layouts() {
            scope.spawn(move || one_layout_real(populator, layout));
        }
    });
}

fn one_layout_real(populator: PopulatorKind, mut layout: IdMeta) {
    if layout.end() <= SystemClock::new().wall() {
        let spec = LayoutSpec {
            epoch: START_OF_2023,
            ..*layout.spec()
        };
        layout = IdMeta::new(spec).unwrap();
    }
    let folder = vesta_testkit::fast_folder();
    let service = LocalIdService::builder()
        .layout(layout)
        .populator(populator)
        .namespace(namespace_of(folder.path()))
        .machine(MachineSource::Fixed(layout.max(Field::Machine)))
        .state_dir(folder.path())
        .max_wait(Duration::from_secs(600))
        .build()
        .unwrap();
    let ticks = 600 * 1000 / layout.spec().unit.millis();
    let seen = Seen::new(&layout, SystemClock::new().wall(), ticks);
    // The IDs that the slowest layout generates in a second or two.
    take_with_all_threads(&service, &seen, 8192);
}

macro_rules! for_each {
    ($($name:ident: $populator:ident, $layout:ident, $tune:expr, $part:expr;)*) => {
        mod on_a_scripted_clock {
            $(#[test]
            fn $name() {
                use super::*;
                scripted(PopulatorKind::$populator, IdMeta::$layout, $tune, $part);
            })*
        }
        mod on_the_real_clock {
            $(#[test]
            fn $name() {
                use super::*;
                real(PopulatorKind::$populator, IdMeta::$layout, $tune, $part);
            })*
        }
    };
}

for_each! {
    lock_max_peak: Lock, MAX_PEAK, TUNES[0], 1;
    lock_min_granularity: Lock, MIN_GRANULARITY, TUNES[0], 1;
    sync_max_peak: Sync, MAX_PEAK, TUNES[0], 1;
    sync_min_granularity: Sync, MIN_GRANULARITY, TUNES[0], 1;
    atomic_max_peak: Atomic, MAX_PEAK, TUNES[0], 1;
    atomic_min_granularity: Atomic, MIN_GRANULARITY, TUNES[0], 1;
    paced_max_peak: Atomic, MAX_PEAK, TUNES[1], PART;
    paced_min_granularity: Atomic, MIN_GRANULARITY, TUNES[1], PART;
    paced_coarse_min_granularity: Atomic, MIN_GRANULARITY, TUNES[3], PART;
    coarse_min_granularity: Atomic, MIN_GRANULARITY, TUNES[2], PART;
    borrowing_paced_max_peak: Atomic, MAX_PEAK,
        |builder| builder.borrow_ahead(Duration::from_secs(2)), 2; // two of its ticks are borrowed
    borrowing_min_granularity: Atomic, MIN_GRANULARITY,
        |builder| builder.pacing(false).borrow_ahead(Duration::from_millis(20)), PART;
}

macro_rules! every_layout {
    ($($name:ident: $populator:ident;)*) => {
        mod every_layout_that_makes_ids {
            $(mod $name {
                #[test]
                fn on_a_scripted_clock() {
                    super::super::every_layout_scripted(super::super::PopulatorKind::$populator);
                }

                #[test]
                fn on_the_real_clock() {
                    super::super::every_layout_real(super::super::PopulatorKind::$populator);
                }
            })*
        }
    };
}

every_layout! {
    lock: Lock;
    sync: Sync;
    atomic: Atomic;
}

/// Its 28 bits of seconds have run out by the real clock.
#[test]
fn borrowing_uid_on_a_scripted_clock() {
    let tune: Tune = |builder| builder.borrow_ahead(Duration::from_secs(5));
    scripted(PopulatorKind::Atomic, IdMeta::UID, tune, PART);
}

#[test]
fn the_checker_detects_a_duplicate() {
    let meta = IdMeta::MAX_PEAK;
    let seen = Seen::new(&meta, START, 2);
    let first = meta.tick_at(START).unwrap();
    let id = vesta_service::contract::Id {
        time: first + 1,
        seq: 1_048_575,
        ..Default::default()
    };
    assert!(seen.is_new(&id));
    assert!(seen.is_new(&vesta_service::contract::Id {
        seq: 1_048_574,
        ..id
    }));
    assert!(!seen.is_new(&id), "a planted duplicate must be found");
    assert_eq!(seen.count(), 2);
}
