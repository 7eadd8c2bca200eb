//! Shows whether a burst waits for a slow database instead of failing.
//!
//! Callers arrive at a fixed pace, whether or not earlier ones have been served. The duration of a
//! call counts from the moment it was due, so that one long wait shows in all calls that it delayed.
//!
//! `cargo bench -p vesta-service --bench slow_store [-- SECONDS]`
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock, and plays a database"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use vesta_numbers::segment::{NewSegmentTag, NextRange, SegmentService, SegmentStore, SegmentTag};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_service::lease::StoreError;

const CALLERS: u32 = 8;

/// A slow database.
#[derive(Debug)]
struct Slow {
    rows: MemorySegmentStore,
    takes: Duration,
}

impl SegmentStore for Slow {
    fn describe(&self) -> String {
        format!("memory, {} ms a fetch", self.takes.as_millis())
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        self.rows.tags()
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        thread::sleep(self.takes);
        self.rows.next_range(key, step)
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        self.rows.create(tag)
    }
}

/// When each call was due, and its duration from then on.
type Calls = Vec<(Duration, Duration)>;

/// One caller's part: every call at its due moment. Also returns the number of failures.
fn call(
    mut next: impl FnMut() -> Option<u64>,
    start: Instant,
    every: Duration,
    period: Duration,
) -> (Calls, u64) {
    let mut calls = Vec::new();
    let (mut failures, mut due, mut last) = (0, Duration::ZERO, 0);
    while due < period {
        let early = due.saturating_sub(start.elapsed());
        if !early.is_zero() {
            thread::sleep(early);
        }
        match next() {
            Some(number) => {
                assert!(number > last, "{number} after {last}");
                last = number;
            }
            None => failures += 1,
        }
        calls.push((due, start.elapsed().saturating_sub(due)));
        due += every;
    }
    (calls, failures)
}

/// Runs all callers for some time and prints a row of results.
fn load<N: FnMut() -> Option<u64>>(
    name: &str,
    rate: u32,
    period: Duration,
    caller: impl Fn() -> N + Sync,
    fetches: impl Fn() -> u64,
) {
    let start = Instant::now() + Duration::from_millis(10);
    let every = Duration::from_secs(1) * CALLERS / rate;
    let parts: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..CALLERS)
            .map(|number| {
                let (caller, start) = (&caller, start + every * number / CALLERS);
                scope.spawn(move || call(caller(), start, every, period))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let lasted = start.elapsed();
    let failures: u64 = parts.iter().map(|(_, failures)| failures).sum();
    let calls: Calls = parts.into_iter().flat_map(|(calls, _)| calls).collect();
    let sorted = |from: Duration| {
        let mut took: Vec<_> = calls
            .iter()
            .filter(|(due, _)| *due >= from)
            .map(|(_, took)| *took)
            .collect();
        took.sort_unstable();
        took
    };
    let (all, steady) = (sorted(Duration::ZERO), sorted(Duration::from_secs(1)));
    let at = |took: &[Duration], share: f64| {
        let index = ((took.len() as f64 * share) as usize).min(took.len() - 1);
        format!("{:.2}", took[index].as_secs_f64() * 1e3)
    };
    println!(
        "| {name} | {rate} | {:.0} | {failures} | {} | {} | {} | {} | {} | {} |",
        all.len() as f64 / lasted.as_secs_f64(),
        at(&all, 0.5),
        at(&all, 0.99),
        at(&all, 1.0),
        at(&steady, 0.99),
        at(&steady, 1.0),
        fetches(),
    );
}

fn main() {
    let seconds = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(10);
    let period = Duration::from_secs(seconds);
    println!("One tag with step 1,000, {CALLERS} threads, {seconds} s from a cold start; in ms.\n");
    println!(
        "| | asked for/s | served/s | failures | p50 | p99 | longest | p99 after 1 s | longest after 1 s | fetches |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    // The machine's own contribution: callers that wake up late.
    let counter = AtomicU64::new(1);
    let count = || || Some(counter.fetch_add(1, Ordering::Relaxed));
    load("no store: a bare fetch-add", 100_000, period, count, || 0);
    for (rate, takes) in [(100_000, 50), (10_000, 50), (100_000, 500)] {
        let store = Slow {
            rows: MemorySegmentStore::new(),
            takes: Duration::from_millis(takes),
        };
        store
            .create(&NewSegmentTag::new("orders", 1000).expect("valid"))
            .expect("a new tag");
        let service = SegmentService::builder(Arc::new(store))
            .build()
            .expect("a service");
        let orders = service.segment("orders").expect("a tag");
        let name = format!("{takes} ms a fetch");
        let next = || || orders.next().ok();
        load(&name, rate, period, next, || orders.status().fetches_ok);
    }
}
