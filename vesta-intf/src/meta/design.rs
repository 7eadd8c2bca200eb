//! Designing a layout.

use super::{FieldOrder, IdMeta, LayoutSpec};
use crate::{IdError, TimeUnit, UnixMillis};

/// Bits of a positive number in columns, which are signed.
const MOST_BITS: u32 = 63;

impl IdMeta {
    /// The narrowest layout that lasts so many years from its epoch on, with so many machine IDs, each of
    /// which makes so many IDs a second: milliseconds where there is room for them in 63 bits, else
    /// seconds. Order time, sequence, machine.
    ///
    /// # Errors
    /// [`IdError::Invalid`] if 63 bits are not enough, or a number is 0.
    pub fn design(
        years: u64,
        machines: u64,
        per_second: u64,
        epoch: UnixMillis,
    ) -> Result<LayoutSpec, IdError> {
        for (name, value) in [("years", years), ("machines", machines), ("per second", per_second)]
        {
            IdError::check(name, value, 1, u64::MAX)?;
        }
        let bits = |values: u64| u64::BITS - (values - 1).leading_zeros();
        let millis = years.saturating_mul(31_556_952_000);
        let with = |unit: TimeUnit| {
            let (ticks, ids) =
                (millis.div_ceil(unit.millis()), per_second.div_ceil(1000 / unit.millis()));
            [bits(ticks), bits(ids), bits(machines)]
        };
        let fits = |widths: &[u32; 3]| {
            widths.iter().sum::<u32>() <= MOST_BITS && widths[0] + widths[1] < MOST_BITS
        };
        let units = [TimeUnit::Millisecond, TimeUnit::Second];
        let found =
            units.into_iter().map(|unit| (unit, with(unit))).find(|(_, widths)| fits(widths));
        let Some((unit, widths)) = found else {
            let [time, seq, machine] = with(TimeUnit::Second);
            let reason = format!(
                "{years} years take {time} bits of seconds, {per_second} IDs/s {seq} bits of sequence and \
                 {machines} machines {machine} bits: more than {MOST_BITS} together; ask for less"
            );
            return Err(IdError::invalid("layout", reason));
        };
        let [time_bits, seq_bits, machine_bits] =
            widths.map(|width| u8::try_from(width).unwrap_or(u8::MAX)); // at most 64
        let (version_bits, type_bits, gen_method_bits) = (0, 0, 0);
        let order = FieldOrder::TimeSeqMachine;
        let spec = LayoutSpec {
            version_bits,
            type_bits,
            gen_method_bits,
            time_bits,
            seq_bits,
            machine_bits,
            order,
            unit,
            epoch,
        };
        Self::new(spec).map(|_| spec)
    }
}
