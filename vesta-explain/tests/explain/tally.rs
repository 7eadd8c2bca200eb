//! Columns of true IDs and of rounded ones, of several layouts.

use std::collections::BTreeSet;

use vesta_explain::{Tally, in_javascript, layouts};
use vesta_intf::{Field, Id, IdFormat, IdMeta, UnixMillis};

/// Numbers that repeat in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// How the IDs of a file differ: milliseconds between two, machine IDs, bound of the sequence.
struct File {
    layout: IdMeta,
    every: u64,
    machines: &'static [u64],
    seq: u64,
    rows: u64,
}

const fn file(layout: IdMeta, every: u64, machines: &'static [u64], seq: u64, rows: u64) -> File {
    File {
        layout,
        every,
        machines,
        seq,
        rows,
    }
}

impl File {
    fn ids(&self) -> Vec<u64> {
        let mut numbers = Numbers(7);
        let one = |row: u64| {
            let layout = &self.layout;
            let machine = self.machines[usize::try_from(row).unwrap() % self.machines.len()];
            let millis = UnixMillis(
                1_767_225_600_000 + row * self.every + numbers.below(1 + self.every / 2),
            );
            // Bursts count on within a tick.
            let seq = if self.every == 0 {
                row
            } else {
                numbers.below(self.seq)
            };
            let id = Id {
                time: layout.tick_within(millis).expect("inside"),
                seq: seq % (layout.max(Field::Seq) + 1),
                machine: machine.min(layout.max(Field::Machine)),
                ..layout.blank()
            };
            layout.pack(&id).expect("inside")
        };
        // Nobody made one twice.
        let ids: BTreeSet<_> = (0..self.rows).map(one).collect();
        ids.into_iter().collect()
    }
}

/// Sequences in the low bits and above machine IDs, machine 0 and region-wise ones, seconds, milliseconds and their
/// tens; bursts are 0 ms apart.
const TRUE: [File; 24] = [
    file(IdMeta::SNOWFLAKE, 37, &[876], 4096, 2000),
    file(IdMeta::SNOWFLAKE, 1000, &[0], 1, 2000),
    file(IdMeta::SNOWFLAKE, 3_600_000, &[32], 1, 500),
    file(IdMeta::SNOWFLAKE, 3_600_000, &[1, 2, 3], 2, 500),
    file(IdMeta::SNOWFLAKE, 0, &[0], 4096, 5000),
    file(IdMeta::SNOWFLAKE, 0, &[512], 4096, 100),
    file(layouts::DISCORD, 13, &[33, 34], 3, 2000),
    file(layouts::DISCORD, 60_000, &[0], 1, 2000),
    file(layouts::INSTAGRAM, 5, &[1341], 1024, 2000),
    file(IdMeta::MAX_PEAK, 0, &[0], 1, 5000),
    file(IdMeta::MAX_PEAK, 0, &[470], 1, 5000),
    file(IdMeta::MAX_PEAK, 1000, &[0], 100, 2000),
    file(IdMeta::MAX_PEAK, 3_600_000, &[512], 1, 900),
    file(IdMeta::MAX_PEAK, 200, &[0, 256, 512, 768], 9, 2000),
    file(IdMeta::MIN_GRANULARITY, 0, &[0], 1, 5000),
    file(IdMeta::MIN_GRANULARITY, 7, &[0, 1, 2], 50, 2000),
    file(layouts::YITTER, 1000, &[32], 64, 2000),
    file(IdMeta::JS_SAFE, 1000, &[0], 1, 2000),
    file(IdMeta::JS_SAFE, 60_000, &[2], 1, 2000),
    file(layouts::SONYFLAKE, 10, &[256, 512], 20, 2000),
    file(layouts::SONYFLAKE, 1000, &[51_109], 2, 10),
    file(layouts::COSID, 3, &[8], 4096, 2000),
    file(layouts::COCKROACH, 1, &[1, 2, 3], 1, 2000),
    file(layouts::TSID, 40, &[64], 4096, 2000),
];

fn tally(ids: &[u64], layout: &IdMeta) -> Tally {
    let mut tally = Tally::default();
    ids.iter().for_each(|id| tally.add(*id, layout));
    tally
}

fn has_repeated(ids: &[u64]) -> bool {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|two| two[0] == two[1])
}

#[test]
fn no_file_of_true_ids_looks_rounded() {
    for (number, file) in TRUE.iter().enumerate() {
        let ids = file.ids();
        let name = file.layout.name();
        // Also by the layout that is the default.
        for layout in [&file.layout, &IdMeta::MAX_PEAK] {
            let tally = tally(&ids, layout);
            let found = tally.rounding(false);
            assert_eq!(found, None, "file {number}, {name}");
            assert_eq!(tally.checked(), None, "file {number}, {name}");
        }
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
fn through_a_double(id: u64) -> u64 {
    id as f64 as u64
}

fn in_excel(id: u64) -> u64 {
    let step = 10u64.pow(id.ilog10().saturating_sub(14));
    id / step * step
}

#[test]
fn files_of_rounded_ids_are_recognised() {
    let javascript = |id| in_javascript(id).parse().expect("64 bits");
    let double = "a program that keeps numbers as doubles";
    for (layout, machines, seq) in [
        (IdMeta::SNOWFLAKE, &[876, 3, 44][..], 4096),
        (IdMeta::MAX_PEAK, &[470, 7, 900, 33, 1021], 2),
        (layouts::INSTAGRAM, &[1341, 9], 1024),
        (layouts::DISCORD, &[33, 35, 99], 2000),
    ] {
        for (by, round) in [
            (double, through_a_double as fn(u64) -> u64),
            ("JavaScript", javascript),
            ("Excel", in_excel),
        ] {
            for rows in [40, 2000] {
                let ids: Vec<_> = file(layout, 37, machines, seq, rows)
                    .ids()
                    .into_iter()
                    .map(round)
                    .collect();
                let found = tally(&ids, &layout).rounding(has_repeated(&ids));
                let count = found.filter(|it| it.by == by).map_or(0, |it| it.count);
                assert!(
                    count >= ids.len() as u64 * 19 / 20,
                    "{layout} {rows} {by}: {found:?}"
                );
            }
        }
    }
    // Excel also cuts the 16 digits of IDs that JavaScript can hold.
    let ids: Vec<_> = file(IdMeta::JS_SAFE, 37, &[2, 5], 9, 2000)
        .ids()
        .into_iter()
        .map(in_excel)
        .collect();
    let found = tally(&ids, &IdMeta::JS_SAFE)
        .rounding(false)
        .map(|it| it.by);
    assert_eq!(found, Some("Excel"));
}

/// Rounded to doubles, IDs of one machine are IDs of another: only repeated ones are suspicious.
#[test]
fn rounding_that_looks_like_another_machine_is_not_sure() {
    let ids: Vec<_> = file(IdMeta::MIN_GRANULARITY, 5, &[3, 4], 2, 900)
        .ids()
        .into_iter()
        .map(through_a_double)
        .collect();
    let tally = tally(&ids, &IdMeta::MIN_GRANULARITY);
    assert_eq!(tally.rounding(false), None);
    assert_eq!(
        tally.rounding(true).map(|it| (it.count, it.is_sure)),
        Some((900, false))
    );
}

#[test]
fn a_column_of_check_digits_is_recognised() {
    for format in [
        IdFormat::DecimalDamm,
        IdFormat::DecimalMod97,
        IdFormat::DecimalLuhn,
    ] {
        let ids = file(layouts::DISCORD, 37, &[5], 9, 50).ids().into_iter();
        let ids: Vec<u64> = ids
            .filter_map(|id| format.encode(id / 8).parse().ok())
            .collect();
        assert_eq!(
            tally(&ids, &IdMeta::SNOWFLAKE).checked(),
            Some(format),
            "{format}"
        );
    }
}
