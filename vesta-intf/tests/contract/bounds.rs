//! Bounds by time hold for every ID of every layout that sorts by time.

use proptest::prelude::*;
use vesta_explain::layouts;
use vesta_intf::{ErrorKind, Field, GenMethod, Id, IdMeta, UnixMillis};

use crate::any::{any_layout, parts};

/// Any layout that sorts by time, with a preference for named ones.
fn layouts() -> impl Strategy<Value = IdMeta> {
    let known: Vec<_> = layouts::all().collect();
    prop_oneof![any_layout(), proptest::sample::select(known)]
        .prop_filter("sorts by time", |meta| meta.spec().order.sorts_by_time())
}

/// The fields above the time.
fn above(meta: &IdMeta, seeds: [u64; 3]) -> Id {
    Id {
        id_type: if meta.is_vesta() {
            meta.id_type()
        } else {
            seeds[1] & meta.max(Field::Type)
        },
        ..parts(meta, [seeds[0], 0, seeds[2], 0, 0, 0])
    }
}

/// By arithmetic: 2026-01-01T00:00:00Z is 347,184,000 s after 2014-12-31T16:00:00Z.
#[test]
fn golden_bounds() {
    let new_year = UnixMillis(1_767_225_600_000);
    let meta = IdMeta::MAX_PEAK;
    let base = Id {
        gen_method: GenMethod::Central.value(),
        ..meta.blank()
    };
    let first = (1 << 60) + (347_184_000 << 30);
    assert_eq!(meta.lower_bound(new_year, &base).unwrap(), first);
    assert_eq!(
        meta.upper_bound(new_year, &base).unwrap(),
        first + (1 << 30) - 1
    );
    let within = UnixMillis(new_year.0 + 999);
    assert_eq!(
        meta.lower_bound(within, &base).unwrap(),
        first,
        "a bound covers whole ticks"
    );
    assert_eq!(
        meta.lower_bound(UnixMillis(new_year.0 + 1000), &base)
            .unwrap(),
        first + (1 << 30)
    );

    // 2016-04-30T11:18:25.796Z: the moment of Discord's documented example.
    let meta = layouts::DISCORD;
    let moment = UnixMillis(1_462_015_105_796);
    assert_eq!(
        meta.lower_bound(moment, &meta.blank()).unwrap(),
        41_944_705_796 << 22
    );
    assert_eq!(
        meta.upper_bound(moment, &meta.blank()).unwrap(),
        (41_944_705_797 << 22) - 1
    );
}

#[test]
fn a_moment_outside_the_layouts_time_has_no_bound() {
    for meta in layouts::all().filter(|meta| meta.spec().order.sorts_by_time()) {
        let base = meta.blank();
        let (epoch, end) = (meta.spec().epoch, meta.end());
        assert_eq!(
            meta.unpack(meta.lower_bound(epoch, &base).unwrap())
                .unwrap(),
            base
        );
        let last = meta
            .unpack(meta.upper_bound(UnixMillis(end.0 - 1), &base).unwrap())
            .unwrap();
        for field in [Field::Time, Field::Seq, Field::Machine] {
            let part = match field {
                Field::Time => last.time,
                Field::Seq => last.seq,
                _ => last.machine,
            };
            assert_eq!(part, meta.max(field), "{meta}");
        }
        let mut outside = vec![end, UnixMillis(end.0 + 1), UnixMillis(u64::MAX)];
        outside.extend(epoch.0.checked_sub(1).map(UnixMillis));
        for moment in outside {
            for bound in [
                meta.lower_bound(moment, &base),
                meta.upper_bound(moment, &base),
            ] {
                let error = bound.unwrap_err();
                assert_eq!(
                    error.kind(),
                    ErrorKind::Invalid,
                    "the caller's, not the service's"
                );
                let says = if moment < epoch { "before" } else { "ends" };
                assert!(error.to_string().starts_with("time: "), "{error}");
                assert!(error.to_string().contains(says), "{error}");
            }
        }
    }
}

#[test]
fn a_base_of_another_layout_is_refused() {
    let moment = UnixMillis(1_767_225_600_000);
    let refused = |meta: IdMeta, base: Id| {
        let error = meta.lower_bound(moment, &base).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
        error.to_string()
    };
    let other_type = refused(IdMeta::MIN_GRANULARITY, Id::default());
    assert_eq!(other_type, "type must be 1 to 1, but is 0");
    refused(IdMeta::MAX_PEAK, IdMeta::MIN_GRANULARITY.blank());
    refused(
        IdMeta::SNOWFLAKE,
        Id {
            gen_method: 1,
            ..Id::default()
        },
    );
    refused(
        IdMeta::MAX_PEAK,
        Id {
            version: 2,
            ..Id::default()
        },
    );

    let error = layouts::VESTA_OLD
        .lower_bound(moment, &Id::default())
        .unwrap_err();
    assert!(error.to_string().contains("no bounds by time"), "{error}");
}

/// Fields below the time in `base` do not matter.
#[test]
fn any_id_is_accepted_as_a_base() {
    let moment = UnixMillis(1_767_225_600_000);
    for meta in [IdMeta::MAX_PEAK, IdMeta::MIN_GRANULARITY] {
        let own = Id {
            gen_method: 2,
            version: 1,
            ..meta.blank()
        };
        let any = Id {
            time: 5,
            seq: 6,
            machine: 7,
            ..own
        };
        assert_eq!(
            meta.lower_bound(moment, &own).unwrap(),
            meta.lower_bound(moment, &any).unwrap()
        );
        assert_eq!(
            meta.upper_bound(moment, &own).unwrap(),
            meta.upper_bound(moment, &any).unwrap()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Every ID of a tick before the moment's is below both bounds, every one of the moment's tick
    /// is between them (inclusive), and every one of a later tick is above both.
    #[test]
    fn bounds_divide_the_ids_by_their_time(
        meta in layouts(),
        seeds in any::<[u64; 3]>(),
        tick in any::<u64>(),
        inside in any::<u64>(),
        others in proptest::collection::vec((any::<u64>(), -2..=2i64, any::<u64>(), any::<u64>()), 1..8),
    ) {
        let base = above(&meta, seeds);
        let max = meta.max(Field::Time);
        let tick = tick & max;
        // A moment has millisecond precision; a millisecond may contain several ticks.
        let several = 1000u64.div_ceil(meta.spec().unit.micros());
        let first = tick - tick % several;
        let last = (first + several - 1).min(max);
        let begin = meta.moment_of(tick).unwrap();
        let moment = UnixMillis(begin.0 + inside % meta.spec().unit.millis());
        let low = meta.lower_bound(moment, &base).unwrap();
        let high = meta.upper_bound(moment, &base).unwrap();
        prop_assert!(low <= high);

        let near = others.iter().filter_map(|(_, off, seq, machine)| {
            Some((tick.checked_add_signed(*off).filter(|time| *time <= max)?, *seq, *machine))
        });
        let far = others.iter().map(|(time, _, seq, machine)| (*time & max, *seq, *machine));
        let edges = [(0, 0), (u64::MAX, 0), (0, u64::MAX), (u64::MAX, u64::MAX)];
        let edges = edges.map(|(seq, machine)| (tick, seq, machine));
        for (time, seq, machine) in near.chain(far).chain(edges) {
            let seq = seq & meta.max(Field::Seq);
            let machine = machine & meta.max(Field::Machine);
            let id = meta.pack(&Id { time, seq, machine, ..base }).unwrap();
            prop_assert_eq!(id < low, time < first);
            prop_assert_eq!(id > high, time > last);
        }
        // The bounds are IDs themselves, so no tighter ones exist.
        prop_assert_eq!(meta.unpack(low).unwrap().time, first);
        prop_assert_eq!(meta.unpack(high).unwrap().time, last);
        if last < max {
            let next = UnixMillis(begin.0 + meta.spec().unit.millis());
            prop_assert_eq!(meta.lower_bound(next, &base).unwrap(), high + 1);
        }
    }
}
