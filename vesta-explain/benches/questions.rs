//! Cost of a query: whether two sets of IDs overlap, and which layout an ID has.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use vesta_explain::{IdSet, guess, overlap};
use vesta_intf::{Field, IdMeta, UnixMillis};

/// 2026-11-22T00:00:00Z.
const NOW: UnixMillis = UnixMillis(1_795_305_600_000);

fn questions(c: &mut Criterion) {
    let leaf = IdSet::of(&IdMeta::SNOWFLAKE);
    let vesta = IdSet::of(&IdMeta::MAX_PEAK)
        .with(Field::GenMethod, 1..=1)
        .unwrap();
    let machines = |range| {
        IdSet::of(&IdMeta::SNOWFLAKE)
            .with(Field::Machine, range)
            .unwrap()
    };
    let (old, new) = (machines(0..=39), machines(40..=1023));
    let meeting = vesta
        .between(NOW..=UnixMillis(IdMeta::MAX_PEAK.end().0 - 1))
        .unwrap();
    assert!(overlap(&leaf, &meeting).is_some() && overlap(&old, &new).is_none());

    let mut group = c.benchmark_group("a query");
    group.bench_function("overlap, sets that meet", |b| {
        b.iter(|| overlap(black_box(&leaf), black_box(&meeting)));
    });
    group.bench_function("overlap, disjoint", |b| {
        b.iter(|| overlap(black_box(&old), black_box(&new)));
    });
    group.bench_function("guess", |b| {
        b.iter(|| guess(black_box(175_928_847_299_117_063), NOW, None));
    });
    group.finish();
}

criterion_group!(benches, questions);
criterion_main!(benches);
