//! Tests of the checker, with planted faults.

use std::collections::HashSet;
use std::time::Duration;

use vesta_intf::{Id, IdMeta, IdRun};

use super::{Answer, Ledger, Marks, Receiver};
use crate::Rng;

const META: IdMeta = IdMeta::MAX_PEAK;

fn id(machine: u64, position: u64, gen_method: u64) -> u64 {
    let (time, seq) = (position >> 20, position & ((1 << 20) - 1));
    META.pack(&Id {
        machine,
        time,
        seq,
        gen_method,
        ..Id::default()
    })
    .expect("it fits")
}

fn run(machine: u64, start: u64, count: u32) -> Answer {
    Answer::Runs(vec![IdRun {
        first: id(machine, start, 1),
        step: META.step(),
        count,
    }])
}

fn by(process: usize, caller: usize, seconds: u64) -> Receiver {
    Receiver {
        process,
        caller,
        at: Duration::from_secs(seconds),
    }
}

fn ledger() -> Ledger {
    let mut ledger = Ledger::new(META);
    assert_eq!(
        ["first", "second"].map(|name| ledger.join(name.into())),
        [0, 1]
    );
    ledger
}

/// Its findings: duplicates, answers out of order.
fn found(ledger: &Ledger) -> (u64, u64) {
    (ledger.duplicates, ledger.disorders)
}

#[test]
fn a_planted_duplicate_is_found_with_both_owners() {
    let mut ledger = ledger();
    ledger.record(by(0, 2, 3), &run(7, 1 << 20, 1_000_000), &mut Marks::new());
    ledger.record(
        by(0, 3, 4),
        &run(7, (1 << 20) + 1_000_000, 1_000_000),
        &mut Marks::new(),
    );
    assert_eq!((ledger.intervals(), found(&ledger)), (1, (0, 0)));
    // Issued by the other program: another number for the same position.
    let planted = Answer::Ids(vec![id(7, (1 << 20) + 1_234_567, 2)]);
    ledger.record(by(1, 5, 9), &planted, &mut Marks::new());
    assert_eq!((ledger.ids, found(&ledger)), (2_000_001, (1, 0)));
    let finding = &ledger.findings[0];
    for part in [
        "positions 2283143..2283144 of machine ID 7",
        "by caller 2 of first at 3.000 to 4.000 s",
        "again by caller 5 of second at 9.000",
    ] {
        assert!(finding.contains(part), "{finding}");
    }
    // Another machine ID has its own positions.
    ledger.record(by(1, 5, 9), &run(8, 1 << 20, 10), &mut Marks::new());
    assert_eq!((ledger.machines(), found(&ledger)), (2, (1, 0)));
}

#[test]
fn a_planted_step_back_is_found() {
    let mut ledger = ledger();
    let mut marks = ledger.marks(0);
    ledger.record(by(0, 0, 1), &run(7, 100, 10), &mut marks);
    // Two concurrent calls may be answered in any order; a call after the answer may not.
    ledger.record(by(0, 1, 2), &run(7, 50, 10), &mut Marks::new());
    assert_eq!(found(&ledger), (0, 0));
    let mut marks = ledger.marks(0);
    ledger.record(by(0, 1, 3), &run(7, 80, 10), &mut marks);
    assert_eq!(found(&ledger), (0, 1));
    // No order holds between two processes.
    let mut marks = ledger.marks(1);
    ledger.record(by(1, 0, 4), &run(7, 60, 10), &mut marks);
    assert_eq!(found(&ledger), (0, 1));
    // Within one answer, and within one stream.
    let ids = [70, 70, 71].map(|position| id(9, position, 1));
    ledger.record(by(1, 0, 5), &Answer::Ids(ids.to_vec()), &mut marks);
    ledger.record(by(1, 0, 6), &run(9, 500, 1), &mut marks);
    ledger.record(by(1, 0, 6), &run(9, 400, 1), &mut marks);
    assert_eq!(found(&ledger), (0, 3));
}

#[test]
fn a_malformed_run_is_found() {
    let mut ledger = ledger();
    let first = id(7, 100, 1);
    for (step, count) in [
        (META.step(), 0),
        (1, 2),
        (META.step() * 2, 3),
        (u64::MAX, 2),
    ] {
        let answer = Answer::Runs(vec![IdRun { first, step, count }]);
        ledger.record(by(0, 0, 1), &answer, &mut Marks::new());
    }
    assert_eq!((ledger.ids, found(&ledger)), (0, (0, 4)));
}

#[test]
fn intervals_and_a_set_find_the_same() {
    let mut rng = Rng::new(1);
    for _ in 0..300 {
        let mut ledger = ledger();
        let (mut set, mut duplicates) = (HashSet::new(), 0);
        for _ in 0..rng.within(1..=60) {
            let (machine, start) = (rng.below(2), rng.below(200));
            let count = rng.within(1..=12);
            let new = (start..start + count)
                .filter(|at| set.insert((machine, *at)))
                .count();
            duplicates += count - new as u64;
            let process = rng.index(2);
            let count = count.try_into().expect("small");
            ledger.record(
                by(process, 0, 1),
                &run(machine, start, count),
                &mut Marks::new(),
            );
        }
        assert_eq!(found(&ledger), (duplicates, 0));
    }
}

#[test]
fn it_finds_a_planted_duplicate_and_a_step_back() {
    let fresh = || Ledger::new(META);
    let ids = [1, 2, 3, 5].map(|position| id(7, position, 1));
    let mut ledger = fresh();
    assert_eq!(ledger.check(&ids), Ok(()));
    assert_eq!((ledger.ids, ledger.machines(), ledger.latest()), (4, 1, 0));
    for planted in ids {
        assert_eq!(ledger.check(&[planted]), Err(format!("{planted} twice")));
    }
    let late = id(7, 4, 1);
    assert!(
        ledger
            .check(&[late])
            .unwrap_err()
            .starts_with(&format!("{late} after"))
    );
    // Another machine ID has its own order.
    assert_eq!(ledger.check(&[id(8, 1 << 20, 1)]), Ok(()));
    assert_eq!((ledger.machines(), ledger.latest()), (2, 1));
}
