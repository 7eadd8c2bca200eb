//! Cost of a human-readable number: text formats with check symbols, and shuffled numbers.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vesta_intf::{IdFormat, Shuffle, ShuffleKey};
use vesta_numbers::serial::{CivilHour, Pattern, Reset};

/// An ID of 19 digits.
const ID: u64 = 1_285_482_222_412_933_127;

fn check_symbols(c: &mut Criterion) {
    let mut group = c.benchmark_group("an ID as text");
    group.throughput(Throughput::Elements(1));
    for format in IdFormat::ALL {
        let mut id = ID;
        group.bench_function(format.name(), |b| {
            b.iter(|| {
                id += 1;
                format.format(black_box(id))
            });
        });
    }
    group.finish();
}

fn shuffled(c: &mut Criterion) {
    let mut group = c.benchmark_group("a number shuffled");
    group.throughput(Throughput::Elements(1));
    for digits in [6, 8, 9, 10, 11, 12] {
        let size = 10u64.pow(digits);
        let shuffle = Shuffle::new(ShuffleKey::new(&[7; 32]), size).expect("a size in range");
        let mut number = 0;
        group.bench_function(format!("10^{digits}"), |b| {
            b.iter(|| {
                number = (number + 1) % size;
                shuffle.shuffle(black_box(number))
            });
        });
    }
    group.finish();
    c.bench_function("a table of shuffled numbers, 10^8", |b| {
        b.iter(|| Shuffle::new(ShuffleKey::new(&[7; 32]), 100_000_000));
    });
}

fn written(c: &mut Criterion) {
    let mut group = c.benchmark_group("a counter as a serial");
    group.throughput(Throughput::Elements(1));
    let date = CivilHour {
        year: 2026,
        month: 11,
        day: 22,
        hour: 9,
    };
    for text in ["INV-{date:yyMMdd}-{n:6}{check:damm}", "{n:12}"] {
        let reset = if text.contains("date") {
            Reset::Day
        } else {
            Reset::Never
        };
        let pattern = Pattern::new(text, reset).expect("a pattern");
        let mut n = 0;
        group.bench_function(text, |b| {
            b.iter(|| {
                n = (n + 1) % 1_000_000;
                pattern.format(black_box(&date), n)
            });
        });
        let serial = pattern.format(&date, 42).expect("a serial");
        group.bench_function(format!("{text}, parsed"), |b| {
            b.iter(|| pattern.parse(black_box(&serial)));
        });
    }
    group.finish();
}

criterion_group!(benches, check_symbols, shuffled, written);
criterion_main!(benches);
