//! Many histories, on all processors.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use vesta_testkit::{fast_folder, is_full_run, is_quick_run};

use super::counts::Counts;
use super::home_slot;
use super::ledger::Flaw;
use super::planted::Planted;
use super::world::{Outcome, World};

/// The results of many histories.
pub(crate) struct Results {
    pub(crate) counts: Counts,
    pub(crate) flaws: Vec<(u64, Flaw)>,
}

/// The single requested seed, if any.
pub(crate) fn seed() -> Option<u64> {
    let seed = std::env::var("VESTA_TEST_SEED").ok()?;
    Some(seed.parse().expect("VESTA_TEST_SEED is a number"))
}

/// This many rounds in a full run, a hundredth of them in a quick one, and a twentieth otherwise.
pub(crate) fn rounds(all: u64) -> u64 {
    match (is_full_run(), is_quick_run()) {
        (true, _) => all,
        (_, true) => all / 100,
        _ => all / 20,
    }
}

/// Prints the story of a seed.
pub(crate) fn tell(seed: u64) {
    let outcome = play(seed, None, true);
    for line in &outcome.trace {
        println!("{line}");
    }
    if let Some(flaw) = outcome.flaw {
        panic!("seed {seed}: {flaw}");
    }
}

pub(crate) fn play(seed: u64, planted: Option<Planted>, traced: bool) -> Outcome {
    let folder = fast_folder();
    home_slot::take_the_first();
    World::play(seed, planted, folder.path(), traced)
}

/// Plays these seeds; stops starting new ones after enough flaws.
pub(crate) fn play_all(
    seeds: std::ops::Range<u64>,
    planted: Option<Planted>,
    enough: impl Fn(&[(u64, Flaw)]) -> bool + Sync,
) -> Results {
    let next = AtomicU64::new(seeds.start);
    let results = Mutex::new(Results {
        counts: Counts::default(),
        flaws: Vec::new(),
    });
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let folder = fast_folder();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut counts = Counts::default();
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    home_slot::take_the_first();
                    let outcome = World::play(seed, planted, folder.path(), false);
                    counts.merge(&outcome.counts);
                    if let Some(flaw) = outcome.flaw {
                        let flaws = &mut results.lock().flaws;
                        flaws.push((seed, flaw));
                        if enough(flaws) {
                            next.store(seeds.end, Relaxed);
                        }
                    }
                }
                results.lock().counts.merge(&counts);
            });
        }
    });
    results.into_inner()
}

/// Fails the test with the story of a seed, and the command that repeats it.
pub(crate) fn fail(seed: u64, flaw: &Flaw) -> ! {
    let again = play(seed, None, true);
    for line in &again.trace {
        println!("{line}");
    }
    let same = again.flaw.is_some_and(|again| again.text == flaw.text);
    panic!(
        "seed {seed}: {flaw}\nthe story is above{}; to see it again:\n  VESTA_TEST_SEED={seed} cargo \
         test -p vesta-service --test simulation any_history -- --nocapture\n",
        if same {
            ""
        } else {
            " (it came out differently this time)"
        }
    );
}
