//! Layouts of arbitrary numbers: every accepted layout packs, unpacks, explains and bounds without a
//! panic and without losing a bit.

use vesta_explain::layouts;
use vesta_intf::{
    Field, FieldOrder, Id, IdError, IdMeta, LayoutSpec, SequenceStart, TimeUnit, UnixMillis,
};

type Numbers = (u8, [u8; 6], u8, u8, u64, [u64; 6], u64, u64);

/// A layout of these numbers. Random widths hardly ever add up, so most are cut to the remaining bits.
fn spec(mode: u8, mut widths: [u8; 6], order: u8, unit: u8, epoch: u64) -> LayoutSpec {
    if !mode.is_multiple_of(4) {
        let mut left = 64 + mode % 3 / 2; // occasionally one too many
        widths[0] %= 2;
        for i in [0, 3, 4, 5, 1, 2] {
            widths[i] %= left.min(62) + 1;
            left -= widths[i];
        }
    }
    let [
        version_bits,
        type_bits,
        gen_method_bits,
        time_bits,
        seq_bits,
        machine_bits,
    ] = widths;
    LayoutSpec {
        version_bits,
        type_bits,
        gen_method_bits,
        time_bits,
        seq_bits,
        machine_bits,
        order: [
            FieldOrder::TimeSeqMachine,
            FieldOrder::TimeMachineSeq,
            FieldOrder::MachineTimeSeq,
        ][usize::from(order % 3)],
        unit: [TimeUnit::Second, TimeUnit::TenMillis, TimeUnit::Millisecond][usize::from(unit % 3)],
        epoch: UnixMillis(epoch >> (mode % 64)),
    }
}

fn sum(s: &LayoutSpec) -> u32 {
    [
        s.version_bits,
        s.type_bits,
        s.gen_method_bits,
        s.time_bits,
        s.seq_bits,
        s.machine_bits,
    ]
    .map(u32::from)
    .iter()
    .sum()
}

/// The validity rules for a layout, in wider arithmetic.
fn adds_up(s: &LayoutSpec) -> bool {
    let end = (1u128 << s.time_bits.min(100)) * u128::from(s.unit.millis());
    sum(s) <= 64
        && s.version_bits <= 1
        && (1..62).contains(&s.time_bits)
        && end < 1 << 62
        && s.epoch.0 < 1 << 62
}

fn fits(value: u64, bits: u8) -> bool {
    u128::from(value) < 1 << bits
}

/// The values of the fields with their names, most significant first.
fn values(meta: &IdMeta, id: &Id) -> [(Field, u64); 6] {
    meta.fields().map(|field| {
        let value = match field {
            Field::Version => id.version,
            Field::Type => id.id_type,
            Field::GenMethod => id.gen_method,
            Field::Time => id.time,
            Field::Seq => id.seq,
            Field::Machine => id.machine,
        };
        (field, value)
    })
}

/// The ID of fields that fit, by concatenating them.
fn side_by_side(meta: &IdMeta, id: &Id) -> u64 {
    let all = values(meta, id)
        .into_iter()
        .fold(0u128, |raw, (field, value)| {
            raw << meta.bits(field) | u128::from(value)
        });
    u64::try_from(all).expect("at most 64 bits")
}

fn check((mode, widths, order, unit, epoch, seeds, raw, moment): &Numbers) {
    let spec = spec(*mode, *widths, *order, *unit, *epoch);
    let meta = match IdMeta::foreign(spec) {
        Ok(meta) => meta,
        Err(IdError::Invalid {
            field: "layout", ..
        }) => return assert!(!adds_up(&spec)),
        Err(other) => panic!("{other}"),
    };
    assert!(adds_up(&spec), "{spec:?}");
    assert_eq!(u32::from(meta.total_bits()), sum(&spec));
    assert_eq!(IdMeta::new(spec).is_ok(), meta.check_generates().is_ok());
    let _ = (
        meta.to_string(),
        meta.fingerprint(),
        layouts::about(&meta),
        meta.capacity_per_second(),
    );
    let _ = (meta.end().to_string(), meta.end().to_system_time());
    let _ = SequenceStart::Random(1 << (mode % 32)).check(&meta);

    // Half of them are cut to their fields, so that not every ID is refused.
    let cut = |i: usize, field| {
        seeds[i]
            & if mode & 1 == 0 {
                meta.max(field)
            } else {
                u64::MAX
            }
    };
    let id = Id {
        version: cut(0, Field::Version),
        id_type: cut(1, Field::Type),
        gen_method: cut(2, Field::GenMethod),
        time: cut(3, Field::Time),
        seq: cut(4, Field::Seq),
        machine: cut(5, Field::Machine),
    };
    let all_fit = values(&meta, &id)
        .into_iter()
        .all(|(f, value)| fits(value, meta.bits(f)));
    match meta.pack(&id) {
        Ok(packed) => {
            assert!(all_fit, "{id:?}");
            assert_eq!(packed, side_by_side(&meta, &id), "{id:?}");
            assert_eq!(meta.unpack(packed).unwrap(), id);
            positions(&meta, &id, packed);
        }
        Err(IdError::OutOfRange { .. }) => assert!(!all_fit, "{id:?}"),
        Err(other) => panic!("{other}"),
    }

    for raw in [*raw, raw >> (mode % 64)] {
        match meta.unpack(raw) {
            Ok(parts) => assert_eq!(meta.pack(&parts).unwrap(), raw),
            Err(_) => assert!(!fits(raw, meta.total_bits())),
        }
        let _ = meta.explaining(raw).unpack(raw);
        let _ = meta.of_type_value(raw);
        times(&meta, &id, UnixMillis(raw));
    }
    times(&meta, &id, UnixMillis(*moment));
    times(
        &meta,
        &id,
        UnixMillis(meta.spec().epoch.0.saturating_add(*moment >> (mode % 64))),
    );
    times(&meta, &id, UnixMillis(meta.end().0 - 1));
    times(&meta, &id, meta.end());
}

/// A generator's base and position produce the same ID as packing the fields.
fn positions(meta: &IdMeta, id: &Id, packed: u64) {
    if meta.check_generates().is_ok() {
        let base = meta
            .pack(&Id {
                time: 0,
                seq: 0,
                ..*id
            })
            .unwrap();
        let position = id.time << meta.bits(Field::Seq) | id.seq;
        assert_eq!(meta.id_at(base, position), packed);
        assert!(meta.step() >= 1);
    }
}

fn times(meta: &IdMeta, base: &Id, moment: UnixMillis) {
    let _ = moment.to_string();
    let inside = meta.spec().epoch <= moment && moment < meta.end();
    match meta.tick_at(moment) {
        Ok(tick) => {
            assert!(inside);
            let begin = meta.moment_of(tick).unwrap();
            assert!(begin <= moment && moment.0 - begin.0 < meta.spec().unit.millis());
        }
        Err(_) => assert!(!inside, "{moment:?}"),
    }
    match (
        meta.lower_bound(moment, base),
        meta.upper_bound(moment, base),
    ) {
        (Ok(lower), Ok(upper)) => {
            assert!(inside && lower <= upper);
            let tick = meta.tick_at(moment).unwrap();
            assert_eq!(meta.unpack(lower).unwrap().time, tick);
            assert_eq!(meta.unpack(upper).unwrap().time, tick);
        }
        (Err(_), Err(_)) => {}
        (lower, upper) => panic!("{lower:?} but {upper:?}"),
    }
    assert_eq!(
        meta.moment_of(moment.0).is_ok(),
        moment.0 <= meta.max(Field::Time)
    );
}

#[test]
fn layouts_of_any_numbers() {
    bolero::check!()
        .with_iterations(100_000)
        .with_type()
        .for_each(check);
}
