//! A word that changes hands, in many random schedules of several threads whose stores reach the others late.

use std::ops::Range;
use std::sync::Arc;

use super::super::{Populator, PopulatorKind};
use crate::races::{after_a_while, at_random, unique_and_growing};
use crate::sync::{barrier, thread};

const END: u64 = 1000;

/// Several threads begin at random moments and take some positions each, singly and in pairs; one of them seals.
fn race() {
    let populator = Arc::new(Populator::new(PopulatorKind::Atomic, 1));
    let caller = |number: u64| {
        let populator = populator.clone();
        thread::spawn(move || {
            let mut taken = Vec::<Range<u64>>::new();
            after_a_while(40);
            for call in 0..4 {
                let claim = match (number + call) % 4 {
                    0 => populator.take(2, END).map(|it| it.start..it.end),
                    _ => populator.take_one(END, |at| at).map(|at| at..at + 1),
                };
                taken.extend(claim);
            }
            let sealed_at = (number == 3).then(|| populator.seal().expect("it can be taken"));
            (taken, sealed_at)
        })
    };
    let threads: Vec<_> = (0..4).map(caller).collect();
    let ended: Vec<_> = threads
        .into_iter()
        .map(|it| it.join().expect("no panic"))
        .collect();
    let all = unique_and_growing(ended.iter().map(|(taken, _)| taken));
    let end = all.last().map_or(1, |last| last.end);
    assert_eq!(ended[3].1, Some(end), "sealed one past the last position");
}

#[test]
fn positions_stay_unique_while_the_word_changes_hands() {
    at_random("four callers", 20_000, race);
}

#[test]
#[should_panic(expected = "given twice")]
fn planted_without_the_barrier_in_all_threads() {
    barrier::left_out(|| at_random("planted fault", 20_000, race));
}
