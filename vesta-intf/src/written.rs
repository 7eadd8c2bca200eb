//! IDs in whatever form a person pastes them.

use crate::{IdError, IdFormat, UnixMillis};

/// A text that was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// An ID of 64 bits.
    Id {
        /// The ID.
        id: u64,
        /// The form that it was written in.
        form: Form,
    },
    /// A UUID, which has 128 bits.
    Uuid {
        /// Its version, 0 to 15.
        version: u8,
        /// The moment at which it was made, if its version says so: 1, 6 and 7.
        moment: Option<UnixMillis>,
    },
    /// A ULID, which has 128 bits.
    Ulid {
        /// The moment at which it was made.
        moment: UnixMillis,
    },
}

/// The form of an ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One of the text formats.
    Format(IdFormat),
    /// A negative number: the same bits as a signed number.
    Signed,
}

/// Milliseconds between 1582-10-15, where the time of UUIDs of version 1 begins, and 1970.
const GREGORIAN: u64 = 12_219_292_800_000;

/// Reads an ID in any form: decimal, signed decimal, hexadecimal (`0x` and up to 16 digits, or all 16),
/// base62 (11 characters), Crockford's base32 (13 characters, 14 with its check symbol); and recognises UUIDs
/// and ULIDs. Blanks and quotes around it do not matter. Digits alone are decimal, without a check digit. What begins with `0x` may also be base62 or
/// Crockford's base32; if it is a number both ways, it is refused.
///
/// ```
/// use vesta_intf::{Form, IdFormat, Written, read};
///
/// let form = Form::Format(IdFormat::Base62);
/// assert_eq!(read("2rrvDihMXHR")?, Written::Id { id: 2_407_837_855_670_862_845, form });
/// # Ok::<(), vesta_intf::IdError>(())
/// ```
///
/// # Errors
/// [`IdError::Invalid`] for `id`, with the forms there are, or what is wrong with the one it seems to be.
pub fn read(text: &str) -> Result<Written, IdError> {
    let text = text.trim().trim_matches(['"', '\'', '`']).trim();
    let id = |format: IdFormat, text: &str| {
        Ok(Written::Id { id: format.parse(text)?, form: Form::Format(format) })
    };
    if let Some(digits) = text.strip_prefix('-') {
        let id = text.parse::<i64>().map(i64::cast_unsigned);
        let id = id.ok().filter(|_| digits.bytes().all(|digit| digit.is_ascii_digit()));
        let reason = "a negative one must be -9223372036854775808 or above";
        let id = id.ok_or_else(|| IdError::invalid("id", reason))?;
        return Ok(Written::Id { id, form: Form::Signed });
    }
    // No decimal ID is as long as a ULID or a UUID.
    let is_short = !matches!(text.len(), 0 | 26 | 32);
    if is_short && text.bytes().all(|digit| digit.is_ascii_digit()) {
        return id(IdFormat::Decimal, text);
    }
    let plain = match text.len() {
        11 => id(IdFormat::Base62, text),
        13 => id(IdFormat::Crockford, text),
        14 => id(IdFormat::CrockfordCheck, text),
        16 => id(IdFormat::Hex, text),
        26 => ulid(text),
        _ => uuid(text),
    };
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let Some(digits) = digits.filter(|digits| !digits.is_empty()) else { return plain };
    match (id(IdFormat::Hex, &format!("{digits:0>16}")), plain) {
        (Ok(Written::Id { id: hex, .. }), Ok(Written::Id { id, form: Form::Format(form) })) => {
            let reason = format!("it may be hexadecimal, {hex}, or {form}, {id}: give that number");
            Err(IdError::invalid("id", reason))
        }
        (Err(_), Ok(plain)) => Ok(plain),
        (hex, _) => hex,
    }
}

fn unknown() -> IdError {
    let reason = "it must be decimal, hexadecimal (0x… or 16 digits), base62 (11 characters) or \
                  Crockford's base32 (13; 14 with its check symbol)";
    IdError::invalid("id", reason)
}

/// Ten characters of milliseconds, sixteen at random.
fn ulid(text: &str) -> Result<Written, IdError> {
    let whole = |part: &str| IdFormat::Crockford.parse(&format!("{part:0>13}"));
    let parts = (text.get(..10), text.get(10..18), text.get(18..));
    let (Some(time), Some(one), Some(other)) = parts else { return Err(unknown()) };
    let (moment, _, _) = (whole(time)?, whole(one)?, whole(other)?);
    // The first digit has three bits only.
    if moment >> 48 != 0 {
        return Err(IdError::invalid("id", "as a ULID it is above 128 bits"));
    }
    Ok(Written::Ulid { moment: UnixMillis(moment) })
}

/// 32 digits, bare or in the five groups; around those braces, or `urn:uuid:` before them.
fn uuid(text: &str) -> Result<Written, IdError> {
    let urn = text.split_at_checked(9).filter(|it| it.0.eq_ignore_ascii_case("urn:uuid:"));
    let braced = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let text = urn.map(|it| it.1).or(braced).unwrap_or(text);
    let groups: Vec<_> = text.split('-').map(str::len).collect();
    let digits = text.replace('-', "");
    let halves = digits.split_at_checked(16);
    let halves = halves.filter(|_| matches!(groups[..], [32] | [8, 4, 4, 4, 12]));
    let (high, low) = halves.ok_or_else(unknown)?;
    let (high, _) = (IdFormat::Hex.parse(high)?, IdFormat::Hex.parse(low)?);
    let version = high >> 12 & 0xf;
    // In steps of 100 ns, in three pieces whose order the version decides.
    let (first, middle, last) = (high >> 32, high >> 16 & 0xffff, high & 0xfff);
    let gregorian = |steps: u64| (steps / 10_000).checked_sub(GREGORIAN);
    let millis = match version {
        1 => gregorian(last << 48 | middle << 32 | first),
        6 => gregorian(high >> 16 << 12 | last),
        7 => Some(high >> 16),
        _ => None,
    };
    let version = u8::try_from(version).unwrap_or_default(); // four bits
    Ok(Written::Uuid { version, moment: millis.map(UnixMillis) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: u64 = 2_407_837_855_670_862_845;

    #[test]
    fn every_form_of_an_id_is_read() {
        for text in [
            "2407837855670862845",
            " \"2407837855670862845\" ",
            "0x216A5BC5C00003FD",
            "'2rrvDihMXHR'",
        ] {
            assert!(matches!(read(text), Ok(Written::Id { id: ID, .. })), "{text}");
        }
        for format in IdFormat::ALL {
            let text = format.encode(ID);
            // Others look like these: base36 like Crockford's base32, a check digit like one more digit.
            let looks_like_another = matches!(
                format,
                IdFormat::Base36
                    | IdFormat::DecimalDamm
                    | IdFormat::DecimalMod97
                    | IdFormat::DecimalLuhn
            );
            let right = matches!(read(&text), Ok(Written::Id { id: ID, .. }));
            assert_eq!(right, !looks_like_another, "{text}");
        }
        assert!(matches!(read("0x7"), Ok(Written::Id { id: 7, .. })));
        assert!(matches!(read("22tjvrqoooozx"), Ok(Written::Id { id: ID, .. })), "o for 0");
        let signed = Written::Id { id: u64::MAX, form: Form::Signed };
        assert_eq!(read("-1").ok(), Some(signed));
        assert!(matches!(
            read("-9223372036854775808"),
            Ok(Written::Id { id: 0x8000_0000_0000_0000, .. })
        ));
        let decimal = read("1234567890123456");
        assert!(matches!(decimal, Ok(Written::Id { id: 1_234_567_890_123_456, .. })), "not hex");
    }

    #[test]
    fn what_begins_as_hexadecimal_may_be_base62_or_crockford() {
        for format in [IdFormat::Base62, IdFormat::Crockford] {
            let form = Form::Format(format);
            let last = "zzzzzzzzzzz".get(..format.lengths().0 - 2).expect("as many");
            for text in [format!("0x{last}"), format!("0X{last}")] {
                let id = format.parse(&text).expect("an ID");
                assert_eq!(read(&text).ok(), Some(Written::Id { id, form }), "{text}");
            }
        }
        for (text, both) in [
            ("0x123456789", "hexadecimal, 4886718345, or base62, 798913663704924021: give"),
            ("0x123456789ab", "or crockford, 1046034823752459595: give"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(both), "{text}: {error}");
        }
        // A zero more, and it is hexadecimal alone.
        assert!(matches!(read("0x0123456789"), Ok(Written::Id { id: 4_886_718_345, .. })));
    }

    /// The examples of RFC 9562, Appendix A, and of the ULID specification.
    #[test]
    fn what_has_128_bits_is_named() {
        let moment = Some(UnixMillis(1_645_557_742_000));
        for (text, version) in [
            ("C232AB00-9414-11EC-B3C8-9F6BDECED846", 1),
            ("1EC9414C-232A-6B00-B3C8-9F6BDECED846", 6),
            ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", 7),
            ("017F22E279B07CC398C4DC0C0C07398F", 7),
            ("{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}", 7),
            ("urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f", 7),
            ("URN:UUID:017F22E2-79B0-7CC3-98C4-DC0C0C07398F", 7),
        ] {
            assert_eq!(read(text).ok(), Some(Written::Uuid { version, moment }), "{text}");
        }
        let random = read("919108f7-52d1-4320-9bac-f847db4148a8");
        assert_eq!(random.ok(), Some(Written::Uuid { version: 4, moment: None }));
        let digits = read("12345678901242348901234567890123"); // all decimal, but too many
        assert_eq!(digits.ok(), Some(Written::Uuid { version: 4, moment: None }));
        let moment = UnixMillis(1_469_918_176_385);
        assert_eq!(read("01ARYZ6S41TSV4RRFFQ69G5FAV").ok(), Some(Written::Ulid { moment }));
    }

    #[test]
    fn what_is_nothing_is_refused_with_what_would_be() {
        for (text, said) in [
            ("", "it must be decimal"),
            ("hello", "base62 (11 characters)"),
            ("18446744073709551616", "above 18446744073709551615"),
            ("-9223372036854775809", "-9223372036854775808 or above"),
            ("--1", "-9223372036854775808 or above"),
            ("0xabcdefabcdefabcdef", "exactly 16 characters"),
            ("22TJVRQ0000ZX2", "check symbol is wrong"),
            ("zzzzzzzzzzz", "above"),
            ("81ARYZ6S41TSV4RRFFQ69G5FAV", "above 128 bits"),
            ("919108f7-52d1-4320-9bac-f847db4148ag", "not a digit"),
            ("0x", "it must be decimal"),
            ("017F22E27-9B0-7CC3-98C4-DC0C0C07398F", "it must be decimal"),
            ("{123}", "it must be decimal"),
            ("0x-12345678", "not a digit"),
            ("九一九一零八七四三二零九", "must be"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
