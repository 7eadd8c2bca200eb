//! IDs in any form that a person may paste.

mod long;

use vesta_intf::inside::Digits;
use vesta_intf::{IdError, IdFormat, IdMeta, UnixMillis, UuidV7};

/// Digits of a TID.
static TID: Digits = Digits::new(b"234567abcdefghijklmnopqrstuvwxyz", "2-7, a-z");

/// A recognised text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// An ID of 64 bits.
    Id {
        /// The ID.
        id: u64,
        /// The form it is written in.
        form: Form,
    },
    /// An ID of more than 64 bits.
    Long {
        /// Its kind: `UUID of version 4`, `ULID`, `KSUID`, `XID` or `ObjectId`.
        kind: String,
        /// Its width.
        bits: u32,
        /// The moment at which it was made, if it encodes one.
        moment: Option<UnixMillis>,
    },
}

/// The form of an ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One of the text formats.
    Format(IdFormat),
    /// A negative number: the same bits read as a signed number.
    Signed,
    /// A literal of JavaScript's `BigInt`: `1n`.
    BigInt,
    /// A literal of Java's `long`: `1L`.
    JavaLong,
    /// A TID of the AT Protocol, as in Bluesky.
    Tid,
    /// A UUID of version 7 of this layout, which is a named one: see [`UuidV7`](UuidV7).
    UuidV7(IdMeta),
}

impl Form {
    /// Name of the form: that of the format, or `signed`, `bigint`, `long`, `tid`, `uuid-v7`.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Format(format) => format.name(),
            Form::Signed => "signed",
            Form::BigInt => "bigint",
            Form::JavaLong => "long",
            Form::Tid => "tid",
            Form::UuidV7(_) => UuidV7::NAME,
        }
    }
}

/// Reads an ID in any form:
/// * decimal, or signed decimal
/// * a literal of JavaScript (`1n`) or Java (`1L`)
/// * hexadecimal: `0x` and up to 16 digits; without `0x` exactly 16, or 9, 10, 12 or 15 where no other form has that
///   length
/// * base62 (11 characters)
/// * Crockford's base32 (13 characters, 14 with its check symbol)
/// * a TID
/// * a UUID that contains an ID: of version 8, or of version 7 in a named layout
///
/// Also recognises longer IDs: UUID, ULID, KSUID, XID and MongoDB's `ObjectId`. Surrounding blanks and quotes are
/// ignored.
///
/// Digits alone are decimal, without a check digit. A text that begins with `0x` may also be base62 or Crockford's
/// base32; if it is valid both ways, it is refused. 13 TID characters that begin with `3`, as those of 2005 to 2041 do,
/// are a TID.
///
/// ```
/// use vesta_explain::{Form, Written, read};
/// use vesta_intf::IdFormat;
///
/// let form = Form::Format(IdFormat::Base62);
/// assert_eq!(read("2rrvDihMXHR")?, Written::Id { id: 2_407_837_855_670_862_845, form });
/// # Ok::<(), vesta_intf::IdError>(())
/// ```
///
/// # Errors
/// [`IdError::Invalid`] for `id`, with the accepted forms, or the defect of the form it appears to have.
pub fn read(text: &str) -> Result<Written, IdError> {
    let text = text.trim().trim_matches(['"', '\'', '`']).trim();
    for (suffix, form) in [("n", Form::BigInt), ("L", Form::JavaLong)] {
        let number = text.strip_suffix(suffix);
        let is_number = |text: &&str| is_decimal(text.strip_prefix('-').unwrap_or(text));
        if let Some(number) = number.filter(is_number) {
            return signed(number, form);
        }
    }
    if text.starts_with('-') {
        return signed(text, Form::Signed);
    }
    if is_decimal(text) && !long::has_length(text.len()) {
        return id(IdFormat::Decimal, text);
    }
    let plain = match text.len() {
        11 => id(IdFormat::Base62, text),
        13 => tid(text).map_or_else(|| id(IdFormat::Crockford, text), Ok),
        14 => id(IdFormat::CrockfordCheck, text),
        16 => id(IdFormat::Hex, text),
        9 | 10 | 12 | 15 => hex(text).map_err(|_| unknown()),
        _ => long::read(text),
    };
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let Some(digits) = digits.filter(|digits| !digits.is_empty()) else {
        return plain;
    };
    match (hex(digits), plain) {
        (Ok(Written::Id { id: hex, .. }), Ok(Written::Id { id, form })) => {
            let (form, name) = (form.name(), "hexadecimal");
            let reason =
                format!("ambiguous: {name} ({hex}) or {form} ({id}); pass that number instead");
            Err(IdError::invalid("id", reason))
        }
        (Err(_), Ok(plain)) => Ok(plain),
        (hex, _) => hex,
    }
}

fn id(format: IdFormat, text: &str) -> Result<Written, IdError> {
    Ok(Written::Id {
        id: format.parse(text)?,
        form: Form::Format(format),
    })
}

/// Hexadecimal digits, 1 to 16 of them.
fn hex(digits: &str) -> Result<Written, IdError> {
    id(IdFormat::Hex, &format!("{digits:0>16}"))
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// A decimal number that may be negative.
fn signed(text: &str, form: Form) -> Result<Written, IdError> {
    let Some(digits) = text.strip_prefix('-') else {
        return Ok(Written::Id {
            id: IdFormat::Decimal.parse(text)?,
            form,
        });
    };
    let id = text.parse::<i64>().ok().filter(|_| is_decimal(digits));
    let reason = "a negative ID must be -9223372036854775808 or above";
    let id = id
        .ok_or_else(|| IdError::invalid("id", reason))?
        .cast_unsigned();
    Ok(Written::Id { id, form })
}

/// The highest bit is 0, and so are those above the 53 bits of the time from 2005 to 2041.
fn tid(text: &str) -> Option<Written> {
    let mut values = text.chars().map(|digit| TID.value(digit));
    let id = values.try_fold(0, |id, value| Some(id << 5 | u64::from(value?)))?;
    text.starts_with('3').then_some(Written::Id {
        id,
        form: Form::Tid,
    })
}

fn unknown() -> IdError {
    let reason = "it must be decimal, hexadecimal (up to 16 digits), base62 (11 characters), Crockford's \
                  base32 (13; 14 with its check symbol) or a TID (13)";
    IdError::invalid("id", reason)
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
            assert!(
                matches!(read(text), Ok(Written::Id { id: ID, .. })),
                "{text}"
            );
        }
        for format in IdFormat::ALL {
            let text = format.encode(ID);
            // Other formats look alike: base36 like Crockford's base32, a check digit like one more
            // digit.
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
        assert!(
            matches!(read("22tjvrqoooozx"), Ok(Written::Id { id: ID, .. })),
            "o for 0"
        );
        let signed = Written::Id {
            id: u64::MAX,
            form: Form::Signed,
        };
        assert_eq!(read("-1").ok(), Some(signed));
        assert!(matches!(
            read("-9223372036854775808"),
            Ok(Written::Id {
                id: 0x8000_0000_0000_0000,
                ..
            })
        ));
        let decimal = read("1234567890123456");
        assert!(
            matches!(
                decimal,
                Ok(Written::Id {
                    id: 1_234_567_890_123_456,
                    ..
                })
            ),
            "not hex"
        );
    }

    #[test]
    fn a_text_with_0x_may_be_base62_or_crockford() {
        for format in [IdFormat::Base62, IdFormat::Crockford] {
            let form = Form::Format(format);
            let last = "zzzzzzzzzzz"
                .get(..format.lengths().0 - 2)
                .expect("as many");
            for text in [format!("0x{last}"), format!("0X{last}")] {
                let id = format.parse(&text).expect("an ID");
                assert_eq!(read(&text).ok(), Some(Written::Id { id, form }), "{text}");
            }
        }
        for (text, both) in [
            (
                "0x123456789",
                "hexadecimal (4886718345) or base62 (798913663704924021); pass",
            ),
            ("0x123456789ab", "or crockford (1046034823752459595); pass"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(both), "{text}: {error}");
        }
        // One more zero, and it can only be hexadecimal.
        assert!(matches!(
            read("0x0123456789"),
            Ok(Written::Id {
                id: 4_886_718_345,
                ..
            })
        ));
    }

    /// The examples of RFC 9562, Appendix A, and of the ULID specification.
    #[test]
    fn ids_of_128_bits_are_named() {
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
            assert_eq!(
                read(text).ok(),
                Some(Written::Long {
                    kind: format!("UUID of version {version}"),
                    bits: 128,
                    moment
                }),
                "{text}"
            );
        }
        let unversioned = Some(Written::Long {
            kind: "UUID of version 4".to_owned(),
            bits: 128,
            moment: None,
        });
        let random = read("919108f7-52d1-4320-9bac-f847db4148a8");
        assert_eq!(random.ok(), unversioned);
        let digits = read("12345678901242348901234567890123"); // all decimal, but too many digits
        assert_eq!(digits.ok(), unversioned);
    }

    /// The examples of their specifications and READMEs: ULID, MongoDB's `getTimestamp`, segmentio/ksuid,
    /// svix-ksuid, ksuid-cli, rs/xid, epyxid.
    #[test]
    fn longer_ids_are_named_with_their_time() {
        for (text, kind, bits, time) in [
            (
                "01ARYZ6S41TSV4RRFFQ69G5FAV",
                "ULID",
                128,
                "2016-07-30T22:36:16.385Z",
            ),
            (
                "507c7f79bcf86cd7994f6c0e",
                "ObjectId",
                96,
                "2012-10-15T21:26:17.000Z",
            ),
            (
                "\"507C7F79BCF86CD7994F6C0E\"",
                "ObjectId",
                96,
                "2012-10-15T21:26:17.000Z",
            ),
            (
                "507079790286077994160120",
                "ObjectId",
                96,
                "2012-10-06T18:33:29.000Z",
            ), // digits alone
            (
                "0ujtsYcgvSTl8PAuAdqWYSMnLOv",
                "KSUID",
                160,
                "2017-10-10T04:00:47.000Z",
            ),
            (
                "1srOrx2ZWZBpBUvZwXKQmoEYga2",
                "KSUID",
                160,
                "2021-05-21T20:04:03.000Z",
            ),
            (
                "151zOCJ2I9szGtX4VwDJjnmvrpZ",
                "KSUID",
                160,
                "2018-05-24T01:46:00.000Z",
            ),
            (
                "aWgEPTl1tmebfsQzFP4bxwgy80V",
                "KSUID",
                160,
                "2150-06-19T23:21:35.000Z",
            ), // the largest
            (
                "9m4e2mr0ui3e8a215n4g",
                "XID",
                96,
                "2011-03-22T17:50:19.000Z",
            ),
            (
                "cnisffq7qo0qnbtbu5gg",
                "XID",
                96,
                "2024-03-04T13:08:15.000Z",
            ),
        ] {
            let Ok(Written::Long {
                kind: found,
                bits: width,
                moment,
            }) = read(text)
            else {
                panic!("{text}")
            };
            let moment = moment.expect(text).to_string();
            assert_eq!(
                (found.as_str(), width, moment.as_str()),
                (kind, bits, time),
                "{text}"
            );
        }
    }

    #[test]
    fn literals_of_languages_and_bare_hexadecimal_digits_are_numbers() {
        let format = Form::Format(IdFormat::Hex);
        for (text, id, form) in [
            ("2407837855670862845n", ID, Form::BigInt),
            ("2407837855670862845L", ID, Form::JavaLong),
            ("2407837855L", 2_407_837_855, Form::JavaLong), // eleven characters, but not base62
            ("-1L", u64::MAX, Form::JavaLong),
            ("7e39c56700c0001", 568_469_873_039_769_601, format),
            ("7E39C56700", 542_135_117_568, format),
            ("3k4duaz5vfs2b", 1_731_979_542_948_864_007, Form::Tid),
        ] {
            assert_eq!(read(text).ok(), Some(Written::Id { id, form }), "{text}");
        }
        for text in [
            "1e5",
            "1e18",
            "n",
            "L",
            "1.5n",
            "7e39c56700g0001",
            "18446744073709551616n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        // A length that another form has is read as that form.
        assert!(matches!(
            read("7E39C56700C00"),
            Ok(Written::Id {
                form: Form::Format(IdFormat::Crockford),
                ..
            })
        ));
    }

    /// By the specification: each of these has the highest bit set, or a character that no TID has.
    #[test]
    fn other_texts_of_13_characters_are_not_tids() {
        for text in ["3jzfcijpj2z21", "3JZFCIJPJ2Z2A", "22tjvrqoooozx"] {
            assert!(
                !matches!(
                    read(text),
                    Ok(Written::Id {
                        form: Form::Tid,
                        ..
                    })
                ),
                "{text}"
            );
        }
    }

    /// Multi-byte characters, at every length and place.
    #[test]
    fn no_text_makes_the_reader_panic() {
        for length in 0..48 {
            for at in 0..length {
                for filler in ["a", "0", "F", "z"] {
                    let text = [&filler.repeat(at), "九", &filler.repeat(length - at)].concat();
                    assert!(read(&text).is_err(), "{text}");
                }
            }
        }
    }

    #[test]
    fn an_unreadable_text_is_refused_with_the_accepted_forms() {
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
            (
                "919108f7-52d1-4320-9bac-f847db4148ag",
                "character 36 is 'g'",
            ),
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
