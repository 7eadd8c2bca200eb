//! Test suite run against every populator.

mod exhaustive;
mod joins;

use std::collections::HashSet;

use proptest::prelude::*;

use super::subject::IdPopulator as _;
use super::{Populator, PopulatorKind};
use crate::sequence::{Claim, Refusal, Rules, advance};

fn all(position: u64) -> [Populator; 3] {
    PopulatorKind::ALL.map(|kind| Populator::new(kind, position))
}

const RULES: Rules = Rules::new(3, 2, 0);
const NO_BOUND: u64 = u64::MAX;

/// Every sequence of eight steps of a clock that advances, stands still or goes back, on a layout
/// of eight ticks with four IDs each.
#[test]
fn every_history_of_a_tiny_layout_ascends() {
    const STEPS: [i64; 3] = [0, 1, -1];
    for history in 0..3_usize.pow(8) {
        for populator in all(0) {
            let (mut tick, mut model, mut rest) = (1_i64, 0, history);
            for _ in 0..8 {
                tick = (tick + STEPS[rest % 3]).max(0);
                let want = u32::try_from(rest % 5 + 1).unwrap();
                rest /= 3;
                let now = tick.unsigned_abs();
                let expected = advance(model, now, want, &RULES, 26);
                assert_eq!(populator.claim(now, want, &RULES, 26), expected);
                if let Ok(Claim { start, end }) = expected {
                    assert!(start >= model && end > start, "never back");
                    model = end;
                }
                assert_eq!(populator.position(), model);
            }
        }
    }
}

#[test]
fn a_sealed_populator_never_issues_again_and_returns_its_end() {
    for populator in all(5) {
        assert_eq!(
            populator.claim(2, 1, &RULES, NO_BOUND),
            Ok(Claim { start: 8, end: 9 })
        );
        for again in [false, true] {
            assert_eq!(populator.seal(), Some(9), "sealed before: {again}");
            for tick in 0..8 {
                assert_eq!(
                    populator.claim(tick, 1, &RULES, NO_BOUND),
                    Err(Refusal::Sealed)
                );
            }
        }
    }
}

#[test]
fn populator_names_match_the_settings() {
    let names = PopulatorKind::ALL.map(PopulatorKind::name);
    assert_eq!(names, ["lock", "sync", "atomic"]);
}

/// The positions taken by threads that want this many at once, up to the end of the layout, and how often
/// each was refused at the end of a tick.
fn race(populator: &Populator, wanted: [u32; 4], rules: &Rules, end: u64) -> Vec<(Vec<u64>, u64)> {
    let take = move |want| {
        let (mut mine, mut tick, mut refused) = (Vec::new(), 0, 0_u64);
        loop {
            match populator.claim(tick, want, rules, end) {
                Ok(claim) => mine.extend(claim.start..claim.end),
                Err(Refusal::SequenceUsedUp { until }) => {
                    refused += 1;
                    tick = until;
                }
                Err(Refusal::AwaitingLease) => return (mine, refused),
                Err(other) => panic!("{other:?}"),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = wanted.map(|want| scope.spawn(move || take(want)));
        threads.map(|thread| thread.join().unwrap()).into()
    })
}

#[test]
fn racing_threads_get_every_position_exactly_once() {
    let rules = Rules::new(10, 10, 0);
    let end = 1 << 14;
    // Callers of batches may leave behind the positions reserved for single claims.
    for (wanted, room) in [([1; 4], 0), ([1, 2, 3, 4], 64)] {
        for populator in all(0) {
            let per_thread = race(&populator, wanted, &rules, end);
            let mut seen = HashSet::new();
            for (mine, _) in &per_thread {
                assert!(mine.is_sorted(), "each thread sees its own increase");
                assert!(
                    mine.iter().all(|position| seen.insert(*position)),
                    "a position twice"
                );
            }
            let left_out = (0..end).find(|at| at % 1024 < 1024 - room && !seen.contains(at));
            assert_eq!(left_out, None, "none is left out except the reserved ones");
            assert!(
                per_thread.iter().any(|(_, refused)| *refused > 0),
                "no overflow was crossed"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Compared with the simplest model: the set of issued positions.
    #[test]
    fn any_history_issues_no_position_twice(
        steps in proptest::collection::vec((-3i64..6, 1u32..40, 0u64..3), 1..120)
    ) {
        let rules = Rules::new(12, 4, 0);
        for populator in all(0) {
            let (mut tick, mut bound) = (100i64, rules.position(101));
            let mut issued = HashSet::new();
            let mut highest = None;
            for (step, want, extend) in &steps {
                tick = (tick + step).max(0);
                let now = tick.unsigned_abs();
                bound = bound.max(rules.position(now + extend));
                if let Ok(claim) = populator.claim(now, *want, &rules, bound) {
                    for position in claim.start..claim.end {
                        prop_assert!(issued.insert(position));
                        prop_assert!(Some(position) > highest);
                        prop_assert!(position < bound && position >= rules.position(now));
                        highest = Some(position);
                    }
                }
            }
        }
    }
}
