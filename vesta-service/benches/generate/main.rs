//! Cost of an ID inside the process.
//!
//! Each group answers one question. Layouts called *roomy* have so many sequence numbers in a tick
//! that it is the generator that is measured and not the wait for the next tick; every measurement
//! lasts long enough to cross ticks. The bound is real: a state file that a keeper renews. Peers are
//! measured in the same run, with the same layout where they have one to choose.
#![allow(missing_docs, reason = "criterion's macros write public functions")]

mod peers;

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use vesta_intf::{FieldOrder, LayoutSpec, TimeUnit};
use vesta_service::{IdMeta, IdService, LocalIdService, MachineSource, PopulatorKind};

/// 2^28 IDs in a second.
fn roomy_seconds() -> IdMeta {
    layout(30, 28, 5, TimeUnit::Second)
}

/// 2^32 IDs in a second: as many as batches can ask for.
fn roomiest_seconds() -> IdMeta {
    layout(30, 32, 1, TimeUnit::Second)
}

/// 2^20 IDs in a millisecond.
fn roomy_millis() -> IdMeta {
    layout(41, 20, 2, TimeUnit::Millisecond)
}

fn layout(time_bits: u8, seq_bits: u8, machine_bits: u8, unit: TimeUnit) -> IdMeta {
    IdMeta::new(LayoutSpec {
        version_bits: 1,
        type_bits: 0,
        gen_method_bits: 0,
        time_bits,
        seq_bits,
        machine_bits,
        order: FieldOrder::TimeSeqMachine,
        unit,
        epoch: IdMeta::MAX_PEAK.spec().epoch,
    })
    .expect("the layout adds up")
}

struct Embedded {
    service: LocalIdService,
    _folder: tempfile::TempDir,
}

fn embedded(layout: IdMeta, populator: PopulatorKind) -> Embedded {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let service = LocalIdService::builder()
        .layout(layout)
        .populator(populator)
        .machine(MachineSource::Fixed(1))
        .state_dir(folder.path())
        .build()
        .expect("a service");
    Embedded { service, _folder: folder }
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
    let mut group = tuned(c, "alone: one caller, roomy layout");
    for (name, layout) in [("seconds", roomy_seconds()), ("milliseconds", roomy_millis())] {
        for kind in PopulatorKind::ALL {
            let ids = embedded(layout, kind);
            group.bench_function(format!("vesta {}, {name}", kind.name()), |b| {
                b.iter(|| ids.service.gen_id().expect("an ID"));
            });
        }
    }
    peers::each(|name, next| {
        group.bench_function(name, |b| b.iter(&next));
    });
    // The yardstick of the machine: no generator can be cheaper than its one atomic change.
    let counter = AtomicU64::new(0);
    group.bench_function("a bare fetch-add", |b| {
        b.iter(|| counter.fetch_add(1, Ordering::Relaxed));
    });
    group.finish();
}

fn contended(c: &mut Criterion) {
    for threads in [2, 4, 8] {
        let mut group = tuned(c, &format!("contended: {threads} callers, roomy layout"));
        for (name, layout) in [("seconds", roomy_seconds()), ("milliseconds", roomy_millis())] {
            for kind in PopulatorKind::ALL {
                let ids = embedded(layout, kind);
                group.bench_function(format!("vesta {}, {name}", kind.name()), |b| {
                    b.iter_custom(|n| share(threads, n, || ids.service.gen_id().expect("an ID")));
                });
            }
        }
        peers::each(|name, next| {
            group.bench_function(name, |b| b.iter_custom(|n| share(threads, n, next)));
        });
        group.finish();
    }
}

/// Makes `n` IDs with several threads and says how long that took.
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
        workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
        start.elapsed()
    })
}

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

fn batch(c: &mut Criterion) {
    let mut group = tuned(c, "batch: cost of a call, divide by its IDs");
    for kind in PopulatorKind::ALL {
        let ids = embedded(roomiest_seconds(), kind);
        for size in [100, 1_000, 10_000] {
            let mut out = vec![0; size];
            group.throughput(Throughput::Elements(size as u64));
            group.bench_function(format!("vesta {}, seconds, {size} IDs", kind.name()), |b| {
                b.iter(|| ids.service.gen_ids(black_box(&mut out)).expect("IDs"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, alone, contended, batch);
criterion_main!(benches);
