//! Formats a counter and a date as a serial, and parses serials.

use super::civil::YearStart;
use super::pattern::{Counter, DateField, Part, Pattern, Radix};
use super::{CivilHour, Reset};
use vesta_intf::{CheckSymbol, IdError, IdText, ParsedSerial};

impl Pattern {
    /// The serial of a counter on a date. For a shuffling pattern the caller shuffles the counter first.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] for `counter` if it does not fit its digits, or for `year` if the pattern
    /// cannot express it: `yy` has room for 2000 to 2099, `yyyy` for years up to 9999.
    pub fn format(&self, date: &CivilHour, counter: u64) -> Result<String, IdError> {
        IdError::check("counter", counter, 0, self.end_of_counters() - 1)?;
        let mut text = Vec::with_capacity(self.parts.len() + 24);
        let Counter { radix, width, .. } = self.counter;
        let mut digits = 0..0;
        for part in &self.parts {
            match *part {
                Part::Literal(character) => push(&mut text, character),
                Part::Date(field) => push_date(&mut text, field, field.number(date, self.start()))?,
                Part::Counter => {
                    let start = text.len();
                    push_digits(&mut text, radix, counter, width);
                    digits = start..text.len();
                }
                Part::Check(method, all) => {
                    let symbols = match (method, radix) {
                        _ if all => method.of_text(&text),
                        // These digits have the same symbols as the number, and those of the number
                        // are cheaper.
                        (CheckSymbol::Crockford, Radix::Crockford)
                        | (
                            CheckSymbol::Damm | CheckSymbol::Luhn | CheckSymbol::Mod97,
                            Radix::Decimal,
                        ) => method.of_number(counter),
                        _ => method.of_text(&text[digits.clone()]),
                    };
                    text.extend_from_slice(symbols.as_bytes());
                }
            }
        }
        Ok(String::from_utf8(text).expect("characters and ASCII digits"))
    }

    /// Parses a serial. Letters used as digits may be in either case where the digits allow it; for
    /// Crockford's, I and L count as 1, O as 0.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `serial`, with the position of the mismatch, or if its check symbol is wrong.
    pub fn parse(&self, serial: &str) -> Result<ParsedSerial, IdError> {
        let characters: Vec<char> = serial.chars().collect();
        let width = self.counter_width(characters.len())?;
        let mut read = Read {
            rest: &characters,
            at: 0,
        };
        let (mut fields, mut counter) = (Vec::new(), 0);
        let mut checks = None;
        for part in &self.parts {
            match *part {
                Part::Literal(literal) => read.literal(literal)?,
                Part::Date(field) => fields.push((read.at, field, read.date(field)?)),
                Part::Counter => counter = read.counter(self.counter, width)?,
                Part::Check(method, _) => {
                    checks = Some((method, read.at, read.take(method.count()).to_vec()));
                }
            }
        }
        let date = date_of(&fields, self.start())?;
        // Formatting it again catches every alternative spelling.
        let right: Vec<char> = self
            .format(&date, counter)
            .map_err(invalid)?
            .chars()
            .collect();
        if let Some((method, at, given)) = &checks {
            let given: String = given.iter().collect();
            let right: String = right.iter().skip(*at).take(method.count()).collect();
            if !method.agrees(&given, &right) {
                return Err(method.wrong("serial"));
            }
        }
        if right.len() != characters.len() {
            return Err(IdError::invalid("serial", "its counter has leading zeros"));
        }
        Ok(ParsedSerial {
            date: shown(&fields, &date, self.reset()),
            period: Some(self.reset().show(self.reset().period(&date))).filter(|it| !it.is_empty()),
            counter,
            check: checks.map(|(method, ..)| method),
        })
    }

    /// Begin of the fiscal year, if the counter restarts with it.
    const fn start(&self) -> Option<YearStart> {
        match self.reset() {
            Reset::FiscalYear(start) => Some(start),
            _ => None,
        }
    }

    /// Width of the counter in a serial of this length: everything else has a fixed width.
    fn counter_width(&self, length: usize) -> Result<usize, IdError> {
        let others = self.parts.iter().map(|part| match part {
            Part::Literal(_) => 1,
            Part::Date(field) => field.width(),
            Part::Counter => 0,
            Part::Check(method, _) => method.count(),
        });
        let others: usize = others.sum();
        let Counter { width, grows, .. } = self.counter;
        let found = length.saturating_sub(others);
        if found == width || grows && found > width {
            return Ok(found);
        }
        let more = if grows { "or more " } else { "" };
        let expected = others + width;
        let reason = format!(
            "a serial of {self} has {expected} {more}characters, such as {}; this one has {length}",
            self.example()
        );
        Err(IdError::invalid("serial", reason))
    }

    /// The first serial of 2026-11-22, for messages.
    fn example(&self) -> String {
        let date = CivilHour {
            year: 2026,
            month: 11,
            day: 22,
            hour: 9,
        };
        self.format(&date, 1).unwrap_or_default()
    }
}

fn invalid(error: IdError) -> IdError {
    IdError::invalid("serial", error.to_string())
}

#[inline]
fn push(text: &mut Vec<u8>, character: char) {
    match u8::try_from(character) {
        Ok(byte) if byte.is_ascii() => text.push(byte),
        _ => text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

#[inline]
fn push_date(text: &mut Vec<u8>, field: DateField, number: u64) -> Result<(), IdError> {
    let number = match field {
        of_century if of_century.is_of_century() => {
            IdError::check("year", number, 2000, 2099)?;
            number - 2000
        }
        year if year.width() == 4 => {
            IdError::check("year", number, 0, 9999)?;
            number
        }
        _ => number,
    };
    match u8::try_from(number) {
        Ok(number @ 0..100) if field.width() == 2 => {
            text.extend_from_slice(&[b'0' + number / 10, b'0' + number % 10]);
        }
        _ => push_digits(text, Radix::Decimal, number, field.width()),
    }
    Ok(())
}

/// Writes a number with at least `width` digits; `width` is at most 20.
#[inline]
fn push_digits(text: &mut Vec<u8>, radix: Radix, number: u64, width: usize) {
    let digits = match radix {
        Radix::Decimal => IdText::of::<10>(radix.digits(), number, width),
        Radix::Base36 => IdText::of::<36>(radix.digits(), number, width),
        Radix::Base62 => IdText::of::<62>(radix.digits(), number, width),
        Radix::Crockford => IdText::of::<32>(radix.digits(), number, width),
    };
    text.extend_from_slice(digits.as_bytes());
}

/// The characters still to be read.
struct Read<'a> {
    rest: &'a [char],
    at: usize,
}

impl<'a> Read<'a> {
    /// The next characters; the length of the serial has been checked.
    fn take(&mut self, count: usize) -> &'a [char] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        (self.rest, self.at) = (rest, self.at + count);
        taken
    }

    fn refuse<T>(at: usize, found: char, expected: impl std::fmt::Display) -> Result<T, IdError> {
        let reason = format!("character {} is {found:?}, but must be {expected}", at + 1);
        Err(IdError::invalid("serial", reason))
    }

    fn literal(&mut self, literal: char) -> Result<(), IdError> {
        let at = self.at;
        match self.take(1) {
            [found] if *found == literal => Ok(()),
            [found, ..] => Self::refuse(at, *found, format_args!("{literal:?}")),
            [] => Ok(()),
        }
    }

    fn date(&mut self, field: DateField) -> Result<u64, IdError> {
        let at = self.at;
        let mut number = 0;
        for (i, found) in self.take(field.width()).iter().enumerate() {
            match found.to_digit(10) {
                Some(digit) => number = number * 10 + u64::from(digit),
                None => return Self::refuse(at + i, *found, "a digit of the date"),
            }
        }
        Ok(number)
    }

    fn counter(&mut self, counter: Counter, width: usize) -> Result<u64, IdError> {
        let at = self.at;
        let digits = counter.radix.digits();
        let mut number = Some(0u64);
        for (i, found) in self.take(width).iter().enumerate() {
            let Some(value) = digits.value(*found) else {
                return Self::refuse(at + i, *found, "a digit of the counter");
            };
            number = number
                .and_then(|number| number.checked_mul(digits.symbols.len() as u64))
                .and_then(|number| number.checked_add(value.into()));
        }
        number.ok_or_else(|| IdError::invalid("serial", "its counter has more than 64 bits"))
    }
}

/// The date of the fields of a serial; a field that it does not have is the first.
fn date_of(
    fields: &[(usize, DateField, u64)],
    start: Option<YearStart>,
) -> Result<CivilHour, IdError> {
    let refuse = |at: usize, what: &str, found: u64| {
        let reason = format!("at character {}: {what} {found} does not exist", at + 1);
        Err(IdError::invalid("serial", reason))
    };
    let mut date = CivilHour {
        year: 1970,
        month: 1,
        day: 1,
        hour: 0,
    };
    let (mut of_year, mut quarter, mut week) = (None, None, (None, None));
    let mut fiscal = None;
    for &(at, field, found) in fields {
        match field {
            DateField::Quarter if !(1..=4).contains(&found) => return refuse(at, "quarter", found),
            DateField::Quarter => quarter = Some(found),
            DateField::Week if !(1..=53).contains(&found) => return refuse(at, "week", found),
            DateField::Week => week.1 = Some(found),
            DateField::WeekYear | DateField::Fiscal { long: true, .. } if found < 1970 => {
                return refuse(at, "year", found);
            }
            DateField::WeekYear => week.0 = Some(found),
            DateField::WeekYearOfCentury => week.0 = Some(2000 + found),
            DateField::Fiscal { ends: true, .. } => {}
            DateField::Fiscal { long, .. } => {
                fiscal = Some(found + if long { 0 } else { 2000 });
            }
            DateField::YearOfCentury => date.year = 2000 + found,
            DateField::Year if found < 1970 => return refuse(at, "year", found),
            DateField::Year => date.year = found,
            DateField::Month if !(1..=12).contains(&found) => return refuse(at, "month", found),
            DateField::Month => date.month = found,
            DateField::Day if found == 0 => return refuse(at, "day", found),
            DateField::Day => date.day = found,
            DateField::DayOfYear => of_year = Some((at, found)),
            DateField::Hour if found > 23 => return refuse(at, "hour", found),
            DateField::Hour => date.hour = found,
        }
    }
    let has = |wanted| fields.iter().find(|(_, field, _)| *field == wanted);
    let is_calendar = fields.iter().any(|(_, field, _)| field.is_coarse());
    match (week, fiscal.zip(start), quarter) {
        _ if is_calendar && has(DateField::Month).is_some() => {}
        (_, _, Some(quarter)) if is_calendar => date.month = quarter * 3 - 2,
        _ if is_calendar => {}
        ((Some(year), Some(week)), _, _) => date = CivilHour::of_week(year, week),
        (_, Some((year, start)), _) => date = start.first_hour(year),
        _ => {}
    }
    let given = date;
    let first = CivilHour {
        month: 1,
        day: 1,
        ..date
    };
    let days = match of_year {
        Some((at, 0)) => return refuse(at, "day", 0),
        Some((_, found)) => first.days() + found - 1,
        None => date.days(),
    };
    let date = CivilHour {
        hour: date.hour,
        ..CivilHour::on_day(days)
    };
    // A day beyond the end of its month or year moves into the next.
    let place = has(DateField::Day).or(has(DateField::DayOfYear));
    let moved =
        date.year != given.year || has(DateField::Month).is_some() && date.month != given.month;
    match place {
        Some(&(at, _, found)) if moved => return refuse(at, "day", found),
        _ => {}
    }
    // Each field must be that of the date: a year may have no week 53, and a date has one quarter.
    let differs = |(_, field, found): &&(usize, DateField, u64)| {
        let century = if field.is_of_century() { 2000 } else { 0 };
        field.number(&date, start) != found + century
    };
    match fields.iter().find(differs) {
        Some((at, field, _)) => {
            let (at, what) = (at + 1, field.fineness());
            let reason = format!("at character {at}: the {what} does not match the date");
            Err(IdError::invalid("serial", reason))
        }
        None => Ok(date),
    }
}

/// The date, as precisely as these fields contain it.
fn shown(fields: &[(usize, DateField, u64)], date: &CivilHour, of_serial: Reset) -> Option<String> {
    let has = |wanted: &[DateField]| fields.iter().any(|(_, field, _)| wanted.contains(field));
    if fields.is_empty() {
        return None;
    }
    let CivilHour { hour, .. } = date;
    let of_day = has(&[DateField::Day, DateField::DayOfYear]);
    let reset = if of_day {
        Reset::Day
    } else if has(&[DateField::Month]) {
        Reset::Month
    } else if has(&[DateField::Quarter]) {
        Reset::Quarter
    } else if has(&[DateField::Week]) {
        Reset::Week
    } else if has(&[DateField::YearOfCentury, DateField::Year]) {
        Reset::Year
    } else {
        of_serial
    };
    let day = reset.show(reset.period(date));
    Some(if has(&[DateField::Hour]) {
        format!("{day}T{hour:02}")
    } else {
        day
    })
}
