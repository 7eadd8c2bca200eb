//! Does a burst wait for a slow database instead of failing?
//!
//! Callers come at a fixed pace, whether or not those before them were served. What a call takes is
//! counted from the moment it was due, so that one long wait shows in all calls that it delayed.
//!
//! `cargo bench -p vesta-service --bench slow_store [-- SECONDS]`
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock, and plays a database")]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use vesta_service::{
    MemorySegmentStore, NewSegmentTag, NextRange, SegmentMode, SegmentService, SegmentStore,
    SegmentTag, StoreError,
};

const CALLERS: u32 = 8;

/// A database that takes its time.
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

struct Outcome {
    /// From the moment a call was due to its return, sorted.
    took: Vec<Duration>,
    failures: u64,
    lasted: Duration,
}

/// One caller's part: every call at its moment.
fn call(service: &SegmentService, start: Instant, every: Duration, period: Duration) -> Outcome {
    let orders = service.segment("orders").expect("a tag");
    let mut took = Vec::new();
    let (mut failures, mut due, mut last) = (0, Duration::ZERO, 0);
    while due < period {
        let early = due.saturating_sub(start.elapsed());
        if !early.is_zero() {
            thread::sleep(early);
        }
        match orders.next_id() {
            Ok(number) => {
                assert!(number > last, "{number} after {last}");
                last = number;
            }
            Err(_) => failures += 1,
        }
        took.push(start.elapsed().saturating_sub(due));
        due += every;
    }
    Outcome { took, failures, lasted: start.elapsed() }
}

fn run(mode: SegmentMode, rate: u32, takes: Duration, period: Duration) -> (Outcome, u64, u64) {
    let store = Slow { rows: MemorySegmentStore::new(), takes };
    let tag = NewSegmentTag::new("orders", 1000).expect("valid");
    store.create(&tag).expect("a new tag");
    let service = SegmentService::builder(Arc::new(store)).mode(mode).build().expect("a service");
    let start = Instant::now() + Duration::from_millis(10);
    let every = Duration::from_secs(1) * CALLERS / rate;
    let parts: Vec<_> = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|number| {
                let (service, start) = (&service, start + every * number / CALLERS);
                scope.spawn(move || call(service, start, every, period))
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().expect("no panic")).collect()
    });
    let mut took: Vec<_> = parts.iter().flat_map(|part| part.took.iter().copied()).collect();
    took.sort_unstable();
    let failures = parts.iter().map(|part| part.failures).sum();
    let lasted = parts.iter().map(|part| part.lasted).max().unwrap_or_default();
    let status = service.segment("orders").expect("a tag").status();
    (Outcome { took, failures, lasted }, status.fetches_ok, status.step)
}

fn main() {
    let seconds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(10);
    let period = Duration::from_secs(seconds);
    println!(
        "step 1,000 in the table, one tag, {CALLERS} threads, {seconds} s from a cold start\n"
    );
    println!(
        "| mode | asked for | a fetch takes | numbers/s | failures | p50 | p99 | p99.9 | longest | fetches | step at the end |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (mode, rate, takes) in [
        (SegmentMode::Strict, 100_000, 50),
        (SegmentMode::Relaxed, 100_000, 50),
        (SegmentMode::Strict, 10_000, 50),
        (SegmentMode::Strict, 100_000, 500),
    ] {
        let (outcome, fetches, step) = run(mode, rate, Duration::from_millis(takes), period);
        let Outcome { took, failures, lasted } = outcome;
        let at = |share: f64| {
            let index = (took.len() as f64 * share) as usize;
            format!("{:.2} ms", took[index.min(took.len() - 1)].as_secs_f64() * 1e3)
        };
        println!(
            "| {mode:?} | {rate}/s | {takes} ms | {:.0} | {failures} | {} | {} | {} | {} | {fetches} | {step} |",
            took.len() as f64 / lasted.as_secs_f64(),
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0),
        );
    }
}
