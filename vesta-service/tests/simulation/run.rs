//! Many histories, on all processors.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::ledger::Flaw;
use super::seat;
use super::store::Plant;
use super::tally::Tally;
use super::world::{Outcome, World};

/// A folder that is fast where there is one: what is synced here need not survive.
pub(crate) fn folder() -> tempfile::TempDir {
    let fast = PathBuf::from("/dev/shm");
    if fast.is_dir() { tempfile::tempdir_in(fast) } else { tempfile::tempdir() }.expect("a folder")
}

/// What many histories came to.
pub(crate) struct Results {
    pub(crate) tally: Tally,
    pub(crate) flaws: Vec<(u64, Flaw)>,
}

/// The one seed that is wanted, if there is one.
pub(crate) fn seed() -> Option<u64> {
    let seed = std::env::var("VESTA_TEST_SEED").ok()?;
    Some(seed.parse().expect("VESTA_TEST_SEED is a number"))
}

/// How many times as much is wanted.
pub(crate) fn times() -> u64 {
    if std::env::var_os("VESTA_TEST_FULL").is_some() { 2 } else { 1 }
}

/// Tells the story of a seed.
pub(crate) fn tell(seed: u64) {
    let outcome = play(seed, None, true);
    for line in &outcome.trace {
        println!("{line}");
    }
    if let Some(flaw) = outcome.flaw {
        panic!("seed {seed}: {flaw}");
    }
}

pub(crate) fn play(seed: u64, plant: Option<Plant>, traced: bool) -> Outcome {
    let folder = folder();
    seat::take_the_first();
    World::play(seed, plant, folder.path(), traced)
}

/// Plays all these seeds. After the first flaw no new ones are begun, unless all are wanted.
pub(crate) fn play_all(seeds: std::ops::Range<u64>, plant: Option<Plant>, go_on: bool) -> Results {
    let next = AtomicU64::new(seeds.start);
    let results = Mutex::new(Results { tally: Tally::default(), flaws: Vec::new() });
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let folder = folder();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut tally = Tally::default();
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    seat::take_the_first();
                    let outcome = World::play(seed, plant, folder.path(), false);
                    tally.merge(&outcome.tally);
                    if let Some(flaw) = outcome.flaw {
                        results.lock().flaws.push((seed, flaw));
                        if !go_on {
                            next.store(seeds.end, Relaxed);
                        }
                    }
                }
                results.lock().tally.merge(&tally);
            });
        }
    });
    results.into_inner()
}

/// Ends the test with the story of a seed that failed, and how to see it again.
pub(crate) fn fail(seed: u64, flaw: &Flaw) -> ! {
    let again = play(seed, None, true);
    for line in &again.trace {
        println!("{line}");
    }
    let same = again.flaw.is_some_and(|again| again.text == flaw.text);
    panic!(
        "seed {seed}: {flaw}\nthe story is above{}; to see it again:\n  VESTA_TEST_SEED={seed} cargo \
         test -p vesta-service --test simulation any_history -- --nocapture\n",
        if same { "" } else { " (it came out differently this time)" }
    );
}
