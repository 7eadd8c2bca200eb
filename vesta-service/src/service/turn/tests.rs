use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use vesta_intf::{IdMeta, LayoutSpec, UnixMillis};

use super::*;
use crate::MachineSource;
use crate::clock::Clock;
use crate::service::Batch;
use crate::testing::ManualClock;
use crate::wait::Drive;

/// Of a second: 14 bits, so 2,048 positions for bursts and slices of 56.
const SEQ_BITS: u8 = 14;
const MILLI: Duration = Duration::from_millis(1);

struct World {
    clock: ManualClock,
    service: LocalIdService,
    _folder: tempfile::TempDir,
}

impl World {
    fn new(seq_bits: u8) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(UnixMillis(1_700_000_000_000));
        let name = folder.path().file_name().unwrap().to_str().unwrap();
        let spec = *IdMeta::MAX_PEAK.spec();
        let service = LocalIdService::builder()
            .namespace(name.trim_start_matches('.'))
            .layout(IdMeta::new(LayoutSpec { seq_bits, ..spec }).unwrap())
            .machine(MachineSource::Fixed(1))
            .state_dir(folder.path())
            .clock(Arc::new(clock.clone()))
            .drive(Drive::ByHand)
            .build()
            .unwrap();
        Self {
            clock,
            service,
            _folder: folder,
        }
    }

    /// A world in which calls have to wait, and the sequence number of the next ID.
    fn used_up() -> (Self, u64) {
        let world = Self::new(SEQ_BITS);
        while world.service.try_gen_id().is_ok() {}
        (world, 2048 + 56)
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.service.maintain();
    }

    /// A call that waits.
    fn waiting(&self) -> Turn<'_> {
        let mut turn = Turn::new(&self.service);
        assert!(turn.id().is_err());
        turn
    }

    /// Sequence number of an ID.
    fn seq(&self, id: u64) -> u64 {
        self.service.exp_id(id).unwrap().seq
    }

    fn lost(&self) -> u64 {
        self.service.status().positions_lost_total
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Arrive,
    Retry(usize),
    Drop(usize),
    Try,
    Run(u32),
    Advance(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Arrive),
        6 => (0..40_usize).prop_map(Step::Retry),
        3 => (0..40_usize).prop_map(Step::Drop),
        2 => Just(Step::Try),
        1 => (2..100_u32).prop_map(Step::Run),
        2 => (1..6_u64).prop_map(Step::Advance),
    ];
    proptest::collection::vec(step, 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// An ID is larger than each one returned before its call began, calls are served in the order of arrival as far as
    /// none is given up, and each position is issued, lost, or free.
    #[test]
    fn waiting_calls_keep_the_order_whoever_gives_up(steps in steps()) {
        let (world, first) = World::used_up();
        let gives_up = steps.iter().any(|step| matches!(step, Step::Drop(_)));
        let mut waiting: Vec<(Turn<'_>, u64)> = Vec::new();
        let (mut issued, mut in_turn) = (Vec::new(), Vec::new());
        for step in steps {
            let highest = issued.iter().copied().max().unwrap_or(0);
            match step {
                Step::Arrive => {
                    let mut turn = Turn::new(&world.service);
                    match turn.id() {
                        Ok(id) => {
                            prop_assert!(id > highest);
                            issued.push(id);
                        }
                        Err(_) => waiting.push((turn, highest)),
                    }
                }
                Step::Retry(number) if number < waiting.len() => {
                    if let Ok(id) = waiting[number].0.id() {
                        let (_, highest) = waiting.remove(number);
                        prop_assert!(id > highest, "one returned before its call began is larger");
                        issued.push(id);
                        in_turn.push((number, id));
                    }
                }
                Step::Drop(number) if number < waiting.len() => _ = waiting.remove(number),
                Step::Try => if let Ok(id) = world.service.try_gen_id() {
                    prop_assert!(id > highest);
                    issued.push(id);
                },
                Step::Run(want) => if let Ok(run) = world.service.try_gen_run(want) {
                    prop_assert!(run.first > highest);
                    issued.extend(run.iter());
                },
                Step::Advance(millis) if world.clock.monotonic() < MILLI * 900 => {
                    world.advance(Duration::from_millis(millis));
                }
                _ => {}
            }
        }
        world.advance(MILLI * 95);
        let mut rest = Vec::new();
        for (mut turn, _) in waiting {
            rest.push(turn.id().expect("each position is due"));
        }
        prop_assert!(gives_up || rest.is_sorted(), "in the order of arrival");
        issued.extend(rest);
        issued.sort_unstable();
        prop_assert!(issued.is_sorted_by(|one, next| one < next), "twice");
        let next = world.service.try_gen_id().expect("there is room");
        prop_assert_eq!(world.seq(next) - first, issued.len() as u64 + world.lost());
    }
}

#[test]
fn waiting_calls_are_served_in_the_order_of_arrival() {
    let (world, _) = World::used_up();
    let mut waiting: Vec<_> = (0..200).map(|_| world.waiting()).collect();
    world.advance(MILLI * 20);
    let late = world.service.try_gen_id().expect("the line is over");
    // Whichever is polled first.
    let mut ids: Vec<_> = waiting
        .iter_mut()
        .rev()
        .map(|turn| turn.id().unwrap())
        .collect();
    ids.reverse();
    assert!(ids.is_sorted_by(|one, next| world.seq(*one) + 1 == world.seq(*next)));
    assert_eq!(world.seq(late), world.seq(ids[199]) + 1);
}

#[test]
fn the_last_positions_go_back_and_an_earlier_one_to_the_next_caller() {
    let (world, first) = World::used_up();
    let mut waiting: Vec<_> = (0..5).map(|_| world.waiting()).collect();
    drop(waiting.remove(1));
    drop(waiting.remove(2));
    let [mut next, mut another, mut last] = [(); 3].map(|()| world.waiting());
    drop((waiting.pop(), waiting.pop()));
    world.advance(MILLI * 20);
    let seqs =
        [&mut next, &mut another, &mut last].map(|turn| world.seq(turn.id().unwrap()) - first);
    assert_eq!(
        seqs,
        [1, 3, 5],
        "two that were given up, and the end of the line"
    );
    assert_eq!(world.seq(waiting[0].id().unwrap()), first);
    assert_eq!(
        world.lost(),
        2,
        "those of positions 2 and 4 gave up, and none came for them"
    );

    let (world, first) = World::used_up();
    let mut waiting: Vec<_> = (0..100).map(|_| world.waiting()).collect();
    while !waiting.is_empty() {
        drop(waiting.swap_remove(waiting.len() * 5 / 8));
    }
    world.advance(MILLI * 4);
    let next = world.service.try_gen_id().unwrap();
    assert_eq!(
        (world.seq(next), world.lost()),
        (first, 0),
        "no place is left behind"
    );
}

/// A caller that arrives then may know the ID of the position after it.
#[test]
fn a_position_that_was_given_up_is_lost_once_it_is_due() {
    let (world, _) = World::used_up();
    let (given_up, mut behind) = (world.waiting(), world.waiting());
    world.advance(MILLI * 4);
    let known = behind.id().unwrap();
    drop(given_up);
    while world.service.try_gen_id().is_ok() {}
    let mut late = world.waiting();
    assert_eq!(world.lost(), 1);
    world.advance(MILLI * 4);
    assert!(late.id().unwrap() > known);
}

#[test]
fn a_call_that_would_wait_too_long_takes_no_place() {
    let world = World::new(6); // 8 for bursts, then 56 in a second
    while world.service.try_gen_id().is_ok() {}
    let mut waiting = Vec::new();
    let refused = loop {
        let mut turn = Turn::new(&world.service);
        let error = turn.id().unwrap_err();
        match error.retry_after() {
            Some(wait) if wait <= Duration::from_secs(2) => waiting.push(turn),
            _ => break error,
        }
    };
    assert!((112..=128).contains(&waiting.len()), "{}", waiting.len());
    assert_eq!(refused.kind(), ErrorKind::SequenceUsedUp);
    assert_eq!(world.lost(), 0);
}

#[test]
fn a_closed_service_serves_the_calls_that_wait_and_no_other() {
    let (world, _) = World::used_up();
    let (given_up, mut waiting, late) = (world.waiting(), world.waiting(), world.waiting());
    let (before, mut lowest) = (world.lost(), world.waiting());
    drop(given_up);
    world.service.close();
    assert_eq!(world.lost(), before + 1);
    let error = Turn::new(&world.service).id().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Sealed);
    world.advance(MILLI * 4);
    let id = waiting.id().expect("it was in line before");
    assert!(lowest.id().expect("as well") > id);
    drop(late);
    assert_eq!(
        world.lost(),
        before + 2,
        "nothing goes back to a sealed lease"
    );
}

#[test]
fn a_step_back_of_the_clock_delays_a_waiting_call_only() {
    let (world, _) = World::used_up();
    let mut waiting: Vec<_> = (0..100).map(|_| world.waiting()).collect();
    world.clock.set_wall(UnixMillis(1_700_000_000_000 - 3_000));
    let ids = waiting.iter_mut().map(|turn| {
        loop {
            match turn.id() {
                Ok(id) => break id,
                Err(error) => world.advance(error.retry_after().expect("it waits on")),
            }
        }
    });
    let ids: Vec<_> = ids.collect();
    assert!(ids.is_sorted_by(|one, next| world.seq(*one) + 1 == world.seq(*next)));
}

/// Without a place of its own it would wait for as long as there is a line.
#[test]
fn a_batch_is_served_beside_a_line_that_never_ends() {
    let (world, _) = World::used_up();
    let line: Vec<_> = (0..64).map(|_| world.waiting()).collect();
    let (mut line, mut batch, mut ids) = (line, Batch::new(&world.service, 20), Vec::new());
    for _ in 0..200 {
        if batch.fill(|run| ids.extend(run.iter())).is_ok() {
            break;
        }
        world.advance(MILLI);
        for turn in &mut line {
            if turn.id().is_ok() {
                *turn = world.waiting();
            }
        }
    }
    assert_eq!(ids.len(), 20);
}
