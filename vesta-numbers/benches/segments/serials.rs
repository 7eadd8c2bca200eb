//! Cost of a serial inside the process, from an in-memory store. The yardsticks, in the same run, are a number
//! of a segment tag, and hand-written formatting: that number in the same text, with the check digit of its
//! digits and a precomputed date.
#![allow(missing_docs, reason = "criterion's macros write public functions")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vesta_intf::ShuffleKey;
use vesta_numbers::segment::{NewSegmentTag, SegmentService, SegmentStore as _};
use vesta_numbers::serial::{NewSerialTag, SerialService};
use vesta_numbers::serial::{Pattern, Reset};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_service::testing::MemoryStore;

const STEP: u64 = 1_000_000;

fn serials(c: &mut Criterion) {
    let key = ShuffleKey::new(&[7; 32]);
    let service = SerialService::builder(Arc::new(MemoryStore::new())).key("coupons", key.clone());
    let service = service.build().expect("a service");
    let create = |name: &str, text: &str, reset| {
        let pattern = Pattern::new(text, reset).expect("a pattern");
        let zone = pattern.has_date().then_some("Asia/Shanghai");
        let shuffled = pattern.is_shuffled();
        let tag = NewSerialTag::new(name, pattern, zone).and_then(|tag| tag.step(STEP));
        let tag = if shuffled {
            tag.and_then(|tag| tag.shuffled_with(&key))
        } else {
            tag
        };
        assert_eq!(
            service.create(&tag.expect("a tag")).expect("created"),
            vesta_numbers::Created::New
        );
    };
    create(
        "invoices",
        "INV-{date:yyMMdd}-{n:9}{check:damm}",
        Reset::Day,
    );
    create("orders", "{n:12}", Reset::Never);
    create(
        "coupons",
        "{shuffle:10:crockford}{check:crockford}",
        Reset::Never,
    );

    let mut group = c.benchmark_group("serials from memory: one caller");
    group.throughput(Throughput::Elements(1));
    for name in ["invoices", "orders", "coupons"] {
        let tag = service.tag(name).expect("the tag");
        group.bench_function(name, |b| b.iter(|| tag.next().expect("a serial")));
    }
    let tag = service.tag("invoices").expect("the tag");
    group.throughput(Throughput::Elements(1000));
    group.bench_function("invoices, a thousand at a time", |b| {
        b.iter(|| tag.next_many(1000).expect("serials"));
    });
    group.throughput(Throughput::Elements(1));
    let store = MemorySegmentStore::new();
    store
        .create(&NewSegmentTag::new("orders", STEP).expect("valid"))
        .expect("a new tag");
    let segments = SegmentService::builder(Arc::new(store))
        .build()
        .expect("a service");
    let orders = segments.segment("orders").expect("a tag");
    group.bench_function("a segment number", |b| {
        b.iter(|| orders.next().expect("a number"))
    });
    group.bench_function("a segment number, formatted by hand", |b| {
        b.iter(|| {
            let n = orders.next().expect("a number");
            format!(
                "INV-{:02}{:02}{:02}-{n:09}{}",
                black_box(26),
                black_box(11),
                black_box(22),
                damm(n)
            )
        });
    });
    group.finish();
}

/// Check digit of a nine-digit number, digit by digit from the first, as written by hand.
fn damm(mut number: u64) -> u8 {
    let mut digits = [0; 9];
    for digit in digits.iter_mut().rev() {
        *digit = (number % 10) as usize;
        number /= 10;
    }
    let next = |state: u8, digit: usize| DAMM[usize::from(state)][digit];
    digits.into_iter().fold(0, next)
}

const DAMM: [[u8; 10]; 10] = [
    [0, 3, 1, 7, 5, 9, 8, 6, 4, 2],
    [7, 0, 9, 2, 1, 5, 4, 8, 6, 3],
    [4, 2, 0, 6, 8, 7, 1, 3, 5, 9],
    [1, 7, 5, 0, 9, 8, 3, 4, 2, 6],
    [6, 1, 2, 3, 0, 4, 5, 9, 7, 8],
    [3, 6, 7, 4, 2, 0, 9, 5, 8, 1],
    [5, 8, 6, 9, 7, 2, 0, 1, 3, 4],
    [8, 9, 4, 5, 3, 6, 2, 0, 1, 7],
    [9, 4, 3, 8, 6, 1, 7, 2, 0, 5],
    [2, 5, 8, 1, 4, 3, 6, 7, 9, 0],
];

criterion_group!(benches, serials);
criterion_main!(benches);
