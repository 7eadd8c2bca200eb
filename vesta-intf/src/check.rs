//! Check symbols: appended to a number so that a typing mistake is noticed.

use std::fmt;
use std::str::FromStr;

use crate::IdError;
use crate::names::named;

/// A check symbol method. All of them detect every wrong digit; all but [`Luhn`](Self::Luhn) also
/// every swap of two neighbours. docs/use/serials.md has the measured detection rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckSymbol {
    /// One digit, by the quasigroup of H. Michael Damm's dissertation of 2004. The recommended one for
    /// digits.
    Damm,
    /// Two digits, by ISO 7064 MOD 97-10, as in an IBAN. Also detects most other mistakes.
    Mod97,
    /// One of 37 symbols, by Douglas Crockford's base32: `0`-`9`, `A`-`Z` without I, L and O, and
    /// `*~$=`. The recommended one for letters.
    Crockford,
    /// One digit, by ISO/IEC 7812, as on payment cards. It misses 09 for 90; only for systems that require
    /// it.
    Luhn,
}

/// One or two check symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbols {
    bytes: [u8; 2],
    count: usize,
}

impl Symbols {
    /// The symbols, of ASCII.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.count]
    }

    /// The symbols.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("all symbols are ASCII")
    }

    const fn one(symbol: u8) -> Self {
        Self {
            bytes: [symbol, 0],
            count: 1,
        }
    }

    /// A digit below 10.
    fn digit(digit: usize) -> Self {
        Self::one(CROCKFORD[digit])
    }

    /// The two digits that make the whole number leave 1 when divided by 97; `rest` is that of the
    /// number itself.
    fn mod_97(rest: usize) -> Self {
        let check = 98 - rest * 100 % 97;
        Self {
            bytes: [CROCKFORD[check / 10], CROCKFORD[check % 10]],
            count: 2,
        }
    }
}

/// The symbols of Crockford's base32, then the five used only as check symbols.
const CROCKFORD: &[u8; 37] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U";

/// The quasigroup of order 10 of Damm's dissertation, page 111.
const DAMM: [[u8; 10]; 10] = [
    [0, 3, 1, 7, 5, 9, 8, 6, 4, 2],
    [7, 0, 9, 2, 1, 5, 4, 8, 6, 3],
    [4, 2, 0, 6, 8, 7, 1, 3, 5, 9],
    [1, 7, 5, 0, 9, 8, 3, 4, 2, 6],
    [6, 1, 2, 3, 0, 4, 5, 9, 7, 8],
    [3, 6, 7, 4, 2, 0, 9, 5, 8, 1],
    [5, 8, 6, 9, 7, 2, 0, 1, 3, 4],
    [8, 9, 4, 5, 3, 6, 2, 0, 1, 7],
    [9, 4, 3, 8, 6, 1, 7, 2, 0, 5],
    [2, 5, 8, 1, 4, 3, 6, 7, 9, 0],
];

/// Three digits in one step: index `1000 * state + digits` holds a thousand times the next state.
static DAMM_STEPS: [u16; 10_000] = {
    let (mut steps, mut place) = ([0; 10_000], 0);
    while place < steps.len() {
        let mut state = DAMM[place / 1000][place / 100 % 10];
        state = DAMM[state as usize][place / 10 % 10];
        steps[place] = 1000 * DAMM[state as usize][place % 10] as u16;
        place += 1;
    }
    steps
};

impl CheckSymbol {
    /// All methods.
    pub const ALL: [CheckSymbol; 4] = [Self::Damm, Self::Mod97, Self::Crockford, Self::Luhn];

    /// The name in patterns.
    pub const fn name(self) -> &'static str {
        match self {
            CheckSymbol::Damm => "damm",
            CheckSymbol::Mod97 => "mod97",
            CheckSymbol::Crockford => "crockford",
            CheckSymbol::Luhn => "luhn",
        }
    }

    /// Number of symbols that it appends.
    pub const fn count(self) -> usize {
        match self {
            CheckSymbol::Mod97 => 2,
            _ => 1,
        }
    }

    /// The symbols of a number.
    #[inline]
    pub fn of_number(self, number: u64) -> Symbols {
        #[allow(clippy::cast_possible_truncation, reason = "it is below the divisor")]
        let rest = |by: u64| (number % by) as usize;
        match self {
            CheckSymbol::Damm => Symbols::digit(damm(number)),
            CheckSymbol::Luhn => Symbols::digit(luhn(number)),
            CheckSymbol::Mod97 => Symbols::mod_97(rest(97)),
            CheckSymbol::Crockford => Symbols::one(CROCKFORD[rest(37)]),
        }
    }

    /// The symbols of a text. Characters without a value in this method are skipped: letters in a method
    /// for digits, and anything that is neither letter nor digit.
    pub fn of_text(self, text: &[u8]) -> Symbols {
        let digits = text
            .iter()
            .filter(|byte| byte.is_ascii_digit())
            .map(|digit| usize::from(digit - b'0'));
        match self {
            CheckSymbol::Damm => {
                Symbols::digit(digits.fold(0, |state, digit| DAMM[state][digit].into()))
            }
            CheckSymbol::Luhn => {
                let counted = digits.rev().enumerate();
                let counted =
                    counted.map(|(place, digit)| [usize::from(LUHN_SUMS[digit]), digit][place % 2]);
                Symbols::digit(up_to_ten(counted.sum()))
            }
            CheckSymbol::Mod97 => Symbols::mod_97(text.iter().fold(0, |rest, byte| match byte {
                b'0'..=b'9' => (rest * 10 + usize::from(byte - b'0')) % 97,
                // As in an IBAN: two digits, 10 to 35.
                b'A'..=b'Z' => (rest * 100 + usize::from(byte - b'A') + 10) % 97,
                _ => rest,
            })),
            CheckSymbol::Crockford => {
                let value = |byte: &u8| CROCKFORD.iter().position(|symbol| symbol == byte);
                let values = text.iter().filter_map(value);
                Symbols::one(CROCKFORD[values.fold(0, |rest, value| (rest * 32 + value) % 37)])
            }
        }
    }

    /// True if the given symbols are the right ones, in either case; for Crockford, I and L count as 1, O
    /// as 0.
    pub fn agrees(self, given: &str, right: &str) -> bool {
        let meant = given
            .chars()
            .map(|character| match (self, character.to_ascii_uppercase()) {
                (CheckSymbol::Crockford, 'I' | 'L') => '1',
                (CheckSymbol::Crockford, 'O') => '0',
                (_, character) => character,
            });
        meant.eq(right.chars())
    }

    /// The error for wrong symbols. It does not name the right ones: they would make a wrong number
    /// look right.
    pub fn wrong(self, field: &'static str) -> IdError {
        let symbols = if self.count() == 1 {
            "symbol is"
        } else {
            "symbols are"
        };
        let reason = format!(
            "its check {symbols} wrong ({self}): a character of it was mistyped, swapped, lost or added"
        );
        IdError::invalid(field, reason)
    }
}

impl fmt::Display for CheckSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CheckSymbol {
    type Err = IdError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        named(Self::ALL, Self::name, "check", name)
    }
}

/// The check digit of a number: leading zeros change nothing.
#[inline]
fn damm(mut number: u64) -> usize {
    let (mut digits, mut first) = ([0; 7], 7);
    while number > 0 {
        first -= 1;
        #[allow(clippy::cast_possible_truncation, reason = "it is below a thousand")]
        (digits[first] = (number % 1000) as usize);
        number /= 1000;
    }
    digits[first..]
        .iter()
        .fold(0, |state, three| usize::from(DAMM_STEPS[state + three]))
        / 1000
}

/// The check digit of a number, four digits at a time.
#[inline]
fn luhn(mut number: u64) -> usize {
    let mut sum = 0;
    for _ in 0..5 {
        #[allow(clippy::cast_possible_truncation, reason = "it is below ten thousand")]
        (sum += usize::from(LUHN_SUMS[(number % 10_000) as usize]));
        number /= 10_000;
    }
    up_to_ten(sum)
}

/// The digit that makes a sum a multiple of ten.
const fn up_to_ten(sum: usize) -> usize {
    (10 - sum % 10) % 10
}

/// Sums of four digits: every second one from the right is doubled, and reduced by 9 if that has two
/// digits.
static LUHN_SUMS: [u8; 10_000] = {
    let (mut sums, mut digits) = ([0; 10_000], 0);
    while digits < sums.len() {
        let (mut rest, mut sum) = (digits, 0);
        while rest > 0 {
            let double = rest % 10 * 2;
            sum += double / 10 + double % 10 + rest / 10 % 10;
            rest /= 100;
        }
        #[allow(clippy::cast_possible_truncation, reason = "at most 36")]
        (sums[digits] = sum as u8);
        digits += 1;
    }
    sums
};
