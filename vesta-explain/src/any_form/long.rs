//! IDs of more than 64 bits.

use super::{Form, Written, one, unknown};
use vesta_intf::inside::{BASE62, id_of, parse_any};
use vesta_intf::{IdError, IdFormat, UnixMillis, UuidV7};

use crate::layouts;

/// Milliseconds between 1582-10-15, the epoch of version 1 UUIDs, and 1970.
const GREGORIAN: u64 = 12_219_292_800_000;

/// Seconds between 1970 and 2014-05-13, the epoch of KSUIDs.
const KSUID_EPOCH: u64 = 1_400_000_000;

/// True if a text of this length is a long ID rather than a decimal number.
pub(super) const fn has_length(length: usize) -> bool {
    matches!(length, 24 | 26 | 27 | 32)
}

/// Reads a long ID and the moment it encodes.
pub(super) fn read(text: &str) -> Result<Written, IdError> {
    let leading = |digits, radix| {
        let digits = text.get(..digits).ok_or_else(unknown)?;
        u64::from_str_radix(digits, radix).map_err(|_| unknown())
    };
    let (kind, bits, seconds) = match text.len() {
        20 if is_xid(text) => ("XID", 96, leading(7, 32)? >> 3),
        24 if text.bytes().all(|it| it.is_ascii_hexdigit()) => ("ObjectId", 96, leading(8, 16)?),
        27 => (
            "KSUID",
            160,
            ksuid_seconds(text).ok_or_else(unknown)? + KSUID_EPOCH,
        ),
        26 => return ulid(text),
        _ => return uuid(text),
    };
    Ok(Written::Long {
        kind: kind.to_owned(),
        bits,
        moment: Some(UnixMillis(seconds * 1000)),
    })
}

/// 96 bits in 20 characters of 5 bits; of the last one only the highest bit counts.
fn is_xid(text: &str) -> bool {
    text.bytes()
        .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'v'))
        && text.ends_with(['0', 'g'])
}

/// The upper 32 of the 160 bits; `None` if a character is not a digit, or the value exceeds 160
/// bits.
fn ksuid_seconds(text: &str) -> Option<u64> {
    let mut words = [0u64; 5]; // of 32 bits, the highest first
    for digit in text.chars() {
        let mut carry = u64::from(BASE62.value(digit)?);
        for word in words.iter_mut().rev() {
            let sum = *word * 62 + carry;
            (*word, carry) = (sum & 0xffff_ffff, sum >> 32);
        }
        if carry > 0 {
            return None;
        }
    }
    Some(words[0])
}

/// Ten characters of milliseconds, sixteen random ones.
fn ulid(text: &str) -> Result<Written, IdError> {
    let whole = |part: &str| IdFormat::Crockford.parse(&format!("{part:0>13}"));
    let parts = (text.get(..10), text.get(10..18), text.get(18..));
    let (Some(time), Some(one), Some(other)) = parts else {
        return Err(unknown());
    };
    let (moment, _, _) = (whole(time)?, whole(one)?, whole(other)?);
    // The first digit holds three bits only.
    if moment >> 48 != 0 {
        return Err(IdError::invalid("id", "as a ULID it is above 128 bits"));
    }
    Ok(Written::Long {
        kind: "ULID".to_owned(),
        bits: 128,
        moment: Some(UnixMillis(moment)),
    })
}

/// 32 digits, bare or in the five groups; the latter optionally in braces or after `urn:uuid:`. It may contain an ID.
fn uuid(text: &str) -> Result<Written, IdError> {
    let urn = text
        .split_at_checked(9)
        .filter(|it| it.0.eq_ignore_ascii_case("urn:uuid:"));
    let braced = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    let text = urn.map(|it| it.1).or(braced).unwrap_or(text);
    let halves = parse_any(text).ok_or_else(unknown)??;
    let of_layout = |layout| Some((UuidV7::new(&layout).ok()?.id_of(halves)?, layout));
    if let Some(id) = id_of(halves) {
        return Ok(one(id, Form::Format(IdFormat::Uuid)));
    }
    if let Some((id, layout)) = layouts::all().find_map(of_layout) {
        return Ok(one(id, Form::UuidV7(layout)));
    }
    let (high, _) = halves;
    let version = high >> 12 & 0xf;
    // In steps of 100 ns, in three pieces whose order depends on the version.
    let (first, middle, last) = (high >> 32, high >> 16 & 0xffff, high & 0xfff);
    let gregorian = |steps: u64| (steps / 10_000).checked_sub(GREGORIAN);
    let millis = match version {
        1 => gregorian(last << 48 | middle << 32 | first),
        6 => gregorian(high >> 16 << 12 | last),
        7 => Some(high >> 16),
        _ => None,
    };
    let kind = format!("UUID of version {version}");
    Ok(Written::Long {
        kind,
        bits: 128,
        moment: millis.map(UnixMillis),
    })
}
