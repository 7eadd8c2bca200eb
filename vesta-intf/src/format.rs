//! IDs as text: for URLs, file names, columns that sort as strings.

use std::fmt;
use std::str::FromStr;

use crate::IdError;

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
    /// Decimal digits, 1 to 20 of them, without leading zeros; those are accepted when parsing.
    #[default]
    Decimal,
    /// Decimal digits, always 20.
    PaddedDecimal,
    /// Lower-case hexadecimal digits, always 16. Both cases are accepted when parsing.
    Hex,
    /// Digits, upper-case and lower-case letters in the order of ASCII, always 11 characters.
    Base62,
    /// Crockford's base32 in upper case, always 13 characters, without check symbol. When parsing,
    /// lower case is accepted too, and I and L for 1, O for 0; hyphens are not.
    Crockford,
}

/// Digits of a format, and the value of each byte; `NONE` for bytes that are no digit.
struct Digits {
    symbols: &'static [u8],
    values: [u8; 256],
}

const NONE: u8 = u8::MAX;
static DECIMAL: Digits = Digits::new(b"0123456789");
static HEX: Digits = Digits::new(b"0123456789abcdef").same(b"ABCDEF", b"abcdef");
static BASE62: Digits =
    Digits::new(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
static CROCKFORD: Digits = Digits::new(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    .same(b"abcdefghjkmnpqrstvwxyz", b"ABCDEFGHJKMNPQRSTVWXYZ")
    .same(b"IiLlOo", b"111100");

impl Digits {
    const fn new(symbols: &'static [u8]) -> Self {
        let (mut values, mut i) = ([NONE; 256], 0);
        while i < symbols.len() {
            #[allow(clippy::cast_possible_truncation, reason = "there are at most 62 symbols")]
            let value = i as u8;
            values[symbols[i] as usize] = value;
            i += 1;
        }
        Self { symbols, values }
    }

    /// The same digits, with these bytes parsed as those.
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
    pub const ALL: [IdFormat; 5] =
        [Self::Decimal, Self::PaddedDecimal, Self::Hex, Self::Base62, Self::Crockford];

    /// The name in configurations and requests.
    pub const fn name(self) -> &'static str {
        match self {
            IdFormat::Decimal => "decimal",
            IdFormat::PaddedDecimal => "padded-decimal",
            IdFormat::Hex => "hex",
            IdFormat::Base62 => "base62",
            IdFormat::Crockford => "crockford",
        }
    }

    /// True if the texts sort byte by byte in the order of the IDs as unsigned numbers. A database column of [`Base62`](Self::Base62) needs a collation that does so too ("C",
    /// binary).
    pub const fn is_sortable(self) -> bool {
        !matches!(self, IdFormat::Decimal)
    }

    /// Minimum and maximum length of the text, in characters.
    pub const fn lengths(self) -> (usize, usize) {
        match self {
            IdFormat::Decimal => (1, 20),
            IdFormat::PaddedDecimal => (20, 20),
            IdFormat::Hex => (16, 16),
            IdFormat::Base62 => (11, 11),
            IdFormat::Crockford => (13, 13),
        }
    }

    const fn digits(self) -> &'static Digits {
        match self {
            IdFormat::Decimal | IdFormat::PaddedDecimal => &DECIMAL,
            IdFormat::Hex => &HEX,
            IdFormat::Base62 => &BASE62,
            IdFormat::Crockford => &CROCKFORD,
        }
    }

    /// The text of an ID, without an allocation.
    pub fn format(self, id: u64) -> IdText {
        let least = self.lengths().0;
        match self {
            IdFormat::Decimal | IdFormat::PaddedDecimal => IdText::of::<10>(&DECIMAL, id, least),
            IdFormat::Hex => IdText::of::<16>(&HEX, id, least),
            IdFormat::Base62 => IdText::of::<62>(&BASE62, id, least),
            IdFormat::Crockford => IdText::of::<32>(&CROCKFORD, id, least),
        }
    }

    /// The text of an ID as a string.
    pub fn encode(self, id: u64) -> String {
        self.format(id).as_str().to_owned()
    }

    /// The ID of a text.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `id`: the text is too short or too long, a character of it is no
    /// digit of this format (signs, blanks and prefixes are none), or it is above [`u64::MAX`].
    pub fn parse(self, text: &str) -> Result<u64, IdError> {
        let invalid = |reason| Err(IdError::invalid("id", reason));
        let (min, max) = self.lengths();
        let length = text.chars().count();
        if length < min || length > max {
            let takes =
                if min == max { format!("exactly {min}") } else { format!("{min} to {max}") };
            return invalid(format!("{self} takes {takes} characters, not {length}"));
        }
        let digits = self.digits();
        let mut id = Some(0u64);
        for (i, character) in text.chars().enumerate() {
            let value = match u8::try_from(character) {
                Ok(byte) => digits.values[usize::from(byte)],
                Err(_) => NONE,
            };
            if value == NONE {
                let digits = self.alphabet();
                return invalid(format!(
                    "character {} is {character:?}, which is not a digit of {self} ({digits})",
                    i + 1
                ));
            }
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

    const fn alphabet(self) -> &'static str {
        match self {
            IdFormat::Decimal | IdFormat::PaddedDecimal => "0-9",
            IdFormat::Hex => "0-9, a-f",
            IdFormat::Base62 => "0-9, A-Z, a-z",
            IdFormat::Crockford => "0-9, A-Z without U",
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
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            IdError::invalid("format", format!("`{name}` is not one of {names}"))
        })
    }
}

/// The text of an ID: at most 20 ASCII characters, kept in place.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdText {
    /// Filled from the end; `0` before `start`.
    bytes: [u8; 20],
    start: usize,
}

impl IdText {
    /// The radix is a constant, so that the compiler need not divide.
    fn of<const RADIX: u64>(digits: &Digits, mut id: u64, least: usize) -> Self {
        let mut bytes = [b'0'; 20];
        let mut start = bytes.len();
        while id > 0 {
            start -= 1;
            #[allow(clippy::cast_possible_truncation, reason = "it is below the radix")]
            let digit = (id % RADIX) as usize;
            bytes[start] = digits.symbols[digit];
            id /= RADIX;
        }
        Self { bytes, start: start.min(bytes.len() - least) }
    }

    /// The characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[self.start..]).expect("all digits are ASCII")
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
