//! Many words that one thread uses and a second one joins at a random moment, with the processor's own memory.
//!
//! `VESTA_TEST_IDS=10000000000 cargo test --release -p vesta-service --lib joins -- --nocapture` takes so many.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::{Populator, PopulatorKind};

/// Positions of one word.
const END: u64 = 5_000;
const WORDS: usize = 500;

/// The positions of one word that a thread got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Taken {
    count: u64,
    sum: u64,
}

/// Takes all positions that are left, and checks each against those that the other thread says it had before.
fn take_all(word: &Populator, own: &AtomicU64, other: &AtomicU64) -> Taken {
    let mut taken = Taken::default();
    let mut least = 0;
    loop {
        let known = other.load(Ordering::Relaxed);
        let Some(position) = word.take_one(END, |at| at) else {
            return taken;
        };
        assert!(
            position >= least.max(known),
            "{position} after {least} and {known}"
        );
        least = position + 1;
        own.store(least, Ordering::Relaxed);
        taken.count += 1;
        taken.sum += position;
    }
}

#[test]
fn a_second_thread_joins_at_a_random_moment() {
    let wanted = std::env::var("VESTA_TEST_IDS").ok();
    let wanted: u64 = wanted.map_or(20_000_000, |ids| ids.parse().expect("a number"));
    let (mut rounds, mut shared) = (0, 0_u64);
    // On a busy machine, one of them is often done before the other begins.
    while rounds * END * (WORDS as u64) < wanted || shared < 20 && rounds < 100 {
        let words: Vec<_> = (0..WORDS)
            .map(|_| Populator::new(PopulatorKind::Atomic, 0))
            .collect();
        let told: Vec<_> = (0..WORDS)
            .map(|_| [AtomicU64::new(0), AtomicU64::new(0)])
            .collect();
        let arrived = AtomicUsize::new(0);
        let thread = |number: usize| {
            let take = |at: usize| {
                // A barrier of the system would let one of them finish before the other wakes up.
                arrived.fetch_add(1, Ordering::AcqRel);
                for spins in 1_u64.. {
                    if arrived.load(Ordering::Acquire) >= 2 * (at + 1) {
                        break;
                    }
                    match spins % 1000 {
                        0 => std::thread::yield_now(),
                        _ => std::hint::spin_loop(),
                    }
                }
                // Now one, now the other is a little late.
                let late = usize::from(number == at % 2) * (at * 7919 % 401);
                (0..late).for_each(|_| std::hint::spin_loop());
                take_all(&words[at], &told[at][number], &told[at][1 - number])
            };
            (0..WORDS).map(take).collect::<Vec<_>>()
        };
        let [one, other] = std::thread::scope(|scope| {
            [0, 1]
                .map(|number| scope.spawn(move || thread(number)))
                .map(|it| it.join().expect("no position was taken too early"))
        });
        for (one, other) in one.into_iter().zip(other) {
            let all = (one.count + other.count, one.sum + other.sum);
            assert_eq!(
                all,
                (END, END * (END - 1) / 2),
                "each position once: {one:?}, {other:?}"
            );
            shared += u64::from(one.count > 0 && other.count > 0);
        }
        rounds += 1;
    }
    println!(
        "{} IDs, {shared} words used by both threads",
        rounds * END * WORDS as u64
    );
    assert!(shared > 0, "they never met");
}

/// As a task that moves between the threads of a runtime, or a pool whose threads come and go.
#[test]
fn a_word_is_handed_from_thread_to_thread_eight_times() {
    let word = Populator::new(PopulatorKind::Atomic, 0);
    for number in 0..20 {
        let taken = std::thread::scope(|scope| scope.spawn(|| word.take_one(END, |at| at)).join());
        assert_eq!(taken.expect("no panic"), Some(number));
        let expected = number >= 8 || cfg!(not(target_os = "linux"));
        assert_eq!(word.word.is_shared(), expected, "after {number}");
    }
}
