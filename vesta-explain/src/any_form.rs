//! IDs in any form that a person may paste.

mod around;
mod long;

use std::fmt;

use vesta_intf::inside::Digits;
use vesta_intf::{IdError, IdFormat, IdMeta, UnixMillis, UuidV7};

use crate::layouts;

pub use around::Around;
use around::Peeled;

/// Digits of a TID.
static TID: Digits = Digits::new(b"234567abcdefghijklmnopqrstuvwxyz", "2-7, a-z");

/// Fewest characters of an ID whose leading zeros are left out: with fewer, every word would be an ID.
const UNPADDED: usize = 9;

/// A recognised text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// An ID of 64 bits, in each format that the text fits. Never empty.
    Ids(Vec<Reading>),
    /// A notation that lost digits: any of several IDs.
    Lost {
        /// The notation.
        by: &'static Around,
        /// The smallest ID it may have been.
        from: u64,
        /// The largest ID it may have been.
        until: u64,
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

/// A text read in one format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The ID.
    pub id: u64,
    /// The form it is written in.
    pub form: Form,
    /// Writing around it that was taken off, from the outside.
    pub around: Vec<&'static Around>,
}

impl Reading {
    /// Moves readings that cannot be IDs of this layout by now behind the others; digits alone stay decimal first.
    pub fn likely_first(ids: &mut [Self], layout: &IdMeta, now: UnixMillis) {
        let is_decimal = |it: &Self| it.form == Form::Format(IdFormat::Decimal);
        ids.sort_by_key(|it| !is_decimal(it) && !layouts::may_exist(layout, it.id, now));
    }
}

impl fmt::Display for Reading {
    /// For a choice between several: `base36 (2407837855670862845)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.form.name(), self.id)
    }
}

impl Written {
    /// The one reading of a text in a list or a column: digits alone are decimal, all other texts must fit one format.
    /// `by` is the option with which a person chooses another.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `id`, with all readings; or with the IDs that it may have been, or its kind.
    pub fn one(self, by: &str) -> Result<Reading, IdError> {
        let mut ids = self.ids()?;
        if ids.len() > 1 && ids[0].form != Form::Format(IdFormat::Decimal) {
            let all: Vec<_> = ids.iter().map(Reading::to_string).collect();
            let all = all.join(", ");
            let reason = format!("it fits several formats: {all}; choose one with {by}");
            return Err(IdError::invalid("id", reason));
        }
        Ok(ids.swap_remove(0))
    }

    /// All readings.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `id`: the notation lost digits, or the text has more than 64 bits.
    pub fn ids(self) -> Result<Vec<Reading>, IdError> {
        let reason = match self {
            Written::Ids(ids) => return Ok(ids),
            Written::Lost { by, from, until } => {
                let Around { name, remedy, .. } = by;
                format!(
                    "digits are lost ({name}): the ID lies between {from} and {until}; {remedy}"
                )
            }
            Written::Long { kind, bits, moment } => {
                let made = moment.map_or(String::new(), |moment| format!(", made {moment}"));
                format!("it has {bits} bits, not 64: {kind}{made}")
            }
        };
        Err(IdError::invalid("id", reason))
    }
}

/// The form of an ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One of the text formats.
    Format(IdFormat),
    /// A negative number: the same bits read as a signed number.
    Signed,
    /// A TID of the AT Protocol, as in Bluesky.
    Tid,
    /// A UUID of version 7 of this layout, which is a named one: see [`UuidV7`](UuidV7).
    UuidV7(IdMeta),
}

impl Form {
    /// Name of the form: that of the format, or `signed`, `tid`, `uuid-v7`.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Format(format) => format.name(),
            Form::Signed => "signed",
            Form::Tid => "tid",
            Form::UuidV7(_) => UuidV7::NAME,
        }
    }
}

/// Reads an ID in any form, in each format that the text fits:
/// * decimal, signed decimal, and decimal with a check digit that is right
/// * hexadecimal: `0x` and up to 16 digits; without `0x` 16 digits
/// * base36 (13 characters), base62 (11)
/// * Crockford's base32 (13 characters, 14 with its check symbol)
/// * a TID
/// * a UUID that contains an ID: of version 8, or of version 7 in a named layout
///
/// Hexadecimal, base36 and base62 may lack their leading zeros if 9 characters are left, at least one of them a letter.
/// Letters of one text have one case, except those of base62.
///
/// Also recognises longer IDs: UUID, ULID, KSUID, XID and MongoDB's `ObjectId`. The writing of other programs around a
/// number is taken off and named: see [`Around`].
///
/// Digits alone are decimal first. Of other texts, those first that their format would write in the same way.
///
/// ```
/// use vesta_explain::{Form, Written, read};
/// use vesta_intf::IdFormat;
///
/// let Written::Ids(ids) = read("0IAKJA8DRATQ5")? else { panic!() };
/// let ids: Vec<_> = ids.iter().map(|it| (it.form.name(), it.id)).collect();
/// assert_eq!(ids, [("base36", 2_407_837_855_670_862_845), ("crockford", 47_976_443_015_424_741)]);
/// # Ok::<(), vesta_intf::IdError>(())
/// ```
///
/// # Errors
/// [`IdError::Invalid`] for `id`, with the accepted forms, or the defect of the form it appears to have.
pub fn read(text: &str) -> Result<Written, IdError> {
    let (mut rest, mut around, mut found) = (text.trim().to_owned(), Vec::new(), Vec::new());
    loop {
        let error = match plain(&rest) {
            Ok(Written::Ids(ids)) => {
                for mut it in ids {
                    it.around.clone_from(&around);
                    found.push(it);
                }
                None
            }
            Ok(other) => return Ok(other),
            Err(error) => Some(error),
        };
        match (around::peel(&rest), error) {
            (Some((by, Peeled::Text(inner))), _) => {
                around.push(by);
                rest = inner.trim().to_owned();
            }
            (Some((by, Peeled::Lost { from, until })), _) => {
                return Ok(Written::Lost { by, from, until });
            }
            (None, Some(error)) if found.is_empty() => return Err(error),
            (None, _) => return Ok(Written::Ids(found)),
        }
    }
}

/// Reads a text in one format. Leading zeros of hexadecimal, base36 and base62 may be missing, as in CosId's texts
/// without padding.
///
/// # Errors
/// As [`IdFormat::parse`].
pub fn read_as(text: &str, format: IdFormat) -> Result<u64, IdError> {
    let (least, _) = format.lengths();
    match format {
        IdFormat::Hex | IdFormat::Base36 | IdFormat::Base62 if !text.is_empty() => {
            format.parse(&format!("{text:0>least$}"))
        }
        format => format.parse(text),
    }
}

/// Formats in the order of their answers.
const FORMATS: [IdFormat; 10] = [
    IdFormat::PaddedDecimal,
    IdFormat::Decimal,
    IdFormat::Hex,
    IdFormat::Base62,
    IdFormat::Crockford,
    IdFormat::Base36,
    IdFormat::CrockfordCheck,
    IdFormat::DecimalDamm,
    IdFormat::DecimalMod97,
    IdFormat::DecimalLuhn,
];

/// True if a text may be one of this format: its length and its letters are right.
fn may_be(format: IdFormat, text: &str) -> bool {
    let (least, most) = format.lengths();
    let is_decimal = is_decimal(text);
    let is_unpadded =
        (UNPADDED..least).contains(&text.len()) && !is_decimal && !text.starts_with('0');
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    let has_one_case = !has(u8::is_ascii_lowercase) || !has(u8::is_ascii_uppercase);
    match format {
        IdFormat::PaddedDecimal => is_decimal && text.starts_with('0') && text.len() == least,
        IdFormat::Decimal => is_decimal,
        IdFormat::DecimalDamm | IdFormat::DecimalMod97 | IdFormat::DecimalLuhn => {
            let is_shortest = |id| format.format(id).as_str() == text;
            is_decimal && format.parse(text).is_ok_and(is_shortest)
        }
        IdFormat::Base62 => text.len() == least || is_unpadded,
        IdFormat::Hex | IdFormat::Base36 => has_one_case && (text.len() == least || is_unpadded),
        _ => has_one_case && (least..=most).contains(&text.len()),
    }
}

/// Reads a text with nothing around it.
fn plain(text: &str) -> Result<Written, IdError> {
    if text.strip_prefix('-').is_some_and(is_decimal) {
        return signed(text);
    }
    let mut found: Vec<(u64, Form)> = Vec::new();
    let mut add = |id, form| {
        if found.iter().all(|it| it.0 != id) {
            found.push((id, form));
        }
    };
    if let Some(id) = tid(text) {
        add(id, Form::Tid);
    }
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let digits = digits.filter(|digits| !digits.is_empty());
    let hex = digits.map(|digits| read_as(digits, IdFormat::Hex));
    if let Some(Ok(id)) = hex {
        add(id, Form::Format(IdFormat::Hex));
    }
    for format in FORMATS.into_iter().filter(|format| may_be(*format, text)) {
        if let Ok(id) = read_as(text, format) {
            add(id, Form::Format(format));
        }
    }
    if found.is_empty() {
        return match (hex, text.len()) {
            (Some(Err(error)), _) => Err(error),
            (_, 11) => Err(id(IdFormat::Base62, text)),
            (_, 13) => Err(id(IdFormat::Crockford, text)),
            (_, 14) => Err(id(IdFormat::CrockfordCheck, text)),
            (_, 16) => Err(id(IdFormat::Hex, text)),
            (_, length) if is_decimal(text) && !long::has_length(length) => {
                Err(id(IdFormat::Decimal, text))
            }
            _ => long::read(text),
        };
    }
    // I, L and O are read as digits of Crockford's base32, but not written.
    let is_as_written = |(id, form): &(u64, Form)| match form {
        Form::Format(format @ (IdFormat::Crockford | IdFormat::CrockfordCheck)) => {
            format.format(*id).as_str().eq_ignore_ascii_case(text)
        }
        _ => true,
    };
    found.sort_by_key(|it| !is_as_written(it));
    let reading = |(id, form)| Reading {
        id,
        form,
        around: Vec::new(),
    };
    Ok(Written::Ids(found.into_iter().map(reading).collect()))
}

/// The error of a text that is none of this format.
fn id(format: IdFormat, text: &str) -> IdError {
    format.parse(text).err().unwrap_or_else(unknown)
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// A negative decimal number.
fn signed(text: &str) -> Result<Written, IdError> {
    let reason = "a negative ID must be -9223372036854775808 or above";
    let id = text.parse::<i64>();
    let id = id.map_err(|_| IdError::invalid("id", reason))?;
    Ok(one(id.cast_unsigned(), Form::Signed))
}

/// A text that fits one form.
fn one(id: u64, form: Form) -> Written {
    Written::Ids(vec![Reading {
        id,
        form,
        around: Vec::new(),
    }])
}

/// 13 characters, the first of which is `3` from 2005 to 2041. The highest bit is 0, and so are those above the 53 bits
/// of that time.
fn tid(text: &str) -> Option<u64> {
    let mut values = text.chars().map(|digit| TID.value(digit));
    let id = values.try_fold(0, |id, value| Some(id << 5 | u64::from(value?)))?;
    (text.len() == 13 && text.starts_with('3')).then_some(id)
}

fn unknown() -> IdError {
    let reason = "it must be decimal, hexadecimal (up to 16 digits), base62 (11 characters), base36 or Crockford's \
                  base32 (13; 14 with its check symbol), a TID (13) or a UUID of an ID";
    IdError::invalid("id", reason)
}
