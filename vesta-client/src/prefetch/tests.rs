use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::*;

fn buffer(capacity: u32) -> PrefetchBuffer {
    PrefetchBuffer::new(&Prefetch {
        capacity,
        low_water: capacity / 2,
        max_age: Duration::MAX,
    })
}

/// The numbers of some runs.
fn numbers(runs: Option<Vec<IdRun>>) -> Vec<u64> {
    runs.iter().flatten().flat_map(IdRun::iter).collect()
}

fn run(first: u64, count: u32) -> IdRun {
    IdRun {
        first,
        step: 1,
        count,
    }
}

#[test]
fn batches_and_single_takes_continue_where_the_other_ended() {
    let buffer = buffer(100);
    buffer.store(vec![run(1, 50), run(101, 50)], Duration::ZERO);
    assert_eq!(buffer.take(1), Some(run(1, 1)));
    assert_eq!(buffer.take(2), Some(run(2, 2)));
    let expected: Vec<u64> = (4..=50).chain(101..=103).collect();
    assert_eq!(numbers(buffer.take_batch(50)), expected);
    assert_eq!(buffer.take(1), Some(run(104, 1)));
    assert_eq!(buffer.left(), 46);
}

#[test]
fn an_incomplete_batch_takes_nothing() {
    let buffer = buffer(100);
    assert_eq!(buffer.take_batch(1), None);
    buffer.store(vec![run(1, 50)], Duration::ZERO);
    buffer.take(1);
    assert_eq!(buffer.take_batch(50), None);
    assert_eq!(buffer.take(1), Some(run(2, 1)));
    assert_eq!(numbers(buffer.take_batch(48)), (3..=50).collect::<Vec<_>>());
    assert_eq!((buffer.left(), buffer.take_batch(1)), (0, None));
    let level = buffer.stats();
    assert_eq!((level.handed_out, level.left, level.stale), (50, 0, 0));
}

#[test]
fn expired_ids_are_in_no_batch() {
    let age = Duration::from_secs(3600);
    let mut buffer = PrefetchBuffer::new(&Prefetch {
        capacity: 100,
        low_water: 50,
        max_age: age,
    });
    buffer.start -= 2 * age;
    buffer.store(vec![run(1, 20)], Duration::ZERO);
    buffer.store(vec![run(101, 10)], 2 * age);
    assert_eq!(buffer.take_batch(11), None);
    assert_eq!(buffer.take_batch(10).unwrap(), [run(101, 10)]);
    assert_eq!(buffer.stats().stale, 20);
}

/// Single takes and batches of many threads collide all the time.
#[test]
fn no_number_is_taken_twice_and_each_thread_sees_them_ascend() {
    const THREADS: u64 = 8;
    const ALL: u64 = 400_000;
    let buffer = buffer(512);
    let next = Mutex::new(0);
    let seen: Vec<AtomicU32> = (0..ALL).map(|_| AtomicU32::new(0)).collect();
    let batches = AtomicU64::new(0);
    let refill = || {
        let mut next = next.lock();
        if *next < ALL && buffer.left() < 256 {
            buffer.store(vec![run(*next, 300), run(*next + 301, 99)], Duration::ZERO);
            *next += 400;
        }
        *next == ALL
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (buffer, seen, batches, refill) = (&buffer, &seen, &batches, &refill);
            scope.spawn(move || {
                let mut last = None;
                for turn in 0.. {
                    let runs = match (turn + thread) % 3 {
                        0 => buffer.take_batch(1 + (turn % 100) as u32),
                        _ => buffer.take(1 + (turn % 3) as u32).map(|run| vec![run]),
                    };
                    if let Some(runs) = runs {
                        batches.fetch_add(u64::from(runs.len() > 1), Ordering::Relaxed);
                        for number in runs.iter().flat_map(IdRun::iter) {
                            assert!(Some(number) > last, "{number} after {last:?}");
                            last = Some(number);
                            seen[number as usize].fetch_add(1, Ordering::Relaxed);
                        }
                    } else if refill() && buffer.left() == 0 {
                        return;
                    }
                }
            });
        }
    });
    let count = |times| {
        seen.iter()
            .filter(|n| n.load(Ordering::Relaxed) == times)
            .count() as u64
    };
    let (never, once) = (count(0), count(1));
    assert_eq!(never + once, ALL, "a number was taken twice");
    assert!(
        once > ALL / 2,
        "nearly every number is taken, but only {once} were"
    );
    assert!(batches.into_inner() > 0, "no batch took from several runs");
}
