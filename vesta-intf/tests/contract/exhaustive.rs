//! Every ID of every small layout: packing is a bijection, and nothing is masked.
//!
//! The model is an odometer. Turned from 0 on, field by field with the most significant first, its n-th
//! turn must show the fields of ID n. This proves the position of each field, that no two IDs share a
//! number, and that no number is left out.

use vesta_intf::{ErrorKind, Field, FieldOrder, Id, IdMeta, LayoutSpec, TimeUnit, UnixMillis};

use crate::any::{FIELDS, set};

const ORDERS: [FieldOrder; 3] = [
    FieldOrder::TimeSeqMachine,
    FieldOrder::TimeMachineSeq,
    FieldOrder::MachineTimeSeq,
];

/// Every layout whose fields total `total` bits, in every order.
fn layouts(total: u8) -> Vec<IdMeta> {
    let mut found = Vec::new();
    for version_bits in 0..=1 {
        for type_bits in 0..=total {
            for gen_method_bits in 0..=total {
                for seq_bits in 0..=total {
                    for machine_bits in 0..=total {
                        let others =
                            version_bits + type_bits + gen_method_bits + seq_bits + machine_bits;
                        if others >= total {
                            continue; // the time field needs at least one bit
                        }
                        found.extend(ORDERS.map(|order| {
                            IdMeta::foreign(LayoutSpec {
                                version_bits,
                                type_bits,
                                gen_method_bits,
                                time_bits: total - others,
                                seq_bits,
                                machine_bits,
                                order,
                                unit: TimeUnit::Second,
                                epoch: UnixMillis(0),
                            })
                            .unwrap()
                        }));
                    }
                }
            }
        }
    }
    found
}

/// Widths and order of the fields, most significant first.
struct Odometer<'a> {
    sizes: &'a [(Field, u64)],
    shows: Vec<u64>,
}

impl<'a> Odometer<'a> {
    fn new(sizes: &'a [(Field, u64)]) -> Self {
        Self {
            sizes,
            shows: vec![0; sizes.len()],
        }
    }

    fn id(&self) -> Id {
        let mut id = Id::default();
        for ((field, _), value) in self.sizes.iter().zip(&self.shows) {
            set(&mut id, *field, *value);
        }
        id
    }

    /// Advances by one; returns `false` when it has wrapped to zero.
    fn turn(&mut self) -> bool {
        for ((_, size), value) in self.sizes.iter().zip(&mut self.shows).rev() {
            *value += 1;
            if *value < *size {
                return true;
            }
            *value = 0;
        }
        false
    }
}

/// The fields in the order of the specification, each with the number of its values.
fn sizes(spec: &LayoutSpec) -> [(Field, u64); 6] {
    let size = |bits: u8| (0..bits).fold(1, |size, _| 2 * size);
    let time = (Field::Time, size(spec.time_bits));
    let seq = (Field::Seq, size(spec.seq_bits));
    let machine = (Field::Machine, size(spec.machine_bits));
    let lower = match spec.order {
        FieldOrder::TimeSeqMachine => [time, seq, machine],
        FieldOrder::TimeMachineSeq => [time, machine, seq],
        FieldOrder::MachineTimeSeq => [machine, time, seq],
    };
    [
        (Field::Version, size(spec.version_bits)),
        (Field::Type, size(spec.type_bits)),
        (Field::GenMethod, size(spec.gen_method_bits)),
        lower[0],
        lower[1],
        lower[2],
    ]
}

type Pack = fn(&IdMeta, &Id) -> Option<u64>;

fn pack(meta: &IdMeta, id: &Id) -> Option<u64> {
    meta.pack(id).ok()
}

/// Compares every ID of a layout with the odometer; returns their number.
fn every_id(meta: &IdMeta, pack: Pack) -> Result<u64, String> {
    let sizes = sizes(meta.spec());
    let mut odometer = Odometer::new(&sizes);
    let mut raw = 0;
    loop {
        let id = odometer.id();
        let packed = pack(meta, &id);
        if packed != Some(raw) {
            return Err(format!("{meta}: {id:?} is {packed:?}, not {raw}"));
        }
        if meta.unpack(raw).ok() != Some(id) {
            return Err(format!("{meta}: {raw} does not unpack to {id:?}"));
        }
        raw += 1;
        if !odometer.turn() {
            return Ok(raw);
        }
    }
}

/// Values that do not fit a field of this size: the next ones, those that a mask would cut to a
/// value that fits, and the largest possible ones.
fn too_large(size: u64) -> impl Iterator<Item = u64> {
    let powers = (0..64)
        .map(|bit| 1 << bit)
        .filter(move |power| *power >= size);
    powers
        .flat_map(move |power| [power, power + size / 2, power + (size - 1)])
        .chain([u64::MAX])
}

/// Puts oversized values into each field of some IDs; returns the number of refusals.
fn everything_else(meta: &IdMeta, pack: Pack) -> Result<u64, String> {
    let mut refused = 0;
    for full in [false, true] {
        for (field, size) in sizes(meta.spec()) {
            for value in too_large(size) {
                let mut id = Id::default();
                if full {
                    FIELDS
                        .into_iter()
                        .for_each(|other| set(&mut id, other, meta.max(other)));
                }
                set(&mut id, field, value);
                if let Some(raw) = pack(meta, &id) {
                    return Err(format!("{meta}: {id:?} became {raw}"));
                }
                refused += 1;
            }
        }
    }
    for raw in too_large(1 << meta.total_bits()) {
        match meta.unpack(raw) {
            Err(error) if error.kind() == ErrorKind::OutOfRange => refused += 1,
            other => return Err(format!("{meta}: {raw} became {other:?}")),
        }
    }
    Ok(refused)
}

/// Checks that services, which build IDs from a base and a position, produce the same ones.
fn every_position(meta: &IdMeta) -> u64 {
    let spec = meta.spec();
    let mut made = 0;
    for machine in 0..=meta.max(Field::Machine) {
        let fixed = Id {
            machine,
            version: meta.max(Field::Version),
            ..Id::default()
        };
        let base = meta.pack(&fixed).unwrap();
        let mut position = 0;
        let mut before = None;
        for time in 0..1 << spec.time_bits {
            for seq in 0..1 << spec.seq_bits {
                let id = meta.id_at(base, position);
                assert_eq!(
                    meta.unpack(id).unwrap(),
                    Id { time, seq, ..fixed },
                    "{meta}"
                );
                if let Some(before) = before {
                    assert!(
                        id > before,
                        "{meta}: the ID of position {position} is not larger"
                    );
                    let within = seq > 0 || spec.order == FieldOrder::TimeSeqMachine;
                    assert!(
                        !within || id - before == meta.step(),
                        "{meta}: at {position}"
                    );
                }
                before = Some(id);
                position += 1;
                made += 1;
            }
        }
    }
    made
}

fn check(layouts: &[IdMeta]) {
    let (mut ids, mut refused, mut positions, mut generating) = (0, 0, 0, 0);
    for meta in layouts {
        ids += every_id(meta, pack).unwrap();
        refused += everything_else(meta, pack).unwrap();
        if meta.check_generates().is_ok() {
            generating += 1;
            positions += every_position(meta);
        }
    }
    println!(
        "{} layouts: {ids} IDs packed and unpacked, {refused} values refused; \
         {generating} layouts that generate: {positions} positions",
        layouts.len()
    );
}

#[test]
fn every_id_of_every_layout_of_up_to_ten_bits() {
    check(&(1..=10).flat_map(layouts).collect::<Vec<_>>());
}

/// One in 7 of the layouts with 16 bits; with VESTA_TEST_FULL all 20,808 of them.
#[test]
fn every_id_of_layouts_of_sixteen_bits() {
    let every = if std::env::var_os("VESTA_TEST_FULL").is_some() {
        1
    } else {
        7
    };
    let chosen: Vec<IdMeta> = layouts(16).into_iter().step_by(every).collect();
    check(&chosen);
}

#[test]
fn a_layout_that_masks_or_confuses_fields_is_detected() {
    let meta = layouts(8)
        .into_iter()
        .rev()
        .find(|meta| meta.bits(Field::Seq) == 3)
        .unwrap();
    assert!(every_id(&meta, pack).is_ok() && everything_else(&meta, pack).is_ok());
    let masks: Pack = |meta, id| {
        let mut cut = *id;
        set(&mut cut, Field::Seq, id.seq & meta.max(Field::Seq));
        meta.pack(&cut).ok()
    };
    assert!(everything_else(&meta, masks).is_err());
    let one_more: Pack = |meta, id| {
        let spills = id.seq == meta.max(Field::Seq) + 1 && id.time == 0;
        let next = Id {
            time: 1,
            seq: 0,
            ..*id
        };
        meta.pack(if spills { &next } else { id }).ok()
    };
    assert!(
        everything_else(&meta, one_more).is_err(),
        "a carry into the field above"
    );
    let swaps: Pack = |meta, id| {
        meta.pack(&Id {
            seq: id.machine,
            machine: id.seq,
            ..*id
        })
        .ok()
    };
    assert!(every_id(&meta, swaps).is_err());
    let repeats: Pack = |meta, id| {
        meta.pack(&Id {
            time: id.time / 2 * 2,
            ..*id
        })
        .ok()
    };
    assert!(every_id(&meta, repeats).is_err());
}
