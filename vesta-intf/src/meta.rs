//! Layouts: the meaning of the bits of an ID.

mod bounds;
mod describe;
mod position;
mod start;

pub use start::SequenceStart;

use std::ops::RangeInclusive;

use crate::{Field, FieldOrder, Id, IdError, IdType, TimeUnit, UnixMillis};

/// Definition of a layout, unchecked. [`IdMeta::new`] checks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "the widths are in bits, named after the fields of Id"
)]
pub struct LayoutSpec {
    pub version_bits: u8,
    pub type_bits: u8,
    pub gen_method_bits: u8,
    pub time_bits: u8,
    pub seq_bits: u8,
    pub machine_bits: u8,
    /// The order of the lower three fields.
    pub order: FieldOrder,
    /// Unit of the time field.
    pub unit: TimeUnit,
    /// Moment at which the time field is 0.
    pub epoch: UnixMillis,
}

impl LayoutSpec {
    /// The widths, in the order of [`Field`].
    const fn widths(&self) -> [u8; 6] {
        [
            self.version_bits,
            self.type_bits,
            self.gen_method_bits,
            self.time_bits,
            self.seq_bits,
            self.machine_bits,
        ]
    }
}

/// A checked layout: how IDs are packed and unpacked, and how their time is counted.
///
/// A **tick** is the time since the epoch in the layout's unit. A **position** is `tick << seq_bits | seq`:
/// the progress of a generator on one machine ID. An ID and its (position, machine) determine each other.
///
/// Everything is range-checked, nothing is masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdMeta {
    name: &'static str,
    id_type: u64,
    spec: LayoutSpec,
    /// Width and value of the fixed upper bits of the machine field.
    region: (u8, u64),
}

const fn max_of(bits: u8) -> u64 {
    if bits == 0 {
        0
    } else {
        u64::MAX >> (64 - bits)
    }
}

impl IdMeta {
    /// A custom layout to make IDs with, named `custom`.
    ///
    /// # Errors
    /// [`IdError::Invalid`] with the rule that is violated: those of [`foreign`](Self::foreign) and
    /// those of [`check_generates`](Self::check_generates).
    pub fn new(spec: LayoutSpec) -> Result<Self, IdError> {
        let meta = Self::foreign(spec)?;
        meta.check_generates()?;
        Ok(meta)
    }

    /// A layout of foreign IDs, for explaining and assembling them, named `custom`.
    ///
    /// # Errors
    /// [`IdError::Invalid`] with the rule that is violated: at most 64 bits in total, at least one bit of
    /// time, at most one version bit, and a time field whose end can be expressed in milliseconds since 1970.
    pub fn foreign(spec: LayoutSpec) -> Result<Self, IdError> {
        match Self::validation_error(&spec) {
            Some(reason) => Err(IdError::invalid("layout", reason)),
            None => Ok(Self::unchecked("custom", 0, spec)),
        }
    }

    /// Checks that a service can make IDs in this layout. Every layout from [`new`](Self::new) and all of
    /// [`PRESETS`](Self::PRESETS) pass, whether or not their time has run out.
    ///
    /// # Errors
    /// [`IdError::Invalid`] with the reason: the time must be above the machine, or a new ID would not
    /// sort after older ones; and time and sequence together must have at most 62 bits, as positions have.
    pub fn check_generates(&self) -> Result<(), IdError> {
        match Self::blocker(&self.spec) {
            Some(reason) => Err(IdError::invalid(
                "layout",
                format!("{} {reason}", self.name),
            )),
            None => Ok(()),
        }
    }

    /// A constant layout with a name, for explaining the IDs of another system; checked when it is compiled.
    ///
    /// # Panics
    /// If [`foreign`](Self::foreign) refuses the layout.
    pub const fn named(name: &'static str, spec: LayoutSpec) -> Self {
        assert!(Self::validation_error(&spec).is_none());
        Self::unchecked(name, 0, spec)
    }

    pub(crate) const fn unchecked(name: &'static str, id_type: u64, spec: LayoutSpec) -> Self {
        Self {
            name,
            id_type,
            spec,
            region: (0, 0),
        }
    }

    /// Validation error of a layout definition.
    pub(crate) const fn validation_error(s: &LayoutSpec) -> Option<&'static str> {
        let widths = s.widths();
        let (mut i, mut sum) = (0, 0u32);
        while i < widths.len() {
            sum += widths[i] as u32; // lossless; From is not const
            i += 1;
        }
        if sum > 64 {
            return Some("the fields add up to more than 64 bits");
        }
        if s.version_bits > 1 {
            return Some("the version (sign) field has at most 1 bit");
        }
        if s.time_bits == 0 {
            return Some("the time field needs at least 1 bit");
        }
        // The end of the time field must be a representable moment, with headroom for arithmetic.
        let span = match s.time_bits {
            62.. => None,
            bits => s.unit.millis_in(1u64 << bits),
        };
        match span {
            Some(span) if span < 1 << 62 && s.epoch.0 < 1 << 62 => None,
            _ => Some("the time field reaches beyond the year 146,140,000; make it narrower"),
        }
    }

    /// The reason why no generator can use a layout.
    pub(crate) const fn blocker(s: &LayoutSpec) -> Option<&'static str> {
        if !s.order.sorts_by_time() {
            return Some(
                "sorts by machine before time, so it only explains IDs; to make IDs choose a layout \
                 with the time above the machine",
            );
        }
        if s.time_bits as u32 + s.seq_bits as u32 > 62 {
            return Some(
                "only explains IDs: to make them, time and sequence together have at most 62 bits",
            );
        }
        if s.unit.micros() < 1000 {
            return Some("only explains IDs: its ticks are shorter than a millisecond");
        }
        None
    }

    /// The name of the preset, or `custom`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The numbers that define this layout.
    pub const fn spec(&self) -> &LayoutSpec {
        &self.spec
    }

    /// Value of the type field in IDs of this layout.
    pub const fn id_type(&self) -> u64 {
        self.id_type
    }

    /// True for Vesta's two layouts, which the type bit of an ID distinguishes.
    pub fn is_vesta(&self) -> bool {
        self.same_bits(&Self::MAX_PEAK) || self.same_bits(&Self::MIN_GRANULARITY)
    }

    /// True if both produce the same IDs, regardless of their names.
    fn same_bits(&self, other: &Self) -> bool {
        self.spec == other.spec && self.id_type == other.id_type
    }

    /// The layout of this Vesta type.
    pub const fn of_type(id_type: IdType) -> Self {
        match id_type {
            IdType::MaxPeak => Self::MAX_PEAK,
            IdType::MinGranularity => Self::MIN_GRANULARITY,
        }
    }

    /// The layout with this value in the type field, for a service that uses this layout: among
    /// Vesta's two the one with that type, otherwise this layout itself.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if the type does not exist.
    pub fn of_type_value(&self, id_type: u64) -> Result<Self, IdError> {
        IdError::check("type", id_type, 0, self.max(Field::Type))?;
        Ok(match (self.is_vesta(), id_type) {
            (true, 0) => Self::MAX_PEAK,
            (true, _) => Self::MIN_GRANULARITY,
            (false, _) => *self,
        })
    }

    /// The layout that explains this ID: among Vesta's two the one that its type bit selects,
    /// otherwise this layout itself.
    pub fn explaining(&self, raw: u64) -> Self {
        match (self.is_vesta(), raw >> 62 & 1) {
            (false, _) => *self,
            (true, 0) => Self::MAX_PEAK,
            (true, _) => Self::MIN_GRANULARITY,
        }
    }

    /// This layout restricted to one region: the upper `bits` of the machine field are `region`, so that two
    /// regions never produce the same ID, whatever else they share. `bits` must be the same in all regions, and
    /// at most the width of the machine field; `region` is 0 to `2^bits - 1`. With 0 bits there are no regions.
    ///
    /// ```
    /// use vesta_intf::IdMeta;
    ///
    /// let south = IdMeta::MAX_PEAK.in_region(3, 2)?; // the third of 8
    /// assert_eq!(south.machines(), 256..=383);
    /// # Ok::<(), vesta_intf::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if the machine field has fewer bits, or the region needs more.
    pub fn in_region(self, bits: u8, region: u64) -> Result<Self, IdError> {
        IdError::check(
            "region bits",
            bits.into(),
            0,
            self.bits(Field::Machine).into(),
        )?;
        IdError::check("region", region, 0, max_of(bits))?;
        Ok(Self {
            region: (bits, region),
            ..self
        })
    }

    /// The machine IDs of the layout, or of its region if it has one.
    pub const fn machines(&self) -> RangeInclusive<u64> {
        let (bits, region) = self.region;
        let below = self.bits(Field::Machine) - bits;
        let first = if region == 0 { 0 } else { region << below };
        RangeInclusive::new(first, first | max_of(below))
    }

    /// The width of a field in bits; 0 if the layout does not have it.
    pub const fn bits(&self, field: Field) -> u8 {
        match field {
            Field::Version => self.spec.version_bits,
            Field::Type => self.spec.type_bits,
            Field::GenMethod => self.spec.gen_method_bits,
            Field::Time => self.spec.time_bits,
            Field::Seq => self.spec.seq_bits,
            Field::Machine => self.spec.machine_bits,
        }
    }

    /// The maximum value of a field.
    pub const fn max(&self, field: Field) -> u64 {
        max_of(self.bits(field))
    }

    /// The fields, most significant first; a field that the layout does not have is 0 bits wide.
    pub const fn fields(&self) -> [Field; 6] {
        let [first, second, third] = self.spec.order.fields();
        [
            Field::Version,
            Field::Type,
            Field::GenMethod,
            first,
            second,
            third,
        ]
    }

    /// Position of the field's lowest bit in the ID.
    pub const fn shift(&self, field: Field) -> u8 {
        use FieldOrder::{MachineTimeSeq, TimeMachineSeq, TimeSeqMachine};
        let s = &self.spec;
        let lower = s.time_bits + s.seq_bits + s.machine_bits;
        match (field, s.order) {
            (Field::Machine, TimeSeqMachine) => 0,
            (Field::Seq, TimeMachineSeq | MachineTimeSeq) => 0,
            (Field::Seq, TimeSeqMachine) => s.machine_bits,
            (Field::Machine, TimeMachineSeq) => s.seq_bits,
            (Field::Machine, MachineTimeSeq) => s.time_bits + s.seq_bits,
            (Field::Time, TimeSeqMachine | TimeMachineSeq) => s.seq_bits + s.machine_bits,
            (Field::Time, MachineTimeSeq) => s.seq_bits,
            (Field::GenMethod, _) => lower,
            (Field::Type, _) => lower + s.gen_method_bits,
            (Field::Version, _) => lower + s.gen_method_bits + s.type_bits,
        }
    }

    /// Total width in bits; an ID is below `2^total_bits`.
    pub const fn total_bits(&self) -> u8 {
        self.shift(Field::Version) + self.spec.version_bits
    }

    const fn put(&self, field: Field, value: u64) -> u64 {
        // A field without bits may have a shift of 64; its value is 0.
        if self.bits(field) == 0 {
            0
        } else {
            value << self.shift(field)
        }
    }

    /// Packs the fields into an ID.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] for the first field that does not fit.
    pub fn pack(&self, id: &Id) -> Result<u64, IdError> {
        use Field::{GenMethod, Machine, Seq, Time, Type, Version};
        let mut raw = 0;
        for field in [Version, Type, GenMethod, Time, Seq, Machine] {
            IdError::check(field.name(), id.get(field), 0, self.max(field))?;
            raw |= self.put(field, id.get(field));
        }
        Ok(raw)
    }

    /// Splits an ID of this layout into its fields.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if the number has more bits than the layout.
    pub fn unpack(&self, raw: u64) -> Result<Id, IdError> {
        IdError::check("id", raw, 0, max_of(self.total_bits()))?;
        let get = |field| match self.bits(field) {
            0 => 0,
            bits => raw >> self.shift(field) & max_of(bits),
        };
        Ok(Id {
            version: get(Field::Version),
            id_type: get(Field::Type),
            gen_method: get(Field::GenMethod),
            time: get(Field::Time),
            seq: get(Field::Seq),
            machine: get(Field::Machine),
        })
    }

    /// The ID at a position of the machine ID of `base`, which is the ID of the same fields at time
    /// 0, sequence 0. The position must be inside the time field; the generator ensures that.
    #[inline]
    pub const fn id_at(&self, base: u64, position: u64) -> u64 {
        let s = &self.spec;
        match s.order {
            FieldOrder::TimeSeqMachine => base | position << s.machine_bits,
            FieldOrder::MachineTimeSeq => base | position,
            FieldOrder::TimeMachineSeq => {
                base | (position >> s.seq_bits) << (s.seq_bits + s.machine_bits)
                    | position & max_of(s.seq_bits)
            }
        }
    }

    /// The distance between the IDs of neighbouring positions. In the order time, machine, sequence
    /// it is valid within one tick only.
    pub const fn step(&self) -> u64 {
        match self.spec.order {
            FieldOrder::TimeSeqMachine => 1 << self.spec.machine_bits,
            FieldOrder::TimeMachineSeq | FieldOrder::MachineTimeSeq => 1,
        }
    }

    /// Number of lowest bits that are the same in all IDs of one machine ID. If `k` is at most this number, `id % 2^k`
    /// maps all of them to one shard; a hash or an odd modulus does not. 0 if the sequence number is the lowest field.
    pub const fn same_low_bits(&self) -> u8 {
        if self.shift(Field::Machine) == 0 {
            self.bits(Field::Machine)
        } else {
            0
        }
    }

    /// Maximum number of IDs per second and machine ID.
    pub const fn capacity_per_second(&self) -> u64 {
        (1u64 << self.spec.seq_bits).saturating_mul(1_000_000 / self.spec.unit.micros())
    }

    /// The tick to which a moment belongs.
    ///
    /// # Errors
    /// [`IdError::Invalid`] before the epoch, [`IdError::TimeExhausted`] from the end of the layout on.
    pub fn tick_at(&self, moment: UnixMillis) -> Result<u64, IdError> {
        let Some(since) = moment.since(self.spec.epoch) else {
            return Err(IdError::invalid(
                "clock",
                format!(
                    "{moment} is before the layout's epoch {}; set the clock",
                    self.spec.epoch
                ),
            ));
        };
        let tick = self.spec.unit.ticks_in(since);
        if tick > self.max(Field::Time) {
            return Err(IdError::TimeExhausted);
        }
        Ok(tick)
    }

    /// The moment at which a tick begins.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if the tick does not fit the time field.
    pub fn moment_of(&self, tick: u64) -> Result<UnixMillis, IdError> {
        IdError::check("time", tick, 0, self.max(Field::Time))?;
        Ok(self.after(tick))
    }

    /// The moment at which the layout runs out of IDs.
    pub const fn end(&self) -> UnixMillis {
        // Rounded up: a millisecond that has begun is part of the layout.
        let ticks = self.max(Field::Time) + 1;
        self.after(ticks.next_multiple_of(self.spec.unit.per_milli()))
    }

    /// The moment after this many ticks, which may slightly exceed the time field.
    const fn after(&self, ticks: u64) -> UnixMillis {
        match self.spec.unit.millis_in(ticks) {
            Some(millis) => UnixMillis(self.spec.epoch.0 + millis),
            None => panic!("a layout is checked to end at a moment that can be expressed"),
        }
    }
}
