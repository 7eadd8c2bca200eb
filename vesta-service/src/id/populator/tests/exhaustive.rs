//! The generation rules on layouts so small that every sequence of operations can be tried: each
//! populator is compared with a set and a loop.

mod explore;
mod model;
mod planted;

use crate::sequence::{Rules, advance};
use explore::{Counts, Known, Scenario, Subject, explore, explore_more, replay};
use model::Small;
use planted::{FAULTS, Faulty};

type Lock = explore::Real<0>;
type Sync = explore::Real<1>;
type Atomic = explore::Real<2>;

/// The length of sequences in a full run, and a shorter one otherwise.
fn up_to(length: usize, shorter: usize) -> usize {
    if std::env::var_os("VESTA_TEST_FULL").is_some() {
        length
    } else {
        length - shorter
    }
}

/// Scenarios shortly before each point at which something runs out.
fn scenarios() -> Vec<Scenario> {
    let at = |name, small: Small, first, tick, bound| Scenario {
        name,
        small,
        first,
        tick,
        bound,
        gives_back: false,
    };
    vec![
        at("the sequence runs out", Small::new(3, 2, 0), 10, 2, 100),
        at(
            "the sequence and the bound run out",
            Small::new(3, 2, 0),
            9,
            2,
            12,
        ),
        at(
            "the bound lies inside a tick",
            Small::new(3, 2, 0),
            8,
            2,
            10,
        ),
        at("the time field runs out", Small::new(2, 2, 0), 9, 2, 100),
        at(
            "time, sequence and bound run out",
            Small::new(2, 2, 0),
            13,
            3,
            15,
        ),
        at(
            "the clock is behind the position",
            Small::new(2, 2, 0),
            10,
            1,
            13,
        ),
        at("the future may be borrowed", Small::new(3, 1, 1), 6, 3, 9),
        at(
            "the future may be borrowed up to the end",
            Small::new(2, 1, 2),
            3,
            1,
            7,
        ),
        at("one position in a tick", Small::new(2, 0, 0), 1, 1, 3),
        at(
            "ticks begin somewhere inside",
            Small::beginning(3, 2, 0, 4, 7),
            8,
            2,
            19,
        ),
        at(
            "ticks begin at 0 or 1",
            Small::beginning(2, 1, 0, 2, 3),
            3,
            1,
            7,
        ),
        at(
            "ticks begin inside, with a burst",
            Small::beginning(2, 2, 1, 3, 1),
            5,
            1,
            14,
        ),
        at(
            "a slice of a tick runs out",
            Small::paced(3, 2, 0, 1),
            10,
            5,
            100,
        ),
        at(
            "slices, with a burst, up to the bound",
            Small::paced(2, 2, 1, 2),
            5,
            5,
            14,
        ),
        at("slices, up to the end", Small::paced(2, 1, 0, 1), 5, 5, 7),
    ]
}

fn print(what: &str, counts: Counts) {
    println!("{what}: {counts:?}");
}

/// A run that never met some kind of refusal has proved nothing about it.
fn assert_met_everything(counts: Counts) {
    let Counts {
        claimed,
        used_up,
        awaiting,
        exhausted,
        sealed,
        ..
    } = counts;
    assert!(
        [claimed, used_up, awaiting, exhausted, sealed]
            .iter()
            .all(|count| *count > 10_000),
        "{counts:?}"
    );
}

fn every_sequence<S: Subject>(populator: &str) {
    let length = up_to(9, 2);
    let mut all = Counts::default();
    for scenario in scenarios() {
        all.add(explore::<S>(&scenario, length).unwrap());
    }
    print(
        &format!("{populator}, every sequence of up to {length} operations"),
        all,
    );
    assert_met_everything(all);
}

#[test]
fn every_sequence_lock() {
    every_sequence::<Lock>("lock");
}

#[test]
fn every_sequence_sync() {
    every_sequence::<Sync>("sync");
}

#[test]
fn every_sequence_atomic() {
    every_sequence::<Atomic>("atomic");
}

/// The same scenarios, with claims that are given back.
fn giving_back() -> Vec<Scenario> {
    let scenarios = scenarios().into_iter();
    scenarios
        .map(|scenario| Scenario {
            gives_back: true,
            ..scenario
        })
        .collect()
}

#[test]
fn claim_is_taken_back_if_it_is_the_last_one_and_never_after_sealing() {
    let length = up_to(8, 2);
    let mut all = Counts::default();
    for scenario in giving_back() {
        all.add(explore::<Lock>(&scenario, length).unwrap());
        all.add(explore::<Sync>(&scenario, length).unwrap());
        all.add(explore::<Atomic>(&scenario, length).unwrap());
    }
    print(
        &format!("all three, claims given back, up to {length} operations"),
        all,
    );
    assert!(
        all.given_back.iter().all(|count| *count > 10_000),
        "{all:?}"
    );
}

/// Starts from every position, tick and bound.
fn every_start<S: Subject>(populator: &str) {
    let length = up_to(4, 1);
    let mut layouts = Vec::new();
    for (time_bits, seq_bits) in [(1, 0), (1, 1), (2, 0), (2, 1), (1, 2), (2, 2), (3, 1)] {
        for burst in 0..=2 {
            for below in [1, 2, 4]
                .into_iter()
                .filter(|below| *below <= 1 << seq_bits)
            {
                for salt in 0..if below == 1 { 1 } else { 2 } {
                    layouts.push(Small::beginning(time_bits, seq_bits, burst, below, salt));
                }
            }
        }
    }
    let mut all = Counts::default();
    let mut starts = 0;
    for small in layouts {
        // Operations depend on whether the first position is even.
        let mut known = [Known::new(), Known::new()];
        for first in 0..=small.end() {
            for tick in 0..=small.ticks + 1 {
                for bound in 0..=small.end() + 1 {
                    let small = small.clone();
                    let scenario = Scenario {
                        name: "any start",
                        small,
                        first,
                        tick,
                        bound,
                        gives_back: false,
                    };
                    let known = &mut known[usize::from(first.is_multiple_of(2))];
                    all.add(explore_more::<S>(&scenario, length, known).unwrap());
                    starts += 1;
                }
            }
        }
    }
    let what = format!("{populator}, {starts} starts, every sequence of up to {length} operations");
    print(&what, all);
    assert_met_everything(all);
}

#[test]
fn every_start_lock() {
    every_start::<Lock>("lock");
}

#[test]
fn every_start_sync() {
    every_start::<Sync>("sync");
}

#[test]
fn every_start_atomic() {
    every_start::<Atomic>("atomic");
}

/// The same on populators that are never copied, which proves that copies miss no hidden state.
#[test]
fn every_sequence_from_the_beginning() {
    let length = up_to(7, 2);
    let mut all = Counts::default();
    for scenario in scenarios() {
        all.add(replay::<Lock>(&scenario, length).unwrap());
        all.add(replay::<Sync>(&scenario, length).unwrap());
        all.add(replay::<Atomic>(&scenario, length).unwrap());
    }
    print(
        &format!("all three, every sequence of {length} operations from the beginning"),
        all,
    );
    assert_met_everything(all);
}

/// The start of each tick follows the published first numbers of splitmix64 with seed 0: a weaker mix
/// would send low traffic to few shards again.
#[test]
fn ticks_start_at_the_published_numbers_of_splitmix64() {
    let published = [
        0xe220_a839_7b1d_cdaf_u64,
        0x6e78_9e6a_a1b9_65f4,
        0x06c4_5d18_8009_454f,
    ];
    let mut state = 0_u64;
    for number in published {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        for tick in [1, 5, 0x3f_ffff] {
            let rules = Rules::new(22, 40, 0).starting_below(1 << 40, state ^ tick);
            let first = advance(0, tick, 1, &rules, u64::MAX).unwrap().start;
            assert_eq!(first, (tick << 40) + number % (1 << 40), "tick {tick}");
        }
    }
}

#[test]
fn every_planted_fault_is_detected() {
    fn flaw<const FAULT: usize>() -> Option<String> {
        let scenarios: Vec<_> = scenarios().into_iter().chain(giving_back()).collect();
        scenarios
            .iter()
            .find_map(|scenario| explore::<Faulty<FAULT>>(scenario, 6).err())
    }
    assert_eq!(flaw::<0>(), None, "{} is wrong with this one", FAULTS[0]);
    let noticed = [
        flaw::<1>(),
        flaw::<2>(),
        flaw::<3>(),
        flaw::<4>(),
        flaw::<5>(),
        flaw::<6>(),
        flaw::<7>(),
        flaw::<8>(),
        flaw::<9>(),
        flaw::<10>(),
        flaw::<11>(),
        flaw::<12>(),
        flaw::<13>(),
    ];
    for (fault, flaw) in FAULTS[1..].iter().zip(noticed) {
        println!(
            "{fault}:\n  {}",
            flaw.unwrap_or_else(|| panic!("not noticed: {fault}"))
        );
    }
}
