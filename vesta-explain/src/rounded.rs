//! Rounded IDs: from programs that keep numbers as doubles, or keep 15 digits of them.

/// The origin of a rounded ID, and the IDs it may have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounded {
    /// `JavaScript` or `Excel`.
    pub by: &'static str,
    /// The smallest number that is rounded to this one.
    pub from: u64,
    /// The largest number that is rounded to this one.
    pub until: u64,
}

/// JavaScript's text of an ID: of the decimal numbers that are nearest to the same double, the one with the
/// fewest digits.
///
/// ```
/// assert_eq!(vesta_explain::in_javascript(1_785_223_470_585_921_538), "1785223470585921500");
/// ```
pub fn in_javascript(id: u64) -> String {
    double(id).to_string()
}

#[allow(clippy::cast_precision_loss, reason = "rounds as JavaScript does")]
const fn double(id: u64) -> f64 {
    id as f64
}

/// The integer halfway between a double, given by its bits, and the next one.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is below 2^65"
)]
const fn halfway(bits: u64) -> u128 {
    (f64::from_bits(bits) as u128 + f64::from_bits(bits + 1) as u128) / 2
}

/// Detects whether an ID has the shape of a rounded one, and returns the range of IDs that are rounded to it.
///
/// JavaScript: a number from 2^56 on that JavaScript prints unchanged. One in 16 of the numbers there is such a
/// number, from 2^60 on one in 256; every rounded one is. Below 2^56 it would be one in ten, so nothing is reported.
///
/// Excel: 15 digits and at least two zeros, one number in a hundred or fewer. The digits after the fifteenth
/// become zeros. Since JavaScript also prints some numbers that way, the numbers that it rounds to this one
/// are within the bounds.
pub fn rounded(id: u64) -> Option<Rounded> {
    let zeros = id.checked_ilog10()?.saturating_sub(14);
    let step = 10u64.pow(zeros);
    let is_excels = zeros >= 2 && id.is_multiple_of(step);
    if !is_excels && (id < 1 << 56 || in_javascript(id) != id.to_string()) {
        return None;
    }
    let (from, mut until) = sharing_a_double(id);
    if is_excels {
        until = until.max(id.saturating_add(step - 1));
    }
    let by = if is_excels { "Excel" } else { "JavaScript" };
    Some(Rounded { by, from, until })
}

/// True if a double holds exactly this number: below 53 bits all lower ones are 0.
pub(crate) const fn is_double(id: u64) -> bool {
    id.trailing_zeros() + 53 >= u64::BITS - id.leading_zeros()
}

/// The smallest and the largest number that a double keeps as it keeps this one.
pub(crate) fn sharing_a_double(id: u64) -> (u64, u64) {
    if id < 1 << 53 {
        return (id, id);
    }
    let bits = double(id).to_bits();
    // A halfway case is rounded to the double whose lowest bit is 0.
    let odd = u128::from(bits & 1);
    let (from, until) = (halfway(bits - 1) + odd, halfway(bits) - odd);
    // Above u64::MAX there are no IDs.
    let within = |id: u128| u64::try_from(id).unwrap_or(u64::MAX);
    (within(from), within(until))
}
