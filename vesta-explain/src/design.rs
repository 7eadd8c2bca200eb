//! Designs a layout from requirements.

use vesta_intf::{FieldOrder, IdError, IdMeta, LayoutSpec, TimeUnit, UnixMillis};

/// Bits of a non-negative number in a database column, which is signed.
const MOST_BITS: u32 = 63;

/// The narrowest layout that lasts this many years from its epoch, with this many machine IDs, each of
/// which makes up to this many IDs a second. Of equally narrow ones, the one with the shortest ticks.
/// The order is time, sequence, machine.
///
/// # Errors
/// [`IdError::Invalid`] if 63 bits are not enough, or a number is 0.
pub fn design(
    years: u64,
    machines: u64,
    per_second: u64,
    epoch: UnixMillis,
) -> Result<LayoutSpec, IdError> {
    for (name, value) in [
        ("years", years),
        ("machines", machines),
        ("per second", per_second),
    ] {
        IdError::check(name, value, 1, u64::MAX)?;
    }
    let bits = |values: u64| u64::BITS - (values - 1).leading_zeros();
    let millis = years.saturating_mul(31_556_952_000);
    let designed = |unit: TimeUnit| {
        let ticks = millis.div_ceil(unit.millis());
        let ids = per_second.div_ceil(1000 / unit.millis());
        let widths @ [time, seq, machine] = [bits(ticks), bits(ids), bits(machines)];
        let sum = widths.iter().sum::<u32>();
        if sum > MOST_BITS {
            let reason = format!(
                "{years} years take {time} bits of {unit}s, {per_second} IDs/s {seq} bits of sequence \
                 and {machines} machines {machine} bits: more than {MOST_BITS} together; ask for less"
            );
            return Err(IdError::invalid("layout", reason));
        }
        let [time_bits, seq_bits, machine_bits] =
            widths.map(|width| u8::try_from(width).unwrap_or(u8::MAX)); // at most 63
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
        IdMeta::new(spec).map(|_| (sum, spec))
    };
    let units = [TimeUnit::Millisecond, TimeUnit::TenMillis, TimeUnit::Second];
    let narrowest = units
        .into_iter()
        .flat_map(designed)
        .min_by_key(|(sum, _)| *sum); // the first of equals
    narrowest
        .map_or_else(|| designed(TimeUnit::Second), Ok)
        .map(|(_, spec)| spec)
}
