//! UUIDs (RFC 9562) as two halves of 64 bits: their text, and those of version 8, which contain an ID.
//!
//! An ID of 16 hexadecimal digits `i`, and the Unix time in milliseconds of 12 digits `t`, become
//!
//! ```text
//! version 8   iiiiiiii-iiii-8iii-8i00-007665737461
//! version 7   tttttttt-tttt-7iii-8iii-iiiiiiiiii76
//! ```
//!
//! All other digits are fixed, so a UUID from elsewhere is refused: in version 8 by 58 bits, in version 7 by 10 bits
//! and by its time, which must be that of the ID. The fixed digits are the same in all UUIDs of a version. So the
//! texts of version 8 compare as the IDs do, and those of version 7 as time and ID, which is the same order in a layout
//! whose highest field is the time.

use crate::IdError;

/// The fixed digits of version 8; the last five bytes spell `vesta`.
const V8_HIGH: u64 = 0x8 << 12;
const V8_LOW: u64 = 0x8 << 60 | 0x76_6573_7461;

/// Length of the text.
pub(crate) const LENGTH: usize = 36;

/// The upper and the lower half.
pub(crate) type Halves = (u64, u64);

/// The UUID of version 8 of an ID.
pub(crate) const fn of_id(id: u64) -> Halves {
    let high = id >> 16 << 16 | V8_HIGH | id >> 4 & 0xfff;
    (high, V8_LOW | (id & 0xf) << 56)
}

/// The ID of a UUID of version 8, if it is that of an ID.
pub fn id_of((high, low): Halves) -> Option<u64> {
    let id = high >> 16 << 16 | (high & 0xfff) << 4 | low >> 56 & 0xf;
    (of_id(id) == (high, low)).then_some(id)
}

/// The text, in lower case.
pub(crate) fn format((high, low): Halves) -> [u8; LENGTH] {
    let mut bytes = [b'-'; LENGTH];
    let places = (0..LENGTH).filter(|place| !matches!(place, 8 | 13 | 18 | 23));
    let digits = [high, low]
        .into_iter()
        .flat_map(|half| (0..16).rev().map(move |at| half >> (4 * at) & 0xf));
    for (place, digit) in places.zip(digits) {
        #[allow(clippy::cast_possible_truncation, reason = "it is below 16")]
        let digit = digit as usize;
        bytes[place] = b"0123456789abcdef"[digit];
    }
    bytes
}

/// The UUID of a text in five groups.
pub(crate) fn parse(text: &str) -> Result<Halves, IdError> {
    let halves = parse_any(text).filter(|_| text.len() == LENGTH);
    halves.unwrap_or_else(|| {
        let reason =
            "a UUID takes 36 characters: five groups of 8, 4, 4, 4 and 12 hexadecimal digits";
        Err(IdError::invalid("id", reason))
    })
}

/// The UUID of a text in five groups, or without hyphens; `None` for a text of another shape.
pub fn parse_any(text: &str) -> Option<Result<Halves, IdError>> {
    let groups: Vec<_> = text.split('-').map(str::len).collect();
    if !matches!(groups[..], [32] | [8, 4, 4, 4, 12]) {
        return None;
    }
    let mut both = 0;
    for (i, character) in text.chars().enumerate().filter(|it| it.1 != '-') {
        let Some(digit) = character.to_digit(16) else {
            let reason = format!(
                "character {} is {character:?}, which is not a digit of hex (0-9, a-f)",
                i + 1
            );
            return Some(Err(IdError::invalid("id", reason)));
        };
        both = both << 4 | u128::from(digit);
    }
    #[allow(clippy::cast_possible_truncation, reason = "each is a half")]
    let halves = ((both >> 64) as u64, both as u64);
    Some(Ok(halves))
}
