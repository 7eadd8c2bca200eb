//! Parser of patterns: reads the parts one by one and checks them against each other, so that every serial can
//! be read back and none repeats.

use std::fmt;
use std::iter::Peekable;
use std::str::CharIndices;

use super::Reset;
use super::pattern::{Counter, DateField, Fineness, MOST_DIGITS, Part, Pattern, Radix};
use vesta_intf::CheckSymbol;
use vesta_intf::IdError;

/// Maximum length of a pattern, in characters.
const LONGEST: usize = 128;
impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `pattern`, with the position of the defect: it cannot be parsed, its
    /// serials could not be read back, or those of two periods would be the same.
    pub fn new(text: &str, reset: Reset) -> Result<Self, IdError> {
        let length = text.chars().count();
        if !(1..=LONGEST).contains(&length) {
            return Err(IdError::invalid(
                "pattern",
                "it must have 1 to 128 characters",
            ));
        }
        let mut read = Read::default();
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
                '}' => return refuse(at, "unmatched closing brace; write }} for a literal brace"),
                _ if character.is_control() || character.is_whitespace() => {
                    return refuse(at, "white space and control characters are not allowed");
                }
                _ => read.parts.push(Part::Literal(character)),
            }
        }
        read.finish(text, length, reset)
    }
}

/// An error with its position: characters are counted from 1.
fn refuse<T>(at: usize, why: impl fmt::Display) -> Result<T, IdError> {
    Err(IdError::invalid(
        "pattern",
        format!("at character {}: {why}", at + 1),
    ))
}

/// The text up to the closing brace.
fn inside<'a>(
    text: &'a str,
    at: usize,
    chars: &mut Peekable<CharIndices<'a>>,
) -> Result<&'a str, IdError> {
    let Some((start, _)) = chars.peek().copied() else {
        return refuse(at, "unclosed brace; write {{ for a literal brace");
    };
    for (end, character) in chars.by_ref() {
        match character {
            '}' => return Ok(&text[start..end]),
            '{' => break,
            _ => {}
        }
    }
    refuse(at, "unclosed brace; write {{ for a literal brace")
}

/// A field of the date by its name, or all names.
fn date_field(name: &str) -> Result<DateField, String> {
    let found = DateField::ALL.into_iter().find(|it| it.0 == name);
    let names = || DateField::ALL.map(|(name, _)| name).join(", ");
    found.map(|(_, field)| field).ok_or_else(names)
}

/// The parts read so far, and their positions.
#[derive(Default)]
struct Read {
    parts: Vec<Part>,
    counter: Option<(usize, Counter)>,
    check: Option<(usize, CheckSymbol, bool)>,
    dates: Vec<(usize, DateField)>,
}

impl Read {
    /// Reads the text between two braces.
    fn part(&mut self, at: usize, inside: &str) -> Result<(), IdError> {
        let (name, rest) = inside.split_once(':').unwrap_or((inside, ""));
        let after = at + name.chars().count() + 1;
        match name {
            "date" => self.date(after, rest, date_field),
            "fy" => {
                let mut ends = false;
                self.date(after, rest, |token| {
                    let long = ["yy", "yyyy"].iter().position(|it| *it == token);
                    let long = long.ok_or_else(|| "yy, yyyy".to_owned())? == 1;
                    let field = DateField::Fiscal { ends, long };
                    ends = true;
                    Ok(field)
                })
            }
            "q" | "ww" if rest.is_empty() => self.date(at, name, date_field),
            "n" => self.counter(at, after, rest, false),
            "shuffle" => self.counter(at, after, rest, true),
            "check" => self.check(at, after, rest),
            _ => refuse(
                at,
                format!("`{name}` is not one of date, q, ww, fy, n, shuffle, check"),
            ),
        }
    }

    /// Reads the fields of a date, which `find` looks up by their names.
    fn date(
        &mut self,
        at: usize,
        format: &str,
        mut find: impl FnMut(&str) -> Result<DateField, String>,
    ) -> Result<(), IdError> {
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
            let field = match find(token) {
                Ok(field) => field,
                Err(names) => return refuse(at, format!("`{token}` is not one of {names}")),
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
        let number = digits
            .parse()
            .ok()
            .filter(|width| (1..=MOST_DIGITS).contains(width));
        let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
        let Some(number) = number.filter(|_| plain) else {
            return refuse(
                after,
                format!("the width must be 1 to {MOST_DIGITS} digits"),
            );
        };
        if grows && shuffled {
            return refuse(
                after,
                "a shuffled counter cannot grow; set the width of its largest value",
            );
        }
        let Some((_, radix)) = Radix::ALL.into_iter().find(|(name, _)| *name == radix) else {
            let names = Radix::ALL.map(|(name, _)| name).join(", ");
            let at = after + width.chars().count() + 1;
            return refuse(at, format!("`{radix}` is not one of {names}"));
        };
        let width = usize::try_from(number).unwrap_or(usize::MAX);
        let counter = Counter {
            width,
            grows,
            radix,
            shuffled,
        };
        self.counter = Some((at, counter));
        self.parts.push(Part::Counter);
        Ok(())
    }

    fn check(&mut self, at: usize, after: usize, rest: &str) -> Result<(), IdError> {
        if let Some((other, ..)) = self.check {
            let why = format!(
                "the check symbol overlaps the one at character {}",
                other + 1
            );
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

    /// Checks the parts against each other.
    fn finish(self, text: &str, length: usize, reset: Reset) -> Result<Pattern, IdError> {
        let Some((at, counter)) = self.counter else {
            return refuse(length, "a counter is missing, such as {n:6}");
        };
        let tells = |field: DateField, fineness| {
            let own = field.fineness();
            let of_day = own == Fineness::Day;
            own == fineness
                || field == DateField::DayOfYear && fineness == Fineness::Month
                || (of_day || own == Fineness::Month) && fineness == Fineness::Quarter
        };
        let has = |fineness| self.dates.iter().any(|(_, field)| tells(*field, fineness));
        for (at, field) in &self.dates {
            let missing = field.needs().filter(|needed| !has(*needed));
            if let Some(missing) = missing {
                let why = format!("this part of the date requires the {missing} as well");
                return refuse(*at, why);
            }
        }
        // A week or a fiscal year may begin within a month, so coarse parts beside it could not be read back.
        let is_own =
            |field: DateField| matches!(field.fineness(), Fineness::Week | Fineness::FiscalYear);
        let own = self.dates.iter().find(|(_, field)| is_own(*field));
        let coarse = self.dates.iter().any(|(_, field)| field.is_coarse());
        let several = self
            .dates
            .iter()
            .filter(|(_, field)| is_own(*field))
            .count()
            > 1;
        if let Some((at, field)) = own.filter(|_| (coarse || several) && !has(Fineness::Day)) {
            let (own, day) = (field.fineness(), Fineness::Day);
            return refuse(
                *at,
                format!("beside other parts of the date the {own} requires the {day}"),
            );
        }
        if let (Some((at, _)), false) = (
            self.dates
                .iter()
                .find(|(_, field)| matches!(field, DateField::Fiscal { .. })),
            matches!(reset, Reset::FiscalYear(_)),
        ) {
            return refuse(
                *at,
                "fy needs a counter that restarts each fiscal year, such as year:04-01",
            );
        }
        let needed = match reset {
            Reset::Never => None,
            Reset::Day => Some(Fineness::Day),
            Reset::Month => Some(Fineness::Month),
            Reset::Year => Some(Fineness::Year),
            Reset::Quarter => Some(Fineness::Quarter),
            Reset::Week => Some(Fineness::Week),
            Reset::FiscalYear(_) => Some(Fineness::FiscalYear),
        };
        let is_finer = matches!(reset, Reset::Week | Reset::FiscalYear(_)) && has(Fineness::Day);
        let noun = reset.noun();
        if let Some(needed) = needed.filter(|needed| !has(*needed) && !is_finer) {
            let why = format!(
                "the counter restarts each {noun}; without the {needed} in the pattern its \
                 serials would repeat those of the previous {noun}"
            );
            return refuse(at, why);
        }
        if counter.shuffled && reset != Reset::Never {
            let why = format!(
                "the shuffled order would repeat each {noun}, which reveals how many there were; \
                 a shuffled counter must never restart"
            );
            return refuse(at, why);
        }
        let most = reset.end_of_counters();
        if counter.shuffled && counter.size().is_none_or(|size| size > most) {
            return refuse(at, "this many digits exceed the counter's 63 bits");
        }
        Ok(Pattern {
            text: text.into(),
            parts: self.parts,
            counter,
            reset,
            end: counter.end(most),
        })
    }
}
