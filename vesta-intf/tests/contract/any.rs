//! Arbitrary layouts.

use proptest::prelude::*;
use vesta_intf::{Field, FieldOrder, Id, IdMeta, LayoutSpec, TimeUnit, UnixMillis};

pub(crate) const FIELDS: [Field; 6] = [
    Field::Version,
    Field::Type,
    Field::GenMethod,
    Field::Time,
    Field::Seq,
    Field::Machine,
];

pub(crate) fn set(id: &mut Id, field: Field, value: u64) {
    *match field {
        Field::Version => &mut id.version,
        Field::Type => &mut id.id_type,
        Field::GenMethod => &mut id.gen_method,
        Field::Time => &mut id.time,
        Field::Seq => &mut id.seq,
        Field::Machine => &mut id.machine,
    } = value;
}

/// The fields given by six numbers, in the order of `FIELDS`, each cut to its field.
pub(crate) fn parts(meta: &IdMeta, seeds: [u64; 6]) -> Id {
    let mut id = Id::default();
    for (field, seed) in FIELDS.into_iter().zip(seeds) {
        set(&mut id, field, seed & meta.max(field));
    }
    id
}

/// Any layout, including those that only explain IDs.
pub(crate) fn any_layout() -> impl Strategy<Value = IdMeta> {
    let unit = prop_oneof![
        Just(TimeUnit::Second),
        Just(TimeUnit::TenMillis),
        Just(TimeUnit::Millisecond)
    ];
    let order = prop_oneof![
        Just(FieldOrder::TimeSeqMachine),
        Just(FieldOrder::TimeMachineSeq),
        Just(FieldOrder::MachineTimeSeq)
    ];
    let upper = (0..=1u8, 0..=2u8, 0..=2u8);
    let lower = (1..=48u8, 0..=22u8, 0..=24u8);
    (upper, lower, unit, order, 0..1u64 << 42)
        .prop_map(|(upper, lower, unit, order, epoch)| {
            IdMeta::foreign(LayoutSpec {
                version_bits: upper.0,
                type_bits: upper.1,
                gen_method_bits: upper.2,
                time_bits: lower.0,
                seq_bits: lower.1,
                machine_bits: lower.2,
                order,
                unit,
                epoch: UnixMillis(epoch),
            })
        })
        .prop_filter_map("adds up", Result::ok)
}
