//! 0 duplicates where the original repeats: across sequence overflows, with many threads.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{START, Seen};
use vesta_service::{
    Clock as _, IdMeta, IdService as _, LocalIdService, MachineSource, ManualClock, MemoryStore,
    PopulatorKind, SystemClock,
};

const THREADS: u64 = 8;
const SCRIPTED: u64 = 50_000_000;
const REAL: u64 = 5_000_000;

/// Every thread takes single IDs and batches of many sizes, and watches that its own increase.
fn take(service: &LocalIdService, seen: &Seen, thread: u64, wanted: u64) {
    let meta = service.meta();
    let mut batch = vec![0; 3000];
    let (mut taken, mut last, mut dice) = (0, 0, thread);
    while taken < wanted {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let size = if dice >> 63 == 0 { 1 } else { (dice >> 33) % 3000 + 1 };
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

fn scripted(populator: PopulatorKind, layout: IdMeta) {
    let clock = ManualClock::at(START);
    let service = LocalIdService::builder()
        .layout(layout)
        .populator(populator)
        .clock(Arc::new(clock.clone()))
        // A thread that is not scheduled for a while sees much scripted time pass.
        .max_wait(Duration::from_secs(1_000_000))
        .machine(MachineSource::Pool { store: Arc::new(MemoryStore::new()), range: None })
        .state_dir(tempfile::tempdir().unwrap().path())
        .build()
        .unwrap();
    // Each of the threads that wait at an overflow moves the clock on by what it waits for.
    let ticks = SCRIPTED / (1 << layout.spec().seq_bits) * (THREADS + 2);
    take_with_all_threads(&service, &Seen::new(&layout, START, ticks), SCRIPTED);
    let passed = clock.wall().since(START).unwrap() / layout.spec().unit.millis();
    assert!(passed > SCRIPTED / (1 << layout.spec().seq_bits) / 2, "only {passed} overflows");
}

fn real(populator: PopulatorKind, layout: IdMeta) {
    let folder = tempfile::tempdir().unwrap();
    let service = LocalIdService::builder()
        .layout(layout)
        .populator(populator)
        .machine(MachineSource::Fixed(1023))
        .state_dir(folder.path())
        .max_wait(Duration::from_secs(60))
        .build()
        .unwrap();
    let seconds = 600; // far longer than it takes
    let ticks = seconds * 1000 / layout.spec().unit.millis();
    let seen = Seen::new(&layout, SystemClock::new().wall(), ticks);
    take_with_all_threads(&service, &seen, REAL);
}

macro_rules! for_each {
    ($($name:ident: $populator:ident, $layout:ident;)*) => {
        mod on_a_scripted_clock {
            $(#[test]
            fn $name() {
                super::scripted(super::PopulatorKind::$populator, super::IdMeta::$layout);
            })*
        }
        mod on_the_real_clock {
            $(#[test]
            fn $name() {
                super::real(super::PopulatorKind::$populator, super::IdMeta::$layout);
            })*
        }
    };
}

for_each! {
    lock_max_peak: Lock, MAX_PEAK;
    lock_min_granularity: Lock, MIN_GRANULARITY;
    sync_max_peak: Sync, MAX_PEAK;
    sync_min_granularity: Sync, MIN_GRANULARITY;
    atomic_max_peak: Atomic, MAX_PEAK;
    atomic_min_granularity: Atomic, MIN_GRANULARITY;
}

#[test]
fn the_checker_notices_a_duplicate() {
    let meta = IdMeta::MAX_PEAK;
    let seen = Seen::new(&meta, START, 2);
    let first = meta.tick_at(START).unwrap();
    let id = vesta_service::Id { time: first + 1, seq: 1_048_575, ..Default::default() };
    assert!(seen.is_new(&id));
    assert!(seen.is_new(&vesta_service::Id { seq: 1_048_574, ..id }));
    assert!(!seen.is_new(&id), "a planted duplicate must be found");
    assert_eq!(seen.count(), 2);
}
