//! Cost of a segment number inside the process.
//!
//! The store is in memory and answers at once, so that the service is measured: the ranges have a
//! million numbers or more, and the figure includes switching from one to the next. The yardstick
//! of each group is a bare fetch-add, measured in the same run.
#![allow(missing_docs, reason = "criterion's macros write public functions")]

mod every_second;

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use every_second::EverySecond;
use vesta_numbers::segment::{NewSegmentTag, Segment, SegmentService, SegmentStore as _};
use vesta_numbers::testing::MemorySegmentStore;

fn service() -> SegmentService {
    let store = MemorySegmentStore::new();
    for key in ["orders", "users"] {
        store
            .create(&NewSegmentTag::new(key, 1_000_000).expect("valid"))
            .expect("a new tag");
    }
    SegmentService::builder(Arc::new(store))
        .build()
        .expect("a service")
}

/// A service on one of two databases that share their tags.
fn every_second() -> SegmentService {
    let store = Arc::new(EverySecond(MemorySegmentStore::new()));
    store
        .create(&NewSegmentTag::new("orders", 1_000_000).expect("valid"))
        .expect("a new tag");
    SegmentService::builder(store).build().expect("a service")
}

/// Takes enough numbers for the ranges to reach their full size.
fn warm(segment: &Segment) {
    for _ in 0..20_000 {
        segment.next_runs(10_000).expect("numbers");
    }
}

fn by_name(service: &SegmentService, key: &str) -> u64 {
    service
        .segment(key)
        .and_then(|segment| segment.next())
        .expect("a number")
}

fn tuned<'a>(c: &'a mut Criterion, question: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(question);
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500));
    group
}

fn alone(c: &mut Criterion) {
    let mut group = tuned(c, "segments alone: one caller");
    let service = service();
    let orders = service.segment("orders").expect("a tag");
    warm(orders);
    group.bench_function("vesta, tag in hand", |b| {
        b.iter(|| orders.next().expect("a number"));
    });
    let every_second = every_second();
    let halves = every_second.segment("orders").expect("a tag");
    warm(halves);
    group.bench_function("vesta, every second number", |b| {
        b.iter(|| halves.next().expect("a number"));
    });
    group.bench_function("vesta, tag by name", |b| {
        b.iter(|| by_name(&service, black_box("orders")));
    });
    group.bench_function("vesta, two tags by name in turn", |b| {
        let mut keys = ["orders", "users"].into_iter().cycle();
        b.iter(|| by_name(&service, keys.next().unwrap_or_default()));
    });
    let counter = AtomicU64::new(0);
    group.bench_function("a bare fetch-add", |b| {
        b.iter(|| counter.fetch_add(1, Ordering::Relaxed));
    });
    group.finish();
}

fn contended(c: &mut Criterion) {
    for threads in [2, 8] {
        let mut group = tuned(
            c,
            &format!("segments contended: {threads} callers, one tag"),
        );
        let service = service();
        let orders = service.segment("orders").expect("a tag");
        warm(orders);
        group.bench_function("vesta, tag in hand", |b| {
            b.iter_custom(|n| share(threads, n, || orders.next().expect("a number")));
        });
        group.bench_function("vesta, tag by name", |b| {
            b.iter_custom(|n| share(threads, n, || by_name(&service, black_box("orders"))));
        });
        let counter = AtomicU64::new(0);
        group.bench_function("a bare fetch-add", |b| {
            b.iter_custom(|n| share(threads, n, || counter.fetch_add(1, Ordering::Relaxed)));
        });
        group.finish();
    }
}

/// Takes `n` numbers with several threads and returns the duration.
fn share(threads: u64, n: u64, next: impl Fn() -> u64 + Sync) -> Duration {
    let barrier = Barrier::new(usize::try_from(threads + 1).expect("few threads"));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    for _ in 0..n.div_ceil(threads) {
                        black_box(next());
                    }
                })
            })
            .collect();
        barrier.wait();
        let start = now();
        workers
            .into_iter()
            .for_each(|worker| worker.join().expect("no panic"));
        start.elapsed()
    })
}

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

fn batch(c: &mut Criterion) {
    let mut group = tuned(c, "segments batch: cost of a call, divide by its numbers");
    let service = service();
    let orders = service.segment("orders").expect("a tag");
    warm(orders);
    for size in [100, 1_000, 10_000] {
        group.throughput(Throughput::Elements(size.into()));
        group.bench_function(format!("vesta, {size} numbers"), |b| {
            b.iter(|| orders.next_runs(black_box(size)).expect("numbers"));
        });
    }
    group.finish();
}

criterion_group!(benches, alone, contended, batch);
criterion_main!(benches);
