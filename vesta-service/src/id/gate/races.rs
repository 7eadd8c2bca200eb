//! The fast path in every interleaving with callers that open it, seal the populator, and extend the bound.

use std::ops::Range;
use std::sync::Arc;

use super::*;
use crate::populator::PopulatorKind;
use crate::populator::subject::IdPopulator as _;
use crate::races::{Ends, Thread, at_once, exhaustively, unique_and_growing};
use crate::sequence::Rules;

/// Four positions in each tick.
const RULES: Rules = Rules::new(8, 2, 0);
/// Two of them are left in tick 5, which the clock shows first.
const FIRST: u64 = RULES.position(5) + 2;

type Taken = Vec<Range<u64>>;

struct Model {
    populator: Populator,
    gate: Gate,
    /// Bound up to which a lease may issue. A caller sees it only through the gate and the bound's own ordering.
    durable: AtomicU64,
    bound: AtomicU64,
}

impl Model {
    /// The gate is open in tick 5.
    fn new(kind: PopulatorKind, bound: u64) -> Arc<Self> {
        let populator = Populator::new(kind, FIRST);
        let (gate, durable, bound) = (Gate::closed(), AtomicU64::new(bound), AtomicU64::new(bound));
        let end = RULES.end(FIRST, 5, 1, bound.load(Ordering::Relaxed));
        gate.open(5, end, end);
        populator.position(); // makes the lazily created primitives
        durable.load(Ordering::Relaxed);
        Arc::new(Self {
            populator,
            gate,
            durable,
            bound,
        })
    }

    /// The fast path, with the clock's reading at each attempt.
    fn pass(self: &Arc<Self>, shown: &'static [u64]) -> Thread<Taken> {
        let this = self.clone();
        Box::new(move || {
            let claims = shown.iter().filter_map(|shown| {
                let claim = this.one(*shown)?;
                assert!(
                    claim.start >= RULES.position(*shown),
                    "{claim:?} in tick {shown}"
                );
                Some(this.checked(claim))
            });
            claims.collect()
        })
    }

    fn one(&self, shown: u64) -> Option<Claim> {
        let start = self.populator.take_one(self.gate.end(shown)?, |it| it)?;
        let end = start + 1;
        Some(Claim { start, end })
    }

    /// The slow path.
    fn claim(self: &Arc<Self>, now: u64) -> Thread<Taken> {
        let this = self.clone();
        Box::new(move || {
            let bound = this.bound.load(Ordering::Acquire);
            let Ok(claim) = this.populator.claim(now, 1, &RULES, bound) else {
                return Vec::new();
            };
            let end = RULES.end(claim.start, now, 1, bound);
            this.gate.open(now, end, end);
            vec![this.checked(claim)]
        })
    }

    fn checked(&self, claim: Claim) -> Range<u64> {
        let durable = self.durable.load(Ordering::Relaxed);
        assert!(
            claim.end <= durable,
            "{claim:?} lies beyond the record's {durable}"
        );
        claim.start..claim.end
    }
}

#[test]
fn a_caller_passes_while_the_gate_opens_for_the_next_tick() {
    for kind in PopulatorKind::ALL {
        let ends = Ends::new();
        let note = ends.clone();
        exhaustively(kind.name(), move || {
            let model = Model::new(kind, u64::MAX);
            let taken = at_once(vec![model.claim(6), model.pass(&[5, 6, 6])]);
            unique_and_growing(&taken);
            note.note(
                taken[1]
                    .iter()
                    .map(|taken| RULES.tick(taken.start))
                    .collect::<Vec<_>>(),
            );
        });
        let ends = ends.get();
        assert!(
            ends.contains(&vec![5]) && ends.contains(&vec![6, 6]),
            "{ends:?}"
        );
    }
}

#[test]
fn two_callers_open_the_gate_and_one_is_late() {
    for kind in PopulatorKind::ALL {
        exhaustively(kind.name(), move || {
            let model = Model::new(kind, u64::MAX);
            unique_and_growing(&at_once(vec![
                model.claim(5),
                model.claim(6),
                model.pass(&[6]),
            ]));
        });
    }
}

#[test]
fn the_populator_is_sealed_while_a_caller_passes() {
    for kind in PopulatorKind::ALL {
        let ends = Ends::new();
        let note = ends.clone();
        exhaustively(kind.name(), move || {
            let model = Model::new(kind, u64::MAX);
            let this = model.clone();
            let seal: Thread<Taken> = Box::new(move || {
                this.populator.seal();
                assert_eq!(this.one(5), None, "never again");
                assert_eq!(this.gate.pass(&this.populator, 5, 2), None, "never again");
                Vec::new()
            });
            let all = unique_and_growing(&at_once(vec![model.pass(&[5, 5]), seal]));
            let end = all.last().map_or(FIRST, |last| last.end);
            assert_eq!(
                model.populator.seal(),
                Some(end),
                "sealed one past the last position"
            );
            note.note(all.len());
        });
        assert!(
            ends.get().iter().eq(&[0, 1, 2]),
            "sealed before, between and after the calls"
        );
    }
}

#[test]
fn the_bound_is_extended_while_the_gate_opens() {
    for kind in PopulatorKind::ALL {
        let ends = Ends::new();
        let note = ends.clone();
        exhaustively(kind.name(), move || {
            let model = Model::new(kind, FIRST + 1);
            let this = model.clone();
            let extend: Thread<Taken> = Box::new(move || {
                this.durable.store(FIRST + 2, Ordering::Relaxed);
                this.bound.store(FIRST + 2, Ordering::Release);
                Vec::new()
            });
            let threads = vec![model.pass(&[5, 5]), model.claim(5), extend];
            note.note(unique_and_growing(&at_once(threads)).len());
        });
        assert!(
            ends.get().iter().eq(&[1, 2]),
            "the new bound came too late, and in time"
        );
    }
}

/// The claim that opened the gate is given back: a caller that passed before keeps its position.
#[test]
fn the_claim_that_opened_the_gate_is_given_back() {
    for kind in PopulatorKind::ALL {
        let ends = Ends::new();
        let note = ends.clone();
        exhaustively(kind.name(), move || {
            let model = Model::new(kind, u64::MAX);
            let this = model.clone();
            let cancelled: Thread<Taken> = Box::new(move || {
                let claim = this.populator.claim(6, 2, &RULES, u64::MAX).unwrap();
                this.gate.open(6, RULES.position(7), RULES.position(7));
                match this.populator.give_back(claim) {
                    true => Vec::new(),
                    false => vec![this.checked(claim)],
                }
            });
            let taken = at_once(vec![cancelled, model.pass(&[5, 6])]);
            unique_and_growing(&taken);
            note.note((taken[0].len(), taken[1].len()));
        });
        let ends = ends.get();
        assert!(ends.contains(&(0, 1)) && ends.contains(&(1, 1)), "{ends:?}");
    }
}

/// If opened before its own claim, it would let a position of the previous tick pass.
#[test]
#[should_panic(expected = "in tick 6")]
fn planted_opened_before_the_claim() {
    exhaustively("planted fault", || {
        let model = Model::new(PopulatorKind::Atomic, u64::MAX);
        let this = model.clone();
        let hasty: Thread<Taken> = Box::new(move || {
            this.gate.open(6, RULES.position(7), 0);
            Vec::new()
        });
        at_once(vec![model.pass(&[6]), hasty]);
    });
}

/// The fault is in the memory ordering only.
#[test]
#[should_panic(expected = "lies beyond the record's")]
fn planted_opened_in_no_order() {
    exhaustively("planted fault", || {
        let model = Model::new(PopulatorKind::Atomic, FIRST);
        let this = model.clone();
        let careless: Thread<Taken> = Box::new(move || {
            this.durable.store(FIRST + 1, Ordering::Relaxed);
            this.gate.end.store(FIRST + 1, Ordering::Relaxed);
            Vec::new()
        });
        at_once(vec![model.pass(&[5]), careless]);
    });
}
