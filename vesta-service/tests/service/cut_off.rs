//! A holder that is cut off from its store while others stand by: it stops by its own clock, in the middle of a tick,
//! and the IDs of its successor are larger.

use std::sync::Arc;
use std::time::Duration;

use vesta_service::clock::Clock as _;
use vesta_service::contract::UnixMillis;
use vesta_service::options::{Drive, PopulatorKind};
use vesta_service::testing::{FlakyStore, ManualClock, MemoryStore};
use vesta_service::{IdMeta, LocalIdService, MachineSource};

use crate::common::START;

const MILLI: Duration = Duration::from_millis(1);

/// The IDs of a call, one or several.
fn take(service: &LocalIdService, step: u64) -> Vec<u64> {
    let mut ids = vec![0; if step.is_multiple_of(3) { 3 } else { 1 }];
    let made = match ids.len() {
        1 => service.try_gen_id().map(|id| {
            ids[0] = id;
            1
        }),
        _ => service.try_gen_ids(&mut ids),
    };
    ids.truncate(made.unwrap_or(0));
    ids
}

fn play(layout: IdMeta, populator: PopulatorKind) {
    let memory = Arc::new(MemoryStore::new());
    // The window ends in the middle of a second.
    let clock = ManualClock::at(UnixMillis(START.0 + 300));
    let folders = [(); 2].map(|()| vesta_testkit::fast_folder());
    let stores = [(); 2].map(|()| FlakyStore::new(memory.clone()));
    let start = |host: usize| {
        let store = stores[host].clone();
        LocalIdService::builder()
            .layout(layout)
            .populator(populator)
            .machine(MachineSource::Reserved { store, id: 7 })
            .state_dir(folders[host].path())
            .clock(Arc::new(clock.clone()))
            .drive(Drive::ByHand)
            .standby(true)
            .build()
            .expect("it may wait")
    };
    let services = [0, 1].map(start);
    let (mut largest, mut made, mut wrong) = (0, [0_u64; 2], 0_u64);
    let mut ends_at = None;
    for step in 0..9_000_u64 {
        if step == 1_000 {
            stores[0].go_away();
            ends_at = Some(clock.monotonic() + services[0].status().window_left);
        }
        if step == 7_000 {
            stores[0].come_back();
        }
        for (host, service) in services.iter().enumerate() {
            if step.is_multiple_of(10) {
                service.maintain();
            }
            for id in take(service, step) {
                let is_late = host == 0 && ends_at.is_some_and(|end| clock.monotonic() >= end);
                wrong += u64::from(is_late || id <= largest);
                largest = largest.max(id);
                made[host] += 1;
            }
        }
        clock.advance(MILLI);
    }
    let [of_holder, of_successor] = made;
    println!("{populator:?}: {of_holder} IDs, then {of_successor}, {wrong} late or too small");
    assert_eq!(wrong, 0);
    assert!(of_holder > 2_500 && of_successor > 4_000, "{made:?}");
    assert!(services[0].try_gen_id().is_err(), "it stands by");
}

#[test]
fn a_holder_cut_off_from_its_store_makes_no_id_after_its_window() {
    for layout in [IdMeta::MAX_PEAK, IdMeta::MIN_GRANULARITY] {
        for populator in [PopulatorKind::Atomic, PopulatorKind::Lock] {
            play(layout, populator);
        }
    }
}
