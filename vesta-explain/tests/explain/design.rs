//! The designer of layouts compared with every possible layout.

use vesta_explain::design;
use vesta_intf::{Field, FieldOrder, IdMeta, LayoutSpec, TimeUnit, UnixMillis};

const YEAR: u64 = 31_556_952_000;

/// Capacity of a layout: milliseconds, machine IDs and IDs per second; and its width in bits.
struct Offer {
    lasts: u64,
    machines: u64,
    per_second: u64,
    bits: u8,
    unit: TimeUnit,
}

/// All generating layouts of at most 63 bits, the narrowest first; of equals, the one with the
/// shortest ticks.
fn every() -> Vec<Offer> {
    let mut all = Vec::new();
    for unit in [TimeUnit::Millisecond, TimeUnit::TenMillis, TimeUnit::Second] {
        for time_bits in 1..=63 {
            for seq_bits in 0..=63 - time_bits {
                for machine_bits in 0..=63 - time_bits - seq_bits {
                    let spec = LayoutSpec {
                        version_bits: 0,
                        type_bits: 0,
                        gen_method_bits: 0,
                        time_bits,
                        seq_bits,
                        machine_bits,
                        order: FieldOrder::TimeSeqMachine,
                        unit,
                        epoch: UnixMillis(0),
                    };
                    all.extend(IdMeta::new(spec).ok().map(|layout| Offer {
                        lasts: layout.end().0,
                        machines: layout.max(Field::Machine) + 1,
                        per_second: layout.capacity_per_second(),
                        bits: layout.total_bits(),
                        unit,
                    }));
                }
            }
        }
    }
    all.sort_by_key(|offer| (offer.bits, offer.unit.micros()));
    all
}

#[test]
fn no_sufficient_layout_is_narrower() {
    let every = every();
    let (mut units, mut none) = (Vec::new(), 0);
    for years in [
        1,
        2,
        10,
        34,
        35,
        60,
        69,
        70,
        139,
        1_000,
        1_000_000,
        146_000_000,
        584_542_046,
    ] {
        for machines in [1, 2, 3, 1_000, 1_024, 1_025, 1_000_000, 1 << 32, u64::MAX] {
            for per_second in [
                1,
                2,
                99,
                100,
                101,
                1_000,
                1_001,
                50_000,
                1_024_000,
                1 << 40,
                1 << 62,
            ] {
                let asked = (years, machines, per_second);
                let does = every.iter().find(|it| {
                    u128::from(it.lasts) >= u128::from(years) * u128::from(YEAR)
                        && it.machines >= machines
                        && it.per_second >= per_second
                });
                let found = design(years, machines, per_second, UnixMillis(0)).ok();
                let bits = |spec: LayoutSpec| spec.time_bits + spec.seq_bits + spec.machine_bits;
                let found = found.map(|spec| (bits(spec), spec.unit));
                assert_eq!(found, does.map(|it| (it.bits, it.unit)), "{asked:?}");
                units.extend(found.map(|it| it.1));
                none += u32::from(found.is_none());
            }
        }
    }
    // The grid covers all results.
    for unit in [TimeUnit::Millisecond, TimeUnit::TenMillis, TimeUnit::Second] {
        assert!(units.contains(&unit), "{unit}");
    }
    assert!(none > 100 && units.len() > 100, "{none} {}", units.len());
}

#[test]
fn an_impossible_layout_is_refused_with_the_reason() {
    for (asked, said) in [
        (
            (100, 1_000_000, 1_000_000),
            "32 bits of seconds, 1000000 IDs/s 20 bits of sequence and 1000000",
        ),
        ((146_000_000, 1, 1), "reaches beyond the year"),
        (
            (100, 1, 1 << 31),
            "time and sequence together have at most 62 bits",
        ),
        ((1, 0, 1), "machines must be 1 to"),
    ] {
        let (years, machines, per_second) = asked;
        let error = design(years, machines, per_second, UnixMillis(0)).expect_err(said);
        assert!(error.to_string().contains(said), "{error}");
    }
}
