//! Explores every sequence of operations, and compares it with the model.
//!
//! Sequences that lead to the same world go on alike, so what follows it is tried once and counted for each of them.

use std::collections::HashMap;

use super::model::{Model, Small};
use crate::populator::subject::IdPopulator;
use crate::populator::{Populator, PopulatorKind};
use crate::sequence::{Claim, Refusal, Rules};

/// A populator that can be put into any state, so that sequences with a common prefix share work.
pub(crate) trait Subject: IdPopulator + Sized {
    fn at(position: u64) -> Self;

    /// A copy. The observable state of a populator is its whole state; `replay` checks that.
    fn copy(&self, sealed: bool) -> Self {
        let copy = Self::at(self.position());
        if sealed {
            copy.seal();
        }
        copy
    }
}

/// The populator of the kind with this index.
#[derive(Debug)]
pub(crate) struct Real<const KIND: usize>(Populator);

impl<const KIND: usize> IdPopulator for Real<KIND> {
    fn claim(&self, now_tick: u64, want: u32, rules: &Rules, bound: u64) -> Result<Claim, Refusal> {
        self.0.claim(now_tick, want, rules, bound)
    }

    fn seal(&self) -> u64 {
        IdPopulator::seal(&self.0)
    }

    fn give_back(&self, claim: Claim) -> bool {
        self.0.give_back(claim)
    }

    fn position(&self) -> u64 {
        self.0.position()
    }
}

impl<const KIND: usize> Subject for Real<KIND> {
    fn at(position: u64) -> Self {
        Self(Populator::new(PopulatorKind::ALL[KIND], position))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    /// Claims this many positions.
    Claim(u32),
    /// The clock advances.
    Forward(u64),
    /// The clock goes back.
    Back(u64),
    /// The clock shows the maximum time.
    Forever,
    /// The bound is extended.
    Extend(u64),
    Seal,
    /// Gives back the last claim that was not given back (0), or the one before it (1).
    GiveBack(usize),
}

/// The initial state of sequences, and the operations they consist of.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) small: Small,
    pub(crate) first: u64,
    pub(crate) tick: u64,
    pub(crate) bound: u64,
    pub(crate) gives_back: bool,
}

impl Scenario {
    pub(crate) fn alphabet(&self) -> Vec<Op> {
        let more_than_a_tick = u32::try_from(self.small.per_tick + 1).unwrap();
        if self.gives_back {
            return vec![
                Op::Claim(1),
                Op::Claim(2),
                Op::GiveBack(0),
                Op::GiveBack(1),
                Op::Forward(1),
                Op::Back(1),
                Op::Extend(self.small.per_tick),
                Op::Seal,
            ];
        }
        // In half of the scenarios a jumping clock moves a few ticks, in the others to an extreme value.
        let jump = if self.first.is_multiple_of(2) {
            Op::Forward(3)
        } else {
            Op::Forever
        };
        vec![
            Op::Claim(1),
            Op::Claim(2),
            Op::Claim(more_than_a_tick),
            Op::Forward(1),
            Op::Back(1),
            jump,
            Op::Extend(1),
            Op::Extend(self.small.per_tick),
            Op::Seal,
        ]
    }
}

/// Coverage of the exploration.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    /// Sequences, each different from every other.
    pub(crate) sequences: u64,
    /// Operations on a populator.
    pub(crate) operations: u64,
    pub(crate) claimed: u64,
    pub(crate) used_up: u64,
    pub(crate) awaiting: u64,
    pub(crate) exhausted: u64,
    pub(crate) sealed: u64,
    /// Claims that went back, and those that could not.
    pub(crate) given_back: [u64; 2],
}

impl Counts {
    fn count(&mut self, answer: Result<Claim, Refusal>) {
        *match answer {
            Ok(_) => &mut self.claimed,
            Err(Refusal::SequenceUsedUp { .. }) => &mut self.used_up,
            Err(Refusal::AwaitingLease) => &mut self.awaiting,
            Err(Refusal::TimeExhausted) => &mut self.exhausted,
            Err(Refusal::Sealed) => &mut self.sealed,
            Err(refusal) => panic!("{refusal:?} of one thread"),
        } += 1;
    }

    pub(crate) fn add(&mut self, other: Counts) {
        self.sequences += other.sequences;
        self.operations += other.operations;
        self.claimed += other.claimed;
        self.used_up += other.used_up;
        self.awaiting += other.awaiting;
        self.exhausted += other.exhausted;
        self.sealed += other.sealed;
        (0..2).for_each(|at| self.given_back[at] += other.given_back[at]);
    }
}

/// Everything that a sequence has changed, except the populator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct World {
    tick: u64,
    bound: u64,
    model: Model,
    /// The highest position issued so far, to check the invariant independently of the model.
    highest: Option<u64>,
    /// The last claims that a caller holds, and the highest position before each, if any may be given back.
    held: [Option<(Claim, Option<u64>)>; 2],
}

impl World {
    fn new(scenario: &Scenario) -> Self {
        let Scenario {
            first, tick, bound, ..
        } = *scenario;
        Self {
            tick,
            bound,
            model: Model::new(first),
            highest: None,
            held: [None; 2],
        }
    }

    /// Performs one operation on both and compares the results.
    fn step<S: Subject>(
        &mut self,
        subject: &S,
        op: Op,
        Scenario {
            small, gives_back, ..
        }: &Scenario,
        counts: &mut Counts,
    ) -> Result<(), String> {
        match op {
            Op::Claim(want) => {
                counts.operations += 1;
                let answer = subject.claim(self.tick, want, &small.rules, self.bound);
                let expected = self.model.claim(small, self.tick, want, self.bound);
                if answer != expected {
                    return Err(format!("{answer:?}, expected {expected:?}"));
                }
                if let Ok(Claim { start, end }) = answer {
                    let ascends = self.highest.is_none_or(|highest| start > highest);
                    if !ascends || end <= start || end > self.bound || end > small.end() {
                        return Err(format!("{answer:?} after {:?}", self.highest));
                    }
                    if *gives_back {
                        self.held = [Some((Claim { start, end }, self.highest)), self.held[0]];
                    }
                    self.highest = Some(end - 1);
                }
                counts.count(answer);
            }
            Op::Forward(ticks) => self.tick = self.tick.saturating_add(ticks),
            Op::Back(ticks) => self.tick = self.tick.saturating_sub(ticks),
            Op::Forever => self.tick = u64::MAX,
            Op::GiveBack(_) => {} // below
            Op::Extend(by) => self.bound = self.bound.saturating_add(by),
            Op::Seal => {
                counts.operations += 1;
                self.model.sealed = true;
                let (sealed_at, expected) = (subject.seal(), self.model.position());
                if sealed_at != expected {
                    return Err(format!("sealed at {sealed_at}, expected {expected}"));
                }
            }
        }
        if let Op::GiveBack(at) = op
            && let Some((claim, before)) = self.held[at]
        {
            counts.operations += 1;
            let answer = small.rules.may_give_back(claim) && subject.give_back(claim);
            let expected = self.model.give_back(small, claim);
            if answer != expected {
                return Err(format!(
                    "{claim:?} given back: {answer}, expected {expected}"
                ));
            }
            counts.given_back[usize::from(!answer)] += 1;
            if answer {
                // Positions that may be issued again have never been issued.
                (self.held, self.highest) = ([self.held[1], None], before);
            }
        }
        let (position, expected) = (subject.position(), self.model.position());
        if position != expected {
            return Err(format!("position is {position}, expected {expected}"));
        }
        Ok(())
    }
}

fn explained(scenario: &Scenario, path: &[Op], flaw: &str) -> String {
    let Scenario {
        name,
        first,
        tick,
        bound,
        ..
    } = scenario;
    format!("{name} (position {first}, tick {tick}, bound {bound}): {path:?}: {flaw}")
}

/// Counts of all sequences that begin in a world, by the number of operations that are left.
pub(crate) type Known = HashMap<(World, usize), Counts>;

/// Explores every sequence of up to `length` operations, depth first.
pub(crate) fn explore<S: Subject>(scenario: &Scenario, length: usize) -> Result<Counts, String> {
    explore_more::<S>(scenario, length, &mut Known::new())
}

/// The same, after scenarios of the same layout and operations.
pub(crate) fn explore_more<S: Subject>(
    scenario: &Scenario,
    length: usize,
    known: &mut Known,
) -> Result<Counts, String> {
    fn below<S: Subject>(
        scenario: &Scenario,
        alphabet: &[Op],
        (subject, world): (&S, &World),
        path: &mut Vec<Op>,
        left: usize,
        known: &mut Known,
    ) -> Result<Counts, String> {
        if let Some(counts) = known.get(&(*world, left)) {
            return Ok(*counts);
        }
        let mut counts = Counts::default();
        for op in alphabet {
            path.push(*op);
            let mut then = *world;
            let changed = matches!(op, Op::Claim(_) | Op::Seal | Op::GiveBack(_))
                .then(|| subject.copy(world.model.sealed));
            let subject = changed.as_ref().unwrap_or(subject);
            counts.sequences += 1;
            then.step(subject, *op, scenario, &mut counts)
                .map_err(|flaw| explained(scenario, path, &flaw))?;
            if left > 1 {
                let after = (subject, &then);
                counts.add(below(scenario, alphabet, after, path, left - 1, known)?);
            }
            path.pop();
        }
        known.insert((*world, left), counts);
        Ok(counts)
    }
    let (subject, world) = (S::at(scenario.first), World::new(scenario));
    let start = (&subject, &world);
    below(
        scenario,
        &scenario.alphabet(),
        start,
        &mut Vec::new(),
        length,
        known,
    )
}

/// Runs every sequence of exactly `length` operations, each on a fresh populator from the beginning.
pub(crate) fn replay<S: Subject>(scenario: &Scenario, length: usize) -> Result<Counts, String> {
    let alphabet = scenario.alphabet();
    let mut counts = Counts::default();
    let pow = |place: usize| (0..place).fold(1, |power, _| power * alphabet.len());
    for number in 0..pow(length) {
        let (subject, mut world) = (S::at(scenario.first), World::new(scenario));
        let digit = |place| alphabet[number / pow(place) % alphabet.len()];
        for place in 0..length {
            world
                .step(&subject, digit(place), scenario, &mut counts)
                .map_err(|flaw| {
                    let path: Vec<Op> = (0..=place).map(digit).collect();
                    explained(scenario, &path, &flaw)
                })?;
        }
        counts.sequences += 1;
    }
    Ok(counts)
}
