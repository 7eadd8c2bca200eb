//! Every layout packs and unpacks every boundary, and agrees with the values of the original Vesta.

use proptest::prelude::*;
use vesta_explain::layouts;
use vesta_intf::{ErrorKind, Field, Id, IdError, IdMeta, LayoutSpec, TimeUnit, UnixMillis};

use crate::any::{FIELDS, any_layout, parts, set};

/// Computed with the Java Vesta's converter: type, machine, seq, time, genMethod, version.
#[test]
fn golden_values_of_the_original() {
    let max_peak = [
        ([1, 0, 0, 0, 0], 0x1),
        ([0, 1, 0, 0, 0], 0x400),
        ([0, 0, 1, 0, 0], 0x4000_0000),
        ([7, 42, 123_456_789, 1, 0], 1_285_482_222_412_933_127),
        (
            [1023, 1_048_575, 1_073_741_823, 3, 1],
            0xbfff_ffff_ffff_ffff,
        ),
        ([1021, 0, 94_990_103, 2, 0], 2_407_837_855_670_862_845),
    ];
    let min_granularity = [
        ([0, 0, 1, 0, 0], 0x4000_0000_0010_0000),
        ([7, 42, 123_456_789_012, 2, 0], 7_046_982_853_636_171_783),
        ([1023, 1023, 1_099_511_627_775, 3, 1], 0xffff_ffff_ffff_ffff),
    ];
    for (meta, values) in [
        (IdMeta::MAX_PEAK, &max_peak[..]),
        (IdMeta::MIN_GRANULARITY, &min_granularity[..]),
    ] {
        for &([machine, seq, time, gen_method, version], raw) in values {
            let id = Id {
                gen_method,
                machine,
                seq,
                time,
                id_type: meta.id_type(),
                version,
            };
            assert_eq!(meta.pack(&id).unwrap(), raw, "{meta}: {id:?}");
            assert_eq!(meta.unpack(raw).unwrap(), id);
            assert_eq!(
                meta.explaining(raw),
                meta,
                "the type bit chooses the layout"
            );
        }
    }
}

/// The values that the clients of other languages are tested with.
#[test]
fn golden_values_of_the_clients() {
    let table = include_str!("../../../scripts/check/clients/golden.txt");
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let mut checked = 0;
    for row in rows {
        let numbers: Vec<u64> = row.split(' ').map(|text| text.parse().unwrap()).collect();
        let [
            named,
            version,
            id_type,
            gen_method,
            time,
            seq,
            machine,
            raw,
            millis,
        ] = numbers[..]
        else {
            panic!("{row}");
        };
        let meta = IdMeta::MAX_PEAK.of_type_value(id_type).unwrap();
        let id = Id {
            gen_method,
            machine,
            seq,
            time,
            id_type,
            version,
        };
        assert_eq!(meta.pack(&id).unwrap(), raw, "{row}");
        assert_eq!(meta.unpack(raw).unwrap(), id, "{row}");
        assert_eq!(meta.moment_of(time).unwrap(), UnixMillis(millis), "{row}");
        let defaults = [
            (3, machine, 1021),
            (4, gen_method, 2),
            (5, id_type, 0),
            (6, version, 0),
        ];
        for (at_least, part, default) in defaults {
            assert!(named >= at_least || part == default, "{row}");
        }
        checked += 1;
    }
    assert_eq!(checked, 400);
}

/// Only Vesta has `js-safe`. Computed by multiplication in another language: 2026-01-01T00:00:00Z is
/// 347184000 s after the epoch, 2015-01-01T00:00:00+08:00, and 347184000 * 2^22 + 42 * 2^8 + 7 =
/// 1456195239946759; with all bits set it is 2^53 - 1, JavaScript's `Number.MAX_SAFE_INTEGER`.
#[test]
fn golden_values_of_js_safe() {
    let meta = IdMeta::JS_SAFE;
    for ([machine, seq, time], raw) in [
        ([1, 0, 0], 1),
        ([0, 1, 0], 256),
        ([0, 0, 1], 4_194_304),
        ([7, 42, 347_184_000], 1_456_195_239_946_759),
        ([255, 16_383, 2_147_483_647], 9_007_199_254_740_991),
    ] {
        let id = Id {
            machine,
            seq,
            time,
            ..Id::default()
        };
        assert_eq!(meta.pack(&id).unwrap(), raw, "{id:?}");
        assert_eq!(meta.unpack(raw).unwrap(), id);
    }
    assert_eq!(
        meta.moment_of(347_184_000).unwrap().to_string(),
        "2026-01-01T00:00:00.000Z"
    );
}

/// The custom layout described in docs/use/layouts.md, computed by multiplication in another language:
/// 2026-06-01T12:00:00.123Z is 13089600123 ms after 2026-01-01, and 13089600123 * 2^22 + 1021 * 2^12
/// + 4095 = 54901762158485503. With version 1 it is 2^63 larger.
#[test]
fn golden_values_of_a_custom_layout() {
    let epoch = UnixMillis(1_767_225_600_000);
    let meta = IdMeta::new(LayoutSpec {
        epoch,
        ..*IdMeta::SNOWFLAKE.spec()
    })
    .unwrap();
    let id = Id {
        time: 13_089_600_123,
        machine: 1021,
        seq: 4095,
        ..Id::default()
    };
    assert_eq!(meta.pack(&id).unwrap(), 54_901_762_158_485_503);
    let negative = Id { version: 1, ..id };
    assert_eq!(meta.pack(&negative).unwrap(), 9_278_273_799_013_261_311);
    assert_eq!(meta.unpack(9_278_273_799_013_261_311).unwrap(), negative);
    assert_eq!(
        meta.moment_of(id.time).unwrap().to_string(),
        "2026-06-01T12:00:00.123Z"
    );
}

/// A value on each side of each boundary of each field, with every other field empty and full.
#[test]
fn every_preset_at_every_boundary() {
    for meta in layouts::all() {
        for field in FIELDS {
            let max = meta.max(field);
            for full in [false, true] {
                let mut id = Id::default();
                if full {
                    FIELDS
                        .into_iter()
                        .for_each(|other| set(&mut id, other, meta.max(other)));
                }
                for value in [0, 1, max / 2, max.saturating_sub(1), max] {
                    if value > max {
                        continue; // 1 in a field without bits
                    }
                    set(&mut id, field, value);
                    let raw = meta.pack(&id).unwrap();
                    assert_eq!(meta.unpack(raw).unwrap(), id, "{meta} {field:?}");
                }
                for value in [max + 1, u64::MAX] {
                    set(&mut id, field, value);
                    let error = meta.pack(&id).unwrap_err();
                    assert_eq!(
                        error.kind(),
                        ErrorKind::OutOfRange,
                        "{meta} {field:?} {value}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_id_with_more_bits_than_its_layout_is_refused() {
    assert!(IdMeta::JS_SAFE.unpack(1 << 53).is_err());
    assert!(IdMeta::JS_SAFE.unpack((1 << 53) - 1).is_ok());
    assert_eq!(IdMeta::JS_SAFE.total_bits(), 53);
}

#[test]
fn a_layout_that_does_not_add_up_is_refused_with_the_rule() {
    let good = *IdMeta::SNOWFLAKE.spec();
    let flaws = [
        (
            LayoutSpec {
                machine_bits: 11,
                ..good
            },
            "more than 64 bits",
        ),
        (
            LayoutSpec {
                version_bits: 2,
                machine_bits: 9,
                ..good
            },
            "at most 1 bit",
        ),
        (
            LayoutSpec {
                time_bits: 0,
                ..good
            },
            "at least 1 bit",
        ),
        (
            LayoutSpec {
                time_bits: 51,
                seq_bits: 12,
                machine_bits: 0,
                ..good
            },
            "at most 62 bits",
        ),
        (
            LayoutSpec {
                time_bits: 61,
                seq_bits: 0,
                machine_bits: 0,
                unit: TimeUnit::Second,
                ..good
            },
            "year",
        ),
        (
            LayoutSpec {
                epoch: UnixMillis(u64::MAX),
                ..good
            },
            "year",
        ),
    ];
    for (spec, rule) in flaws {
        let error = IdMeta::new(spec).unwrap_err();
        assert!(matches!(
            error,
            IdError::Invalid {
                field: "layout",
                ..
            }
        ));
        assert!(
            error.to_string().contains(rule),
            "{error} should mention {rule}"
        );
    }
}

/// A layout that merely resembles Vesta's is explained by its own bits.
#[test]
fn a_custom_layout_is_never_taken_for_one_of_vestas() {
    let spec = LayoutSpec {
        time_bits: 31,
        seq_bits: 19,
        ..*IdMeta::MAX_PEAK.spec()
    };
    let meta = IdMeta::new(spec).unwrap();
    let id = Id {
        time: 400_000_000,
        seq: 5,
        machine: 7,
        ..Id::default()
    };
    let raw = meta.pack(&id).unwrap();
    assert_eq!(meta.explaining(raw).unpack(raw).unwrap(), id);
    assert!(IdMeta::MAX_PEAK.is_vesta() && IdMeta::MIN_GRANULARITY.is_vesta());
}

#[test]
fn the_named_layouts_end_when_documented() {
    for (meta, end) in [
        (IdMeta::MAX_PEAK, "2049-01-09T05:37:04.000Z"),
        (IdMeta::MIN_GRANULARITY, "2049-11-03T11:53:47.776Z"),
        (IdMeta::SNOWFLAKE, "2080-07-10T17:30:30.209Z"),
        (IdMeta::UID, "2024-11-20T13:24:16.000Z"),
        (IdMeta::JS_SAFE, "2083-01-18T19:14:08.000Z"),
        (layouts::DISCORD, "2154-05-15T07:35:11.104Z"),
        (layouts::INSTAGRAM, "2081-04-30T12:54:37.273Z"),
        (layouts::MASTODON, "10889-08-02T05:31:50.656Z"),
        (layouts::SONYFLAKE, "2188-11-16T03:28:58.880Z"),
        (layouts::VESTA_OLD, "2049-01-09T05:37:04.000Z"),
    ] {
        assert_eq!(meta.end().to_string(), end, "{meta}");
        let last = UnixMillis(meta.end().0 - 1);
        assert_eq!(meta.tick_at(last).unwrap(), meta.max(Field::Time));
        assert!(matches!(
            meta.tick_at(meta.end()),
            Err(IdError::TimeExhausted)
        ));
        assert_eq!(meta.tick_at(meta.spec().epoch).unwrap(), 0);
        if let Some(before) = meta.spec().epoch.0.checked_sub(1) {
            assert!(meta.tick_at(UnixMillis(before)).is_err());
        }
    }
}

fn layout_with_positions() -> impl Strategy<Value = IdMeta> {
    any_layout().prop_filter("a position fits", |meta| {
        meta.bits(Field::Time) + meta.bits(Field::Seq) <= 62
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_layout_packs_and_unpacks(meta in any_layout(), seeds in any::<[u64; 6]>()) {
        let id = parts(&meta, seeds);
        let raw = meta.pack(&id).unwrap();
        prop_assert_eq!(meta.unpack(raw).unwrap(), id);
    }

    /// Each field is directly above the next one, and the last one at the bottom.
    #[test]
    fn the_fields_of_a_layout_are_adjacent(meta in any_layout()) {
        let mut place = 0;
        for field in meta.fields().into_iter().rev() {
            prop_assert_eq!(meta.shift(field), place);
            place += meta.bits(field);
        }
        prop_assert_eq!(meta.total_bits(), place);
    }

    /// Generation (base and position) gives the same IDs as packing (fields).
    #[test]
    fn the_id_at_a_position_has_its_fields(meta in layout_with_positions(), seeds in any::<[u64; 6]>()) {
        let id = parts(&meta, seeds);
        let base = meta.pack(&Id { time: 0, seq: 0, ..id }).unwrap();
        let position = id.time << meta.bits(Field::Seq) | id.seq;
        prop_assert_eq!(meta.id_at(base, position), meta.pack(&id).unwrap());
        if id.seq < meta.max(Field::Seq) {
            prop_assert_eq!(meta.id_at(base, position + 1), meta.id_at(base, position) + meta.step());
        }
    }

    #[test]
    fn a_moment_inside_a_tick_belongs_to_it(meta in any_layout(), seed in any::<u64>(), inside in any::<u64>()) {
        let tick = seed & meta.max(Field::Time);
        let begin = meta.moment_of(tick).unwrap();
        let moment = UnixMillis(begin.0 + inside % meta.spec().unit.millis());
        prop_assert_eq!(meta.tick_at(moment).unwrap(), tick);
        prop_assert!(moment < meta.end());
    }
}
