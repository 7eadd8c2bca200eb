//! Layouts other than Vesta's two, through the same generator.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::common::START;
use vesta_explain::layouts;
use vesta_service::contract::{SequenceStart, UnixMillis};
use vesta_service::options::{Drive, PopulatorKind};
use vesta_service::testing::ManualClock;
use vesta_service::{IdMeta, LocalIdService, MachineSource};

fn service(layout: IdMeta, start: SequenceStart, clock: &ManualClock) -> LocalIdService {
    LocalIdService::builder()
        .layout(layout)
        .populator(PopulatorKind::Atomic)
        .sequence_start(start)
        .machine(MachineSource::Stateless(3))
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build()
        .unwrap()
}

#[test]
fn every_generating_layout_explains_its_ids() {
    let mut made = 0;
    for layout in layouts::all() {
        let begun = START.0.max(layout.spec().epoch.0 + 2_000_000);
        let now = UnixMillis(layout.end().0.min(begun) - 1_000_000);
        let clock = ManualClock::at(now);
        let build = LocalIdService::builder()
            .layout(layout)
            .machine(MachineSource::Stateless(3))
            .clock(Arc::new(clock.clone()))
            .drive(Drive::ByHand)
            .build();
        if layout.check_generates().is_err() {
            assert!(build.unwrap_err().is_configuration(), "{}", layout.name());
            continue;
        }
        made += 1;
        let service = build.unwrap();
        let mut seen = HashSet::new();
        for _ in 0..200 {
            let raw = service.gen_id().unwrap();
            assert!(seen.insert(raw), "{}", layout.name());
            let id = service.exp_id(raw).unwrap();
            assert_eq!(
                (id.machine, layout.tick_at(clock_of(&clock)).unwrap()),
                (3, id.time)
            );
            clock.advance(Duration::from_millis(7));
        }
    }
    assert_eq!(made, 18);
}

fn clock_of(clock: &ManualClock) -> UnixMillis {
    use vesta_service::clock::Clock as _;
    clock.wall()
}

#[test]
fn with_a_random_start_low_traffic_reaches_every_shard() {
    let clock = ManualClock::at(START);
    let zero = service(IdMeta::SNOWFLAKE, SequenceStart::Zero, &clock);
    let random = service(IdMeta::SNOWFLAKE, SequenceStart::Random(100), &clock);
    let mut shards = [HashSet::new(), HashSet::new()];
    let mut last = 0;
    for _ in 0..1000 {
        clock.advance(Duration::from_millis(3));
        shards[0].insert(zero.gen_id().unwrap() % 16);
        let id = random.gen_id().unwrap();
        assert!(id > last && random.exp_id(id).unwrap().seq < 100);
        last = id;
        shards[1].insert(id % 16);
    }
    assert_eq!((shards[0].len(), shards[1].len()), (1, 16));
}

#[test]
fn a_random_start_beyond_the_sequence_field_is_refused() {
    let refused = LocalIdService::builder()
        .layout(IdMeta::SNOWFLAKE)
        .sequence_start(SequenceStart::Random(4097))
        .machine(MachineSource::Stateless(3))
        .build()
        .unwrap_err();
    assert!(refused.is_configuration(), "{refused}");
}
