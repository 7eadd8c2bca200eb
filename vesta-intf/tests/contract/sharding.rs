//! Distribution of the IDs of one machine ID over shards.

use std::collections::BTreeMap;

use proptest::prelude::*;
use vesta_intf::{Field, Id, IdMeta};

use crate::any::{any_layout, parts};

const DOCUMENT: &str = include_str!("../../../docs/use/layouts.md");

/// 1,000 IDs of machine ID 7 in consecutive ticks, with every ID of each tick, or one per tick.
fn ids(layout: &IdMeta, full: bool) -> Vec<u64> {
    let per_tick = if full { layout.max(Field::Seq) + 1 } else { 1 };
    let id = |i| Id {
        time: 1000 + i / per_tick,
        seq: i % per_tick,
        machine: 7,
        ..layout.blank()
    };
    (0..1000)
        .map(|i| layout.pack(&id(i)).expect("an ID"))
        .collect()
}

/// The shards by `id % n`, each with its number of IDs.
fn shards(ids: &[u64], n: u64) -> BTreeMap<u64, u64> {
    let mut shards = BTreeMap::new();
    for id in ids {
        *shards.entry(id % n).or_default() += 1;
    }
    shards
}

#[test]
fn the_documented_number_of_shards_get_ids() {
    for layout in IdMeta::PRESETS {
        let cells = [true, false].map(|full| {
            let ids = ids(&layout, full);
            [16, 12, 17]
                .map(|n| format!(" {} of {n} |", shards(&ids, n).len()))
                .concat()
        });
        let name = format!("`{}`", layout.name());
        let row = DOCUMENT
            .lines()
            .find(|row| row.ends_with(&cells.concat()) && row.contains(&name));
        assert!(row.is_some(), "docs/use/layouts.md: {name}{cells:?}");
    }
}

#[test]
fn presets_with_the_machine_lowest_fill_one_shard_of_sixteen() {
    let fixed = IdMeta::PRESETS.map(|layout| (layout.name(), layout.same_low_bits()));
    let expected = [
        ("max-peak", 10),
        ("min-granularity", 10),
        ("snowflake", 0),
        ("uid", 0),
        ("js-safe", 8),
    ];
    assert_eq!(fixed, expected);
    for layout in IdMeta::PRESETS {
        let even = shards(&ids(&layout, true), 16);
        let is_fixed = layout.same_low_bits() > 0;
        let one = BTreeMap::from([(7, 1000)]);
        assert_eq!(even == one, is_fixed, "{} {even:?}", layout.name());
        // An odd number of shards is filled evenly.
        let odd = shards(&ids(&layout, true), 17);
        assert!(
            odd.len() == 17 && odd.values().all(|it| (50..=70).contains(it)),
            "{odd:?}"
        );
    }
}

/// A quiet generator produces each number below N equally often: 100 in Leaf, N of `random:N` here.
#[test]
fn random_starts_fill_the_shards_of_a_quiet_generator() {
    let spread = |starts: u64, n| {
        let shards = shards(&(0..starts).collect::<Vec<_>>(), n);
        let counts: Vec<_> = shards.into_values().collect();
        (
            counts.len(),
            *counts.iter().min().expect("a shard"),
            *counts.iter().max().expect("a shard"),
        )
    };
    assert_eq!(spread(100, 32), (32, 3, 4));
    assert_eq!(spread(100, 64), (64, 1, 2));
    assert_eq!(spread(128, 64), (64, 2, 2));
}

proptest! {
    /// These bits are the same whatever else differs; there are none unless the machine is the lowest field.
    #[test]
    fn same_low_bits_are_below_every_other_field(
        layout in any_layout(),
        machine in any::<u64>(),
        one in any::<[u64; 6]>(),
        other in any::<[u64; 6]>(),
    ) {
        let machine = machine & layout.max(Field::Machine);
        let id = |seeds| layout.pack(&Id { machine, ..parts(&layout, seeds) }).expect("an ID");
        let bits = u32::from(layout.same_low_bits());
        let differ = id(one) ^ id(other);
        prop_assert!(differ.trailing_zeros() >= bits);
        let lowest = layout.fields().into_iter().rev().find(|field| layout.bits(*field) > 0);
        prop_assert_eq!(bits > 0, lowest == Some(Field::Machine));
    }
}
