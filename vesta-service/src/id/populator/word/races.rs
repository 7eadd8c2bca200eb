//! A word that changes hands, in every interleaving of a few callers with a few interruptions, and with every value
//! that a load may read.

use std::ops::Range;
use std::sync::Arc;

use super::super::{Populator, PopulatorKind};
use crate::races::{Ends, Thread, at_once, bounded, unique_and_growing};
use crate::sequence::Claim;
use crate::sync::{AtomicU64, Ordering, barrier};

const FIRST: u64 = 20;
const END: u64 = 30;

type Taken = Vec<Range<u64>>;

#[derive(Debug, Clone, Copy)]
enum Call {
    One,
    Two,
    /// Gives back the caller's last claim.
    GiveBack,
    Seal,
}

fn make(populator: &Populator, calls: &[Call]) -> Taken {
    let mut taken = Taken::new();
    for call in calls {
        match call {
            Call::One => taken.extend(populator.take_one(END, |at| at).map(|at| at..at + 1)),
            Call::Two => taken.extend(populator.take(2, END).map(|it| it.start..it.end)),
            Call::GiveBack => {
                let last = taken.last().cloned();
                let last = last.map(|Range { start, end }| Claim { start, end });
                if last.is_some_and(|last| populator.give_back(last)) {
                    taken.pop();
                }
            }
            Call::Seal => {
                let end = populator.seal();
                assert_eq!(populator.take_one(END, |at| at), None, "never again");
                assert_eq!(populator.seal(), end, "the same end again");
            }
        }
    }
    taken
}

/// Runs several threads with these calls on a new word; returns how many positions each took.
fn race(threads: &[&'static [Call]]) -> Vec<usize> {
    let populator = Arc::new(Populator::new(PopulatorKind::Atomic, FIRST));
    populator.word.touch();
    let callers = threads.iter().copied().map(|calls| {
        let populator = populator.clone();
        Box::new(move || make(&populator, calls)) as Thread<Taken>
    });
    let taken = at_once(callers.collect());
    let all = unique_and_growing(&taken);
    let end = all.last().map_or(FIRST, |last| last.end);
    assert_eq!(populator.seal(), Some(end), "one past the last position");
    taken.iter().map(Vec::len).collect()
}

fn explore(what: &str, threads: &'static [&'static [Call]]) -> Ends<Vec<usize>> {
    let ends = Ends::new();
    let note = ends.clone();
    barrier::with(true, true, || {
        bounded(what, move || note.note(race(threads)));
    });
    ends
}

#[test]
fn a_second_caller_takes_the_word_away() {
    use Call::{One, Two};
    explore("one by one", &[&[One, One], &[One]]);
    explore("two at once", &[&[One, Two], &[Two]]);
}

/// Turns end, and then the word is shared. Two threads, because three would wait for each other in turn for ever;
/// `schedules` has more.
#[test]
fn two_callers_use_up_the_turns() {
    use Call::One;
    explore("to and fro", &[&[One, One], &[One, One]]);
}

#[test]
fn the_sole_user_races_with_sealing() {
    use Call::{One, Seal};
    let ends = explore("sealed", &[&[One, One], &[Seal]]);
    let ends: Vec<_> = ends.get().iter().map(|taken| taken[0]).collect();
    assert_eq!(
        ends,
        [0, 1, 2],
        "sealed before, between and after the calls"
    );
    explore("sealed by both", &[&[One, Seal], &[Seal]]);
}

#[test]
fn a_claim_is_given_back_while_the_word_changes_hands() {
    use Call::{GiveBack, One, Two};
    explore("given back", &[&[Two, GiveBack, One], &[One]]);
}

/// Whoever has heard of a position takes a larger one.
#[test]
fn positions_ascend_across_the_change_of_hands() {
    barrier::with(true, true, || {
        bounded("told", || {
            let populator = Arc::new(Populator::new(PopulatorKind::Atomic, FIRST));
            let told = Arc::new(AtomicU64::new(0));
            populator.word.touch();
            told.load(Ordering::Relaxed);
            let (first, tell) = (populator.clone(), told.clone());
            let speaker: Thread<()> = Box::new(move || {
                let position = first.take_one(END, |at| at).expect("there are some");
                tell.store(position, Ordering::Release);
            });
            let listener: Thread<()> = Box::new(move || {
                let heard = told.load(Ordering::Acquire);
                let position = populator.take_one(END, |at| at).expect("there are some");
                assert!(position > heard, "{position} after {heard}");
            });
            at_once(vec![speaker, listener]);
        });
    });
}

fn without(light: bool, heavy: bool) {
    use Call::One;
    barrier::with(light, heavy, || {
        bounded("planted fault", || drop(race(&[&[One, One], &[One, One]])));
    });
}

#[test]
#[should_panic(expected = "given twice")]
fn planted_without_the_barrier_in_all_threads() {
    without(true, false);
}

#[test]
#[should_panic(expected = "given twice")]
fn planted_without_the_light_barrier() {
    without(false, true);
}
