//! The populators in every interleaving of a few callers.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::subject::IdPopulator;
use super::*;
use crate::races::{Ends, Thread, at_once, bounded, exhaustively, unique_and_growing};
use crate::sync::{AtomicU64, Ordering};

/// Four positions in each tick.
const RULES: Rules = Rules::new(8, 2, 0);
const FIRST: u64 = RULES.position(5);
const NO_BOUND: u64 = u64::MAX;

#[derive(Debug, Clone, Copy)]
enum Call {
    Claim {
        tick: u64,
        want: u32,
        bound: u64,
    },
    /// Gives back the caller's last claim.
    GiveBack,
    Seal,
}

const ONE: Call = Call::Claim {
    tick: 5,
    want: 1,
    bound: NO_BOUND,
};

#[derive(Debug, Default)]
struct Seen {
    taken: Vec<Range<u64>>,
    refusals: Vec<Refusal>,
    sealed_at: Option<u64>,
    given_back: usize,
}

/// Runs several threads with these calls, and checks the invariants in every order.
fn race(populator: Arc<dyn IdPopulator>, threads: &[&'static [Call]]) -> Vec<Seen> {
    populator.position(); // makes the lazily created primitives
    let over = Arc::new(AtomicBool::new(false));
    let callers = threads.iter().copied().map(|calls| {
        let (populator, over) = (populator.clone(), over.clone());
        Box::new(move || make(&*populator, &over, calls)) as Thread<Seen>
    });
    let seen = at_once(callers.collect());

    let all = unique_and_growing(seen.iter().map(|seen| &seen.taken));
    let end = all.last().map_or(FIRST, |last| last.end);
    assert_eq!(populator.position(), end, "one past the last position");
    for sealed_at in seen.iter().filter_map(|seen| seen.sealed_at) {
        assert_eq!(sealed_at, end, "sealed one past the last position");
    }
    seen
}

fn make(populator: &dyn IdPopulator, over: &AtomicBool, calls: &[Call]) -> Seen {
    let mut seen = Seen::default();
    for call in calls {
        match *call {
            Call::Claim { tick, want, bound } => {
                let was_over = over.load(Ordering::SeqCst);
                match populator.claim(tick, want, &RULES, bound) {
                    Ok(Claim { start, end }) => {
                        assert!(!was_over, "taken after sealing: {start}..{end}");
                        assert!(end <= bound, "beyond the bound: {start}..{end}");
                        seen.taken.push(start..end);
                    }
                    Err(refusal) => seen.refusals.push(refusal),
                }
            }
            Call::GiveBack => {
                let was_over = over.load(Ordering::SeqCst);
                let last = seen.taken.last().map(|last| Claim {
                    start: last.start,
                    end: last.end,
                });
                // A claim that cannot be given back is lost.
                if last.is_some_and(|last| populator.give_back(last)) {
                    assert!(!was_over, "taken back after sealing: {last:?}");
                    seen.taken.pop();
                    seen.given_back += 1;
                }
            }
            Call::Seal => {
                seen.sealed_at = Some(populator.seal());
                over.store(true, Ordering::SeqCst);
            }
        }
    }
    seen
}

fn new(kind: PopulatorKind) -> Arc<dyn IdPopulator> {
    Arc::new(Populator::new(kind, FIRST))
}

/// One of them reads a clock that has not advanced yet.
#[test]
fn two_callers_reach_the_end_of_a_tick() {
    const CALLS: [&[Call]; 2] = [
        &[
            Call::Claim {
                tick: 5,
                want: 3,
                bound: NO_BOUND,
            },
            ONE,
        ],
        &[
            ONE,
            Call::Claim {
                tick: 6,
                want: 2,
                bound: NO_BOUND,
            },
        ],
    ];
    for kind in PopulatorKind::ALL {
        let ends = Ends::new();
        let note = ends.clone();
        exhaustively(kind.name(), move || {
            let seen = race(new(kind), &CALLS);
            note.note(
                seen.iter()
                    .map(|seen| seen.taken.first().map(|t| t.start))
                    .collect(),
            );
        });
        let ends: &Vec<Vec<_>> = &ends.get().iter().cloned().collect();
        assert!(ends.len() >= 2, "either came first: {ends:?}");
    }
}

#[test]
fn batches_at_the_bound() {
    const BATCH: Call = Call::Claim {
        tick: 5,
        want: 2,
        bound: FIRST + 3,
    };
    for kind in PopulatorKind::ALL {
        exhaustively(kind.name(), move || {
            let seen = race(new(kind), &[&[BATCH], &[BATCH, BATCH]]);
            let taken: u64 = seen
                .iter()
                .flat_map(|seen| &seen.taken)
                .map(|taken| taken.end - taken.start)
                .sum();
            assert_eq!(
                taken, 3,
                "everything below the bound is issued, and nothing else"
            );
            let refusals: Vec<_> = seen.iter().flat_map(|seen| &seen.refusals).collect();
            assert_eq!(refusals, [&Refusal::AwaitingLease]);
        });
    }
}

#[test]
fn a_caller_races_with_sealing() {
    for kind in PopulatorKind::ALL {
        let ends = Ends::new();
        let note = ends.clone();
        exhaustively(kind.name(), move || {
            let seen = race(new(kind), &[&[ONE, ONE], &[Call::Seal]]);
            note.note(seen[0].taken.len());
        });
        assert!(
            ends.get().iter().eq(&[0, 1, 2]),
            "sealed before, between and after the calls"
        );
    }
}

#[test]
fn three_callers() {
    for kind in PopulatorKind::ALL {
        bounded(kind.name(), move || {
            drop(race(new(kind), &[&[ONE, ONE], &[ONE], &[ONE]]))
        });
    }
}

#[test]
fn two_callers_race_with_two_that_seal() {
    for kind in PopulatorKind::ALL {
        bounded(kind.name(), move || {
            drop(race(
                new(kind),
                &[&[ONE, ONE], &[ONE], &[Call::Seal], &[Call::Seal]],
            ));
        });
    }
}

/// Only the last claim can be given back, while other callers claim, give back or seal.
#[test]
fn only_the_last_claim_can_be_given_back() {
    const TWO: Call = Call::Claim {
        tick: 5,
        want: 2,
        bound: NO_BOUND,
    };
    const OTHERS: [&[Call]; 3] = [&[ONE, ONE], &[TWO, Call::GiveBack], &[Call::Seal]];
    for kind in PopulatorKind::ALL {
        for other in OTHERS {
            let ends = Ends::new();
            let note = ends.clone();
            exhaustively(kind.name(), move || {
                let seen = race(new(kind), &[&[TWO, Call::GiveBack], other]);
                note.note(seen[0].given_back);
            });
            assert!(
                ends.get().iter().eq(&[0, 1]),
                "both outcomes occur: {other:?}"
            );
        }
    }
}

/// Plausible faults in a modified populator.
#[derive(Debug)]
struct Faulty {
    next: AtomicU64,
    sealed: AtomicU64,
    swaps: bool,
}

impl Faulty {
    fn new(swaps: bool) -> Arc<Self> {
        Arc::new(Self {
            next: AtomicU64::new(FIRST),
            sealed: AtomicU64::new(0),
            swaps,
        })
    }
}

impl IdPopulator for Faulty {
    fn claim(&self, now_tick: u64, want: u32, rules: &Rules, bound: u64) -> Result<Claim, Refusal> {
        loop {
            if self.sealed.load(Ordering::SeqCst) != 0 {
                return Err(Refusal::Sealed);
            }
            let next = self.next.load(Ordering::SeqCst);
            let claim = crate::sequence::advance(next, now_tick, want, rules, bound)?;
            if !self.swaps {
                self.next.store(claim.end, Ordering::SeqCst);
                return Ok(claim);
            }
            let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
            if self
                .next
                .compare_exchange(next, claim.end, success, failure)
                .is_ok()
            {
                return Ok(claim);
            }
        }
    }

    fn seal(&self) -> u64 {
        let next = self.next.load(Ordering::SeqCst);
        self.sealed.store(1, Ordering::SeqCst);
        next
    }

    fn give_back(&self, claim: Claim) -> bool {
        let last = self.next.load(Ordering::SeqCst) == claim.end;
        if last {
            self.next.store(claim.start, Ordering::SeqCst);
        }
        last
    }

    fn position(&self) -> u64 {
        self.sealed.load(Ordering::SeqCst);
        self.next.load(Ordering::SeqCst)
    }
}

#[test]
#[should_panic(expected = "given twice")]
fn planted_load_then_store() {
    exhaustively("planted fault", || {
        drop(race(Faulty::new(false), &[&[ONE], &[ONE]]))
    });
}

#[test]
#[should_panic(expected = "sealed one past the last position")]
fn planted_seal_in_two_steps() {
    exhaustively("planted fault", || {
        drop(race(Faulty::new(true), &[&[ONE], &[Call::Seal]]))
    });
}

#[test]
#[should_panic(expected = "one past the last position")]
fn planted_give_back_in_two_steps() {
    const CALLS: [&[Call]; 2] = [&[ONE, Call::GiveBack, ONE], &[ONE, ONE]];
    exhaustively("planted fault", || drop(race(Faulty::new(true), &CALLS)));
}
