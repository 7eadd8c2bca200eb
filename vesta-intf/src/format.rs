//! IDs as text: for URLs, file names, string columns that sort.

use std::fmt;
use std::str::FromStr;

use crate::check::CheckSymbol;
use crate::names::named;
use crate::{IdError, uuid};

/// Text format of an ID.
///
/// ```
/// use vesta_intf::IdFormat;
///
/// let text = IdFormat::Base62.encode(1_285_482_222_412_933_127);
/// assert_eq!(text, "1WxWNOqQKdL");
/// assert_eq!(IdFormat::Base62.parse(&text)?, 1_285_482_222_412_933_127);
/// # Ok::<(), vesta_intf::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IdFormat {
    /// Decimal digits, 1 to 20 of them, without leading zeros, though parsing accepts them.
    #[default]
    Decimal,
    /// Decimal digits, always 20.
    PaddedDecimal,
    /// Lower-case hexadecimal digits, always 16. Both cases are accepted when parsing.
    Hex,
    /// Digits, upper-case and lower-case letters in ASCII order, always 11 characters.
    Base62,
    /// Crockford's base32 in upper case, always 13 characters, without check symbol. When parsing,
    /// lower case is accepted too, and I and L for 1, O for 0; hyphens are not accepted.
    Crockford,
    /// Digits and upper-case letters, always 13 characters. Both cases are accepted when parsing.
    Base36,
    /// [`Crockford`](Self::Crockford) plus its check symbol, always 14 characters.
    CrockfordCheck,
    /// Decimal digits plus the check digit of [`CheckSymbol::Damm`], 2 to 21 characters.
    DecimalDamm,
    /// Decimal digits plus the two check digits of [`CheckSymbol::Mod97`], 3 to 22 characters.
    DecimalMod97,
    /// Decimal digits plus the check digit of [`CheckSymbol::Luhn`], 2 to 21 characters.
    DecimalLuhn,
    /// A UUID of version 8, always 36 characters. It contains the 64 bits; all its other digits are fixed. Both cases
    /// are accepted when parsing. For UUIDs that show the time see [`UuidV7`](crate::UuidV7).
    Uuid,
}

/// Digits of a format, and the value of each byte; `NONE` for a byte that is not a digit.
#[derive(Debug)]
pub struct Digits {
    /// The symbols, the first for 0.
    pub symbols: &'static [u8],
    /// The symbols, for people.
    shown: &'static str,
    values: [u8; 256],
}

const NONE: u8 = u8::MAX;
/// Decimal digits.
pub static DECIMAL: Digits = Digits::new(b"0123456789", "0-9");
static HEX: Digits = Digits::new(b"0123456789abcdef", "0-9, a-f").same(b"ABCDEF", b"abcdef");
/// Digits and upper-case letters; lower case is read too.
pub static BASE36: Digits = Digits::new(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0-9, A-Z")
    .same(b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ");
/// Digits, upper-case and lower-case letters in ASCII order.
pub static BASE62: Digits = Digits::new(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "0-9, A-Z, a-z",
);
/// The digits of Crockford's base32.
pub static CROCKFORD: Digits =
    Digits::new(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", "0-9, A-Z without U")
        .same(b"abcdefghjkmnpqrstvwxyz", b"ABCDEFGHJKMNPQRSTVWXYZ")
        .same(b"IiLlOo", b"111100");

impl Digits {
    /// These symbols, the first for 0, and how they are shown.
    pub const fn new(symbols: &'static [u8], shown: &'static str) -> Self {
        let (mut values, mut i) = ([NONE; 256], 0);
        while i < symbols.len() {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "there are at most 62 symbols"
            )]
            let value = i as u8;
            values[symbols[i] as usize] = value;
            i += 1;
        }
        Self {
            symbols,
            shown,
            values,
        }
    }

    /// The value of a character, if it is a digit.
    pub fn value(&self, character: char) -> Option<u8> {
        let value = self.values[usize::from(u8::try_from(character).ok()?)];
        (value != NONE).then_some(value)
    }

    /// The same digits, with these bytes parsed like those.
    const fn same(mut self, these: &[u8], those: &[u8]) -> Self {
        assert!(these.len() == those.len());
        let mut i = 0;
        while i < these.len() {
            self.values[these[i] as usize] = self.values[those[i] as usize];
            i += 1;
        }
        self
    }
}

impl IdFormat {
    /// All formats.
    pub const ALL: [IdFormat; 11] = [
        Self::Decimal,
        Self::PaddedDecimal,
        Self::Hex,
        Self::Base36,
        Self::Base62,
        Self::Crockford,
        Self::CrockfordCheck,
        Self::DecimalDamm,
        Self::DecimalMod97,
        Self::DecimalLuhn,
        Self::Uuid,
    ];

    /// The name in configurations and requests.
    pub const fn name(self) -> &'static str {
        match self {
            IdFormat::Decimal => "decimal",
            IdFormat::PaddedDecimal => "padded-decimal",
            IdFormat::Hex => "hex",
            IdFormat::Base62 => "base62",
            IdFormat::Crockford => "crockford",
            IdFormat::Base36 => "base36",
            IdFormat::CrockfordCheck => "crockford-check",
            IdFormat::DecimalDamm => "decimal-damm",
            IdFormat::DecimalMod97 => "decimal-mod97",
            IdFormat::DecimalLuhn => "decimal-luhn",
            IdFormat::Uuid => "uuid",
        }
    }

    /// True if the texts sort bytewise in the order of the IDs as unsigned numbers. A database column of
    /// [`Base62`](Self::Base62) needs a collation that does the same ("C", binary).
    pub const fn is_sortable(self) -> bool {
        self.lengths().0 == self.lengths().1
    }

    /// The check symbol method, and the format of the text before the symbols; `None` without check
    /// symbols.
    pub const fn check(self) -> Option<(CheckSymbol, IdFormat)> {
        match self {
            IdFormat::CrockfordCheck => Some((CheckSymbol::Crockford, IdFormat::Crockford)),
            IdFormat::DecimalDamm => Some((CheckSymbol::Damm, IdFormat::Decimal)),
            IdFormat::DecimalMod97 => Some((CheckSymbol::Mod97, IdFormat::Decimal)),
            IdFormat::DecimalLuhn => Some((CheckSymbol::Luhn, IdFormat::Decimal)),
            _ => None,
        }
    }

    /// Minimum and maximum length of the text, in characters.
    pub const fn lengths(self) -> (usize, usize) {
        match self {
            IdFormat::Decimal => (1, 20),
            IdFormat::PaddedDecimal => (20, 20),
            IdFormat::Hex => (16, 16),
            IdFormat::Base62 => (11, 11),
            IdFormat::Crockford | IdFormat::Base36 => (13, 13),
            IdFormat::CrockfordCheck => (14, 14),
            IdFormat::DecimalDamm | IdFormat::DecimalLuhn => (2, 21),
            IdFormat::DecimalMod97 => (3, 22),
            IdFormat::Uuid => (uuid::LENGTH, uuid::LENGTH),
        }
    }

    const fn digits(self) -> &'static Digits {
        match self {
            IdFormat::Hex | IdFormat::Uuid => &HEX,
            IdFormat::Base36 => &BASE36,
            IdFormat::Base62 => &BASE62,
            IdFormat::Crockford | IdFormat::CrockfordCheck => &CROCKFORD,
            _ => &DECIMAL,
        }
    }

    /// The text of an ID, without allocation.
    pub fn format(self, id: u64) -> IdText {
        let (check, body) = match self.check() {
            Some((check, body)) => (Some(check), body),
            None => (None, self),
        };
        let least = body.lengths().0;
        let text = match body {
            IdFormat::Hex => IdText::of::<16>(&HEX, id, least),
            IdFormat::Base36 => IdText::of::<36>(&BASE36, id, least),
            IdFormat::Base62 => IdText::of::<62>(&BASE62, id, least),
            IdFormat::Crockford => IdText::of::<32>(&CROCKFORD, id, least),
            IdFormat::Uuid => IdText::whole(uuid::format(uuid::of_id(id))),
            _ => IdText::of::<10>(&DECIMAL, id, least),
        };
        match check {
            Some(check) => text.checked(check, id),
            None => text,
        }
    }

    /// The text of an ID as a string.
    pub fn encode(self, id: u64) -> String {
        self.format(id).as_str().to_owned()
    }

    /// The ID of a text.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `id`: the text is too short or too long, or exceeds [`u64::MAX`]; a character
    /// is not a digit of this format (signs, blanks and prefixes are not); its check symbol is wrong; or a UUID is not
    /// that of an ID.
    pub fn parse(self, text: &str) -> Result<u64, IdError> {
        let invalid = |reason| Err(IdError::invalid("id", reason));
        let (min, max) = self.lengths();
        let length = text.chars().count();
        if length < min || length > max {
            let takes = if min == max {
                format!("exactly {min}")
            } else {
                format!("{min} to {max}")
            };
            return invalid(format!("{self} takes {takes} characters, not {length}"));
        }
        if let Some((check, body)) = self.check() {
            let cut = text
                .char_indices()
                .nth(length - check.count())
                .map_or(0, |(at, _)| at);
            let (text, symbols) = text.split_at(cut);
            let id = body.parse(text)?;
            let right = check.of_number(id);
            let agrees = check.agrees(symbols, right.as_str());
            return if agrees {
                Ok(id)
            } else {
                Err(check.wrong("id"))
            };
        }
        if self == IdFormat::Uuid {
            let id = uuid::id_of(uuid::parse(text)?);
            return id.ok_or_else(|| {
                let reason = "this UUID is not that of an ID: those have version 8 and end in 00-007665737461";
                IdError::invalid("id", reason)
            });
        }
        let digits = self.digits();
        let mut id = Some(0u64);
        for (i, character) in text.chars().enumerate() {
            let Some(value) = digits.value(character) else {
                return invalid(format!(
                    "character {} is {character:?}, which is not a digit of {self} ({})",
                    i + 1,
                    digits.shown
                ));
            };
            id = id
                .and_then(|id| id.checked_mul(digits.symbols.len() as u64))
                .and_then(|id| id.checked_add(value.into()));
        }
        match id {
            Some(id) => Ok(id),
            None => invalid(format!(
                "it is above {}, the largest number of 64 bits",
                self.format(u64::MAX)
            )),
        }
    }
}

impl fmt::Display for IdFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for IdFormat {
    type Err = IdError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        named(Self::ALL, Self::name, "format", name)
    }
}

/// The text of an ID: at most 36 ASCII characters, stored inline.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdText {
    /// The digits end at `DIGITS`, check symbols follow; all other places are `0`. A UUID has all places.
    bytes: [u8; uuid::LENGTH],
    start: usize,
    end: usize,
}

/// Maximum number of digits.
const DIGITS: usize = 20;

impl IdText {
    /// The radix is a constant so that the compiler can avoid divisions.
    #[doc(hidden)]
    pub fn of<const RADIX: u64>(digits: &Digits, mut id: u64, least: usize) -> Self {
        let mut bytes = [b'0'; uuid::LENGTH];
        let mut start = DIGITS;
        while id > 0 {
            start -= 1;
            #[allow(clippy::cast_possible_truncation, reason = "it is below the radix")]
            let digit = (id % RADIX) as usize;
            bytes[start] = digits.symbols[digit];
            id /= RADIX;
        }
        Self {
            bytes,
            start: start.min(DIGITS - least),
            end: DIGITS,
        }
    }

    /// A text that takes all places.
    pub(crate) const fn whole(bytes: [u8; uuid::LENGTH]) -> Self {
        Self {
            bytes,
            start: 0,
            end: uuid::LENGTH,
        }
    }

    /// The same text with the check symbols of this ID.
    fn checked(mut self, check: CheckSymbol, id: u64) -> Self {
        let symbols = check.of_number(id);
        self.end += symbols.as_bytes().len();
        self.bytes[DIGITS..self.end].copy_from_slice(symbols.as_bytes());
        self
    }

    /// Its bytes, of ASCII.
    pub const fn as_bytes(&self) -> &[u8] {
        self.bytes.split_at(self.end).0.split_at(self.start).1
    }

    /// The characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("all digits are ASCII")
    }
}

impl AsRef<str> for IdText {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for IdText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for IdText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}
