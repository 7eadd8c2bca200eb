//! Proves that two sets of IDs are disjoint, or finds a number in both.

use std::ops::RangeInclusive;

use vesta_intf::{Field, Id, IdError, IdMeta, UnixMillis};

/// A set of numbers: the IDs of a layout whose fields are in given ranges, or a range of plain numbers.
///
/// ```
/// use vesta_explain::{IdSet, overlap};
/// use vesta_intf::{Field, IdMeta};
///
/// let old = IdSet::of(&IdMeta::SNOWFLAKE).with(Field::Machine, 0..=39)?;
/// let new = IdSet::of(&IdMeta::SNOWFLAKE).with(Field::Machine, 40..=1023)?;
/// assert_eq!(overlap(&old, &new), None); // proved: they never meet
/// # Ok::<(), vesta_intf::IdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdSet {
    /// `None` for plain numbers.
    layout: Option<IdMeta>,
    /// Width, smallest and largest value of each field, from the highest bit down; 64 bits in total.
    fields: [(Option<Field>, u8, u64, u64); 7],
    /// False while the version is 0 by default.
    has_version: bool,
}

impl IdSet {
    /// Every ID of a layout, or of its [region](IdMeta::in_region), with version 0 and the layout's own type.
    pub fn of(layout: &IdMeta) -> Self {
        let mut fields = [(None, 64 - layout.total_bits(), 0, 0); 7];
        for (slot, field) in fields[1..].iter_mut().zip(layout.fields()) {
            let (low, high) = match field {
                Field::Version => (0, 0),
                Field::Type if layout.is_vesta() => (layout.id_type(), layout.id_type()),
                Field::Machine => layout.machines().into_inner(),
                _ => (0, layout.max(field)),
            };
            *slot = (Some(field), layout.bits(field), low, high);
        }
        Self {
            layout: Some(*layout),
            fields,
            has_version: false,
        }
    }

    /// Plain numbers, such as those of a counter, a sequence or a segment.
    pub fn counter(numbers: RangeInclusive<u64>) -> Self {
        let mut fields = [(None, 0, 0, 0); 7];
        fields[0] = (None, 64, *numbers.start(), *numbers.end());
        Self {
            layout: None,
            fields,
            has_version: false,
        }
    }

    /// Restricts a field of the set to a range, in addition to the ranges given before.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if the field cannot hold the range; [`IdError::Invalid`] if no value is left,
    /// or the set consists of plain numbers.
    pub fn with(mut self, field: Field, range: RangeInclusive<u64>) -> Result<Self, IdError> {
        let Some(layout) = self.layout else {
            return Err(IdError::invalid(
                field.name(),
                "plain numbers have no fields",
            ));
        };
        for value in [*range.start(), *range.end()] {
            IdError::check(field.name(), value, 0, layout.max(field))?;
        }
        let slot = self.fields.iter_mut().find(|slot| slot.0 == Some(field));
        if let Some((_, _, low, high)) = slot {
            // A given version replaces the default of 0.
            if field == Field::Version && !std::mem::replace(&mut self.has_version, true) {
                *high = layout.max(field);
            }
            (*low, *high) = (*range.start().max(low), *range.end().min(high));
            if low > high {
                return Err(IdError::invalid(
                    field.name(),
                    "the given ranges have no value in common",
                ));
            }
        }
        Ok(self)
    }

    /// The IDs of the set whose time is between two moments, both inclusive.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for a moment outside the layout's time, or if the end is before the start.
    pub fn between(self, moments: RangeInclusive<UnixMillis>) -> Result<Self, IdError> {
        let Some(layout) = self.layout else {
            return Err(IdError::invalid("time", "plain numbers have no time"));
        };
        let last = layout.tick_within(*moments.end())?;
        let last = last.saturating_add(layout.spec().unit.per_milli() - 1);
        let ticks = layout.tick_within(*moments.start())?..=last.min(layout.max(Field::Time));
        self.with(Field::Time, ticks)
    }

    /// The IDs of the set that belong to a region: the upper `bits` of the machine field are `region`.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if the machine field has fewer bits, or the region needs more.
    pub fn region(self, bits: u8, region: u64) -> Result<Self, IdError> {
        let Some(layout) = self.layout else {
            return Err(IdError::invalid("region", "plain numbers have no machine"));
        };
        self.with(Field::Machine, layout.in_region(bits, region)?.machines())
    }

    /// The fields of a number in the set; `None` if it is not in the set, or the set consists of plain numbers.
    pub fn reading(&self, raw: u64) -> Option<Id> {
        self.contains(raw)
            .then(|| self.layout?.unpack(raw).ok())
            .flatten()
    }

    /// True if a number is in the set.
    pub fn contains(&self, raw: u64) -> bool {
        let mut below = 64;
        self.fields
            .iter()
            .filter(|field| field.1 > 0)
            .all(|(_, width, low, high)| {
                below -= u32::from(*width);
                let value = raw >> below & (u64::MAX >> (64 - width));
                (*low..=*high).contains(&value)
            })
    }

    /// For each bit from the highest down: whether a field begins with it, and that bit of the field's
    /// smallest and largest value.
    fn bits(&self) -> [(bool, u64, u64); 64] {
        let mut bits = [(false, 0, 0); 64];
        let mut at = 0;
        for (_, width, low, high) in self.fields {
            for below in (0..width).rev() {
                bits[at] = (below + 1 == width, low >> below & 1, high >> below & 1);
                at += 1;
            }
        }
        bits
    }
}

/// The smallest number in both sets; `None` proves that they are disjoint.
///
/// A number is walked from its highest bit. The upper bits affect the lower ones only in two ways for each
/// set: whether the current field still equals the field's smallest value, and whether it still equals the
/// largest. If neither, the rest of the field is free. So there are 64 places with 16 states each. From the
/// lowest bit up, the search computes for each of them whether any continuation is in both sets. Nothing is
/// left out, so no continuation from the start means no common number.
pub fn overlap(a: &IdSet, b: &IdSet) -> Option<u64> {
    let (a, b) = (a.bits(), b.bits());
    // possible[i][s]: bits i.. can be completed from state s.
    let mut possible = [[false; 16]; 65];
    possible[64] = [true; 16];
    for at in (0..64).rev() {
        for state in 0..16 {
            possible[at][state] = [0, 1]
                .into_iter()
                .filter_map(|bit| step(a[at], b[at], state, bit))
                .any(|next| possible[at + 1][next]);
        }
    }
    let mut state = 0b1111;
    let mut number = 0;
    for at in 0..64 {
        let steps = [0, 1]
            .into_iter()
            .filter_map(|bit| Some((bit, step(a[at], b[at], state, bit)?)));
        let (bit, next) = steps
            .into_iter()
            .find(|(_, next)| possible[at + 1][*next])?;
        number = number << 1 | bit;
        state = next;
    }
    Some(number)
}

/// The state after a bit; `None` if it leaves one of the sets. Two bits for each set: still equal to the
/// field's smallest value, still equal to its largest.
fn step(a: (bool, u64, u64), b: (bool, u64, u64), state: usize, bit: u64) -> Option<usize> {
    let one = |(begins, low, high): (bool, u64, u64), tight: usize| {
        let tight = if begins { 0b11 } else { tight };
        let (tight_low, tight_high) = (tight & 1 > 0, tight & 2 > 0);
        let leaves = tight_low && bit < low || tight_high && bit > high;
        let next =
            usize::from(tight_low && bit == low) | usize::from(tight_high && bit == high) << 1;
        (!leaves).then_some(next)
    };
    Some(one(a, state & 0b11)? | one(b, state >> 2)? << 2)
}
