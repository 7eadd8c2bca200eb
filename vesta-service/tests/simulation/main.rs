//! Whole histories of a few hosts that share machine IDs, in simulated time. Every node is a real
//! service; everything around it (clocks, store, crashes, operators) comes from one seed.
//!
//! ```sh
//! VESTA_TEST_SEED=7 cargo test -p vesta-service --test simulation any_history -- --nocapture
//! ```
//! prints the events of one seed. `VESTA_TEST_FULL=1` plays twenty times as many.
//!
//! The services' own random numbers identify owners and requests, which are only compared, and vary
//! the pause between two renewals, which is too short here to matter. Two things do not depend on the
//! seed: with `SequenceStart::Random`, the first number of each tick, and, through the name of the
//! host, the first machine ID taken from a fresh pool.

mod cases;
mod clocks;
mod counts;
mod fault_free;
mod generation;
mod home_slot;
mod ledger;
mod node;
mod plan;
mod planted;
mod refusals;
mod run;
mod store;
mod time;
mod world;

use planted::Planted;
use vesta_testkit::is_full_run;

/// No ID repeats, and positions of each machine ID ascend. None is beyond a bound or skipped. Each error has
/// the right reason and retry delay, and after all faults every node recovers.
#[test]
fn any_history() {
    if let Some(seed) = run::seed() {
        return run::tell(seed);
    }
    let seeds = run::rounds(40_000);
    let results = run::play_all(0..seeds, None, |flaws| !flaws.is_empty());
    println!("{}", results.counts);
    if let Some((seed, flaw)) = results.flaws.iter().min_by_key(|(seed, _)| *seed) {
        run::fail(*seed, flaw);
    }
    for (what, least) in [
        ("IDs in runs", seeds * 250_000),
        ("IDs one by one", seeds * 5_000),
        ("handovers", seeds),
        ("crashes", seeds),
        ("replies lost", seeds),
        ("changes done late", seeds),
        ("stores that lost changes", seeds / 100),
        ("stores wiped", seeds / 100),
        ("retry times kept", seeds * 2),
        ("bounds awaited", seeds / 100),
        ("calls refused: sequence used up", seeds),
        ("calls refused: awaiting the lease", seeds),
        ("calls refused: clock behind", seeds / 10),
        ("calls refused: end of the layout", seeds / 10),
        ("nodes refused for good", seeds / 100),
        ("nodes that were well at the end", seeds * 3),
    ] {
        let count = results.counts.of(what);
        assert!(
            count >= least,
            "{what}: {count}, which is less than {least}: it tests too little"
        );
    }
}

/// The same checks with a planted fault that must be found.
#[test]
fn every_planted_fault_is_found() {
    const ENOUGH: usize = 3;
    for (planted, seeds, faults) in Planted::ALL {
        let found = |flaws: &[(u64, ledger::Flaw)]| {
            flaws
                .iter()
                .filter(|(_, flaw)| flaw.fault == faults[0])
                .count()
        };
        let enough = |flaws: &[_]| !is_full_run() && found(flaws) >= ENOUGH;
        let results = run::play_all(0..seeds, Some(planted), enough);
        let found = found(&results.flaws);
        println!(
            "{planted:?}: {:?} in {found} of {seeds} histories at most",
            faults[0]
        );
        assert!(
            found >= ENOUGH,
            "{planted:?} came to light in {found} of {seeds} histories only"
        );
        let other = results
            .flaws
            .iter()
            .find(|(_, flaw)| !faults.contains(&flaw.fault));
        assert!(other.is_none(), "{planted:?}: {other:?}");
    }
}

/// A failed seed can be inspected: the same seed is the same history.
#[test]
fn a_seed_determines_its_history() {
    let mut compared = 0;
    let seeds = run::rounds(400);
    for seed in 0..seeds {
        let (one, other) = (run::play(seed, None, false), run::play(seed, None, false));
        if one.exactly {
            compared += 1;
            assert_eq!(one.digest, other.digest, "seed {seed} came out differently");
        }
    }
    assert!(compared > seeds / 2);
}
