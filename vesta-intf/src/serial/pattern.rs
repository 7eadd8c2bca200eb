//! Patterns: from their text to their parts, checked so that every serial can be read back and none repeats.

use std::fmt;
use std::iter::Peekable;
use std::str::CharIndices;

use super::Reset;
use crate::IdError;
use crate::check::CheckSymbol;
use crate::format::{BASE36, BASE62, CROCKFORD, DECIMAL, Digits};

/// The form of a tag's serials, and when their counter starts anew.
///
/// | part | stands for |
/// |---|---|
/// | `{date:FORMAT}` | the date: `yy`, `yyyy`, `MM`, `dd`, `DDD` (day of the year), `HH`, and what is no letter |
/// | `{n:W}` | the counter in `W` digits; one that has outgrown them is an error |
/// | `{n:W+}` | the same, but it grows |
/// | `{n:W:DIGITS}` | the same in `decimal`, `base36`, `base62` or `crockford` digits |
/// | `{shuffle:W}` | a number of `W` digits that tells nobody the counter; needs a key |
/// | `{check:METHOD}` | check symbol of the counter as it is written: [`damm`, `mod97`, `crockford`, `luhn`](CheckSymbol) |
/// | `{check:METHOD:all}` | check symbol of everything before it |
/// | `{{`, `}}` | braces |
///
/// ```
/// use vesta_intf::{CivilHour, Pattern, Reset};
///
/// let pattern = Pattern::new("INV-{date:yyMMdd}-{n:6}{check:damm}", Reset::Day)?;
/// let date = CivilHour { year: 2026, month: 11, day: 22, hour: 9 };
/// let serial = pattern.format(&date, 42)?;
/// assert_eq!(serial, "INV-261122-0000427");
/// assert_eq!(pattern.parse(&serial)?.counter, 42);
/// # Ok::<(), vesta_intf::IdError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern {
    text: Box<str>,
    pub(super) parts: Vec<Part>,
    pub(super) counter: Counter,
    reset: Reset,
}

/// A piece of a serial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Literal(char),
    Date(DateField),
    Counter,
    /// Of the counter, or of everything before.
    Check(CheckSymbol, bool),
}

/// A field of the date, in decimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateField {
    /// The last two digits of 2000 to 2099.
    YearOfCentury,
    Year,
    Month,
    Day,
    DayOfYear,
    Hour,
}

impl DateField {
    const ALL: [(&'static str, Self); 6] = [
        ("yy", Self::YearOfCentury),
        ("yyyy", Self::Year),
        ("MM", Self::Month),
        ("dd", Self::Day),
        ("DDD", Self::DayOfYear),
        ("HH", Self::Hour),
    ];

    pub(super) const fn width(self) -> usize {
        match self {
            Self::Year => 4,
            Self::DayOfYear => 3,
            _ => 2,
        }
    }

    /// The next coarser field; none for a year.
    const fn needs(self) -> Option<Fineness> {
        match self {
            Self::YearOfCentury | Self::Year => None,
            Self::Month | Self::DayOfYear => Some(Fineness::Year),
            Self::Day => Some(Fineness::Month),
            Self::Hour => Some(Fineness::Day),
        }
    }

    const fn fineness(self) -> Fineness {
        match self {
            Self::YearOfCentury | Self::Year => Fineness::Year,
            Self::Month => Fineness::Month,
            Self::Day | Self::DayOfYear => Fineness::Day,
            Self::Hour => Fineness::Hour,
        }
    }
}

/// How exactly a date is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fineness {
    Year,
    Month,
    Day,
    Hour,
}

impl fmt::Display for Fineness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fineness::Year => "year (yy or yyyy)",
            Fineness::Month => "month (MM)",
            Fineness::Day => "day (dd or DDD)",
            Fineness::Hour => "hour (HH)",
        })
    }
}

/// The counter's way of being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counter {
    pub(super) width: usize,
    pub(super) grows: bool,
    pub(super) radix: Radix,
    pub(super) shuffled: bool,
}

/// Digits of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Radix {
    Decimal,
    Base36,
    Base62,
    Crockford,
}

impl Radix {
    const ALL: [(&'static str, Self); 4] = [
        ("decimal", Self::Decimal),
        ("base36", Self::Base36),
        ("base62", Self::Base62),
        ("crockford", Self::Crockford),
    ];

    pub(super) const fn digits(self) -> &'static Digits {
        match self {
            Self::Decimal => &DECIMAL,
            Self::Base36 => &BASE36,
            Self::Base62 => &BASE62,
            Self::Crockford => &CROCKFORD,
        }
    }
}

/// The longest pattern, in characters.
const LONGEST: usize = 128;
/// The most digits of a counter; in every radix they go beyond 63 bits or to its end.
const MOST_DIGITS: u64 = 18;

/// A refusal that says where: characters are counted from 1.
fn refuse<T>(at: usize, why: impl fmt::Display) -> Result<T, IdError> {
    Err(IdError::invalid("pattern", format!("at character {}: {why}", at + 1)))
}

impl Pattern {
    /// The pattern of a text.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `pattern`, with the position of what is wrong: it cannot be read, its
    /// serials could not be read back, or those of two periods would be the same.
    pub fn new(text: &str, reset: Reset) -> Result<Self, IdError> {
        let length = text.chars().count();
        if !(1..=LONGEST).contains(&length) {
            return Err(IdError::invalid("pattern", "it must have 1 to 128 characters"));
        }
        let mut read = Read { parts: Vec::new(), counter: None, check: None, dates: Vec::new() };
        let mut chars = text.char_indices().peekable();
        while let Some((start, character)) = chars.next() {
            let at = text[..start].chars().count();
            let twice = chars.peek().is_some_and(|next| next.1 == character);
            match character {
                '{' | '}' if twice => {
                    chars.next();
                    read.parts.push(Part::Literal(character));
                }
                '{' => read.part(at + 1, inside(text, at, &mut chars)?)?,
                '}' => return refuse(at, "this brace closes nothing; write }} for a brace"),
                _ if character.is_control() || character.is_whitespace() => {
                    return refuse(at, "white space and control characters are not allowed");
                }
                _ => read.parts.push(Part::Literal(character)),
            }
        }
        read.finish(text, length, reset)
    }

    /// The pattern as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// When the counter starts anew.
    pub const fn reset(&self) -> Reset {
        self.reset
    }

    /// True if the counter is written as another number, which a key decides.
    pub const fn is_shuffled(&self) -> bool {
        self.counter.shuffled
    }

    /// True if serials tell a date.
    pub fn has_date(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Date(_)))
    }

    /// The end of the counters that can be written: the first one that is too large.
    pub fn end_of_counters(&self) -> u64 {
        let most = self.reset.end_of_counters();
        if self.counter.grows { most } else { self.counter.size().map_or(most, |it| it.min(most)) }
    }
}

impl Counter {
    /// The numbers that its width has room for; `None` if they have more than 64 bits.
    fn size(self) -> Option<u64> {
        (self.radix.digits().symbols.len() as u64).checked_pow(u32::try_from(self.width).ok()?)
    }
}

/// The text up to the closing brace.
fn inside<'a>(
    text: &'a str,
    at: usize,
    chars: &mut Peekable<CharIndices<'a>>,
) -> Result<&'a str, IdError> {
    let Some((start, _)) = chars.peek().copied() else {
        return refuse(at, "this brace is not closed; write {{ for a brace");
    };
    for (end, character) in chars.by_ref() {
        match character {
            '}' => return Ok(&text[start..end]),
            '{' => break,
            _ => {}
        }
    }
    refuse(at, "this brace is not closed; write {{ for a brace")
}

/// What was read so far, with where it stands.
struct Read {
    parts: Vec<Part>,
    counter: Option<(usize, Counter)>,
    check: Option<(usize, CheckSymbol, bool)>,
    dates: Vec<(usize, DateField)>,
}

impl Read {
    /// What stands between two braces.
    fn part(&mut self, at: usize, inside: &str) -> Result<(), IdError> {
        let (name, rest) = inside.split_once(':').unwrap_or((inside, ""));
        let after = at + name.chars().count() + 1;
        match name {
            "date" => self.date(after, rest),
            "n" | "shuffle" => self.counter(at, after, rest, name == "shuffle"),
            "check" => self.check(at, after, rest),
            _ => refuse(at, format!("`{name}` is not one of date, n, shuffle, check")),
        }
    }

    fn date(&mut self, at: usize, format: &str) -> Result<(), IdError> {
        if format.is_empty() {
            return refuse(at, "a format is missing, such as yyMMdd");
        }
        let mut rest = format;
        while let Some(first) = rest.chars().next() {
            let at = at + format.chars().count() - rest.chars().count();
            let run = rest.find(|other| other != first).unwrap_or(rest.len());
            if !first.is_alphanumeric() {
                if first.is_control() || first.is_whitespace() {
                    return refuse(at, "white space and control characters are not allowed");
                }
                self.parts.push(Part::Literal(first));
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let (token, tail) = rest.split_at(run);
            let Some((_, field)) = DateField::ALL.into_iter().find(|(name, _)| *name == token)
            else {
                let names = DateField::ALL.map(|(name, _)| name).join(", ");
                return refuse(at, format!("`{token}` is not one of {names}"));
            };
            let same = |(_, other): &&(usize, DateField)| other.fineness() == field.fineness();
            if let Some((other, _)) = self.dates.iter().find(same) {
                let fineness = field.fineness();
                let why = format!("the {fineness} overlaps the one at character {}", other + 1);
                return refuse(at, why);
            }
            self.dates.push((at, field));
            self.parts.push(Part::Date(field));
            rest = tail;
        }
        Ok(())
    }

    fn counter(
        &mut self,
        at: usize,
        after: usize,
        rest: &str,
        shuffled: bool,
    ) -> Result<(), IdError> {
        if let Some((other, _)) = self.counter {
            let why = format!("the counter overlaps the one at character {}", other + 1);
            return refuse(at, why);
        }
        let (width, radix) = rest.split_once(':').unwrap_or((rest, "decimal"));
        let grows = width.ends_with('+');
        let digits = width.strip_suffix('+').unwrap_or(width);
        let number = digits.parse().ok().filter(|width| (1..=MOST_DIGITS).contains(width));
        let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
        let Some(number) = number.filter(|_| plain) else {
            return refuse(after, format!("the width must be 1 to {MOST_DIGITS} digits"));
        };
        if grows && shuffled {
            return refuse(after, "what is shuffled cannot grow; give it the width of the largest");
        }
        let Some((_, radix)) = Radix::ALL.into_iter().find(|(name, _)| *name == radix) else {
            let names = Radix::ALL.map(|(name, _)| name).join(", ");
            let at = after + width.chars().count() + 1;
            return refuse(at, format!("`{radix}` is not one of {names}"));
        };
        let width = usize::try_from(number).unwrap_or(usize::MAX);
        self.counter = Some((at, Counter { width, grows, radix, shuffled }));
        self.parts.push(Part::Counter);
        Ok(())
    }

    fn check(&mut self, at: usize, after: usize, rest: &str) -> Result<(), IdError> {
        if let Some((other, ..)) = self.check {
            let why = format!("the check symbol overlaps the one at character {}", other + 1);
            return refuse(at, why);
        }
        let (name, covers) = rest.split_once(':').unwrap_or((rest, ""));
        let symbol = match name.parse::<CheckSymbol>() {
            Ok(symbol) => symbol,
            Err(IdError::Invalid { reason, .. }) => return refuse(after, reason),
            Err(other) => return Err(other),
        };
        let all = match covers {
            "" if !rest.ends_with(':') => false,
            "all" => true,
            other => {
                let at = after + name.chars().count() + 1;
                return refuse(at, format!("`{other}` is not `all`"));
            }
        };
        let Some((_, counter)) = self.counter else {
            return refuse(at, "a check symbol has to come after the counter");
        };
        let covers = match symbol {
            CheckSymbol::Damm | CheckSymbol::Luhn => counter.radix == Radix::Decimal,
            CheckSymbol::Mod97 => matches!(counter.radix, Radix::Decimal | Radix::Base36),
            CheckSymbol::Crockford => matches!(counter.radix, Radix::Decimal | Radix::Crockford),
        };
        if !covers {
            let why = format!(
                "{symbol} does not cover these digits of the counter; damm and luhn cover decimal, \
                 mod97 also base36, crockford also crockford"
            );
            return refuse(at, why);
        }
        self.check = Some((at, symbol, all));
        self.parts.push(Part::Check(symbol, all));
        Ok(())
    }

    /// What only the whole can tell.
    fn finish(self, text: &str, length: usize, reset: Reset) -> Result<Pattern, IdError> {
        let Some((at, counter)) = self.counter else {
            return refuse(length, "a counter is missing, such as {n:6}");
        };
        let tells = |field: DateField, fineness| {
            field.fineness() == fineness
                || field == DateField::DayOfYear && fineness == Fineness::Month
        };
        let has = |fineness| self.dates.iter().any(|(_, field)| tells(*field, fineness));
        for (at, field) in &self.dates {
            let missing = field.needs().filter(|needed| !has(*needed));
            if let Some(missing) = missing {
                let why = format!("this part of the date makes no sense without the {missing}");
                return refuse(*at, why);
            }
        }
        let needed = match reset {
            Reset::None => None,
            Reset::Day => Some(Fineness::Day),
            Reset::Month => Some(Fineness::Month),
            Reset::Year => Some(Fineness::Year),
        };
        if let Some(needed) = needed.filter(|needed| !has(*needed)) {
            let why = format!(
                "the counter starts anew each {reset}, and without the {needed} in the pattern its \
                 serials would overlap those of the {reset} before"
            );
            return refuse(at, why);
        }
        if counter.shuffled && counter.size().is_none_or(|size| size > reset.end_of_counters()) {
            let bits = reset.end_of_counters().ilog2() + u32::from(reset == Reset::None);
            return refuse(at, format!("so many digits outgrow the counter's {bits} bits"));
        }
        Ok(Pattern { text: text.into(), parts: self.parts, counter, reset })
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.text).field(&self.reset).finish()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
