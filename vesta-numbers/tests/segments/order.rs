//! No duplicates, and the guaranteed order.

use std::sync::atomic::{AtomicU64, Ordering};

use vesta_numbers::segment::SegmentService;
use vesta_testkit::Rng;

use crate::stores::{Seen, TestStore, batch, ids, next, patient, run};

const THREADS: u64 = 8;
/// Numbers of each key and thread.
const EACH: u64 = 200_000;
/// Far more than could be fetched for them.
const ROOM: usize = 1 << 26;

/// Observations of one key.
struct Watch {
    key: &'static str,
    seen: Seen,
    /// The highest number of all calls that have returned.
    returned: AtomicU64,
}

impl Watch {
    fn new(key: &'static str) -> Self {
        Self {
            key,
            seen: Seen::below(ROOM),
            returned: AtomicU64::new(0),
        }
    }
}

/// Takes single numbers, runs and batches of all keys in turn.
fn take(service: &SegmentService, watches: &[Watch], thread: u64) {
    let mut last = vec![0; watches.len()];
    let mut taken = vec![0_u64; watches.len()];
    let mut rng = Rng::new(thread);
    while taken.iter().any(|taken| *taken < EACH) {
        let index = rng.index(watches.len());
        let Watch {
            key,
            seen,
            returned,
        } = &watches[index];
        let before = returned.load(Ordering::Acquire);
        let size = u32::try_from(rng.below(128)).unwrap() * 20 + 1;
        let numbers = match rng.below(8) {
            0 => batch(service, key, size).unwrap(),
            1 => ids(&[run(service, key, 100).unwrap()]),
            _ => vec![next(service, key).unwrap()],
        };
        assert!(
            numbers[0] > before,
            "{} although {before} had been returned",
            numbers[0]
        );
        for &number in &numbers {
            assert!(
                number > last[index],
                "{number} after {}: not increasing",
                last[index]
            );
            last[index] = number;
            assert!(seen.is_new(number), "duplicate: {number} of {key}");
        }
        returned.fetch_max(last[index], Ordering::Release);
        taken[index] += numbers.len() as u64;
    }
}

#[test]
fn numbers_increase_across_all_threads() {
    // With ranges of a few numbers, every other call switches to another one.
    let tags = [("tiny", 1), ("small", 7), ("usual", 1000)];
    let store = TestStore::with(&tags);
    let service = patient(&store).step_cap(2000).build().unwrap();
    let watches = tags.map(|(key, _)| Watch::new(key));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (service, watches) = (&service, &watches);
            scope.spawn(move || take(service, watches, thread));
        }
    });
    for watch in &watches {
        assert!(watch.seen.count() >= THREADS * EACH);
        let status = service.segment(watch.key).unwrap().status();
        assert_eq!(status.fetches_failed, 0);
        assert!(status.taken_total >= watch.seen.count());
    }
}

#[test]
fn the_checker_finds_a_planted_duplicate() {
    let seen = Seen::below(1000);
    assert!(seen.is_new(63) && seen.is_new(64) && !seen.is_new(63));
    assert_eq!(seen.count(), 2);
}

#[test]
fn a_single_process_leaves_no_gap() {
    let store = TestStore::with(&[("orders", 10)]);
    let service = patient(&store).build().unwrap();
    let orders = service.segment("orders").unwrap();
    let mut expected = 1;
    for round in 0..500 {
        for number in ids(&orders.next_runs(round % 777 + 1).unwrap()) {
            assert_eq!(number, expected);
            expected += 1;
        }
        assert_eq!(next(&service, "orders").unwrap(), expected);
        expected += 1;
    }
}

#[test]
fn many_services_on_one_store_never_overlap() {
    let store = TestStore::with(&[("orders", 3)]);
    let seen = Seen::below(ROOM);
    std::thread::scope(|scope| {
        for _ in 0..32 {
            let (store, seen) = (&store, &seen);
            scope.spawn(move || {
                let service = patient(store).step_cap(50).build().unwrap();
                let mut last = 0;
                for _ in 0..20_000 {
                    let number = next(&service, "orders").unwrap();
                    assert!(number > last, "{number} after {last}");
                    last = number;
                    assert!(seen.is_new(number), "duplicate: {number}");
                }
            });
        }
    });
    assert_eq!(seen.count(), 32 * 20_000);
}
