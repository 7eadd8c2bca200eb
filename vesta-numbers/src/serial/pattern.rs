//! Patterns of serials, and their parts.

use std::fmt;

use super::civil::YearStart;
use super::{CivilHour, Reset};
use vesta_intf::CheckSymbol;
use vesta_intf::inside::{BASE36, BASE62, CROCKFORD, DECIMAL, Digits};

/// The form of a tag's serials, and when their counter restarts.
///
/// | part | stands for |
/// |---|---|
/// | `{date:FORMAT}` | the date: `yy`, `yyyy`, `MM`, `dd`, `DDD` (day of the year), `HH`, and non-letters |
/// | `{q}` | the quarter of the year, 1 to 4 |
/// | `{ww}` | the ISO 8601 week, with `{date:YYYY}` or `{date:YY}` for the year that it belongs to |
/// | `{fy:yy-yy}` | the years in which the fiscal year begins and ends, or the first alone; also `yyyy` |
/// | `{n:W}` | the counter in `W` digits; a counter that does not fit is an error |
/// | `{n:W+}` | the same, but it grows |
/// | `{n:W:DIGITS}` | the same in `decimal`, `base36`, `base62` or `crockford` digits |
/// | `{shuffle:W}` | a number of `W` digits that does not reveal the counter; needs a key, and no reset |
/// | `{check:METHOD}` | check symbol of the formatted counter: [`damm`, `mod97`, `crockford`, `luhn`](CheckSymbol) |
/// | `{check:METHOD:all}` | check symbol of everything before it |
/// | `{{`, `}}` | braces |
///
/// ```
/// use vesta_numbers::serial::{CivilHour, Pattern, Reset};
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
    pub(super) text: Box<str>,
    pub(super) parts: Vec<Part>,
    pub(super) counter: Counter,
    pub(super) reset: Reset,
    /// Exclusive upper bound of the counters.
    pub(super) end: u64,
}

/// A piece of a serial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Literal(char),
    Date(DateField),
    Counter,
    /// Check symbol of the counter, or of everything before it.
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
    Quarter,
    /// Of ISO 8601, with the year of its Thursday.
    Week,
    WeekYearOfCentury,
    WeekYear,
    /// The year in which the fiscal year begins, or ends, in 4 digits or 2.
    Fiscal {
        ends: bool,
        long: bool,
    },
}

impl DateField {
    pub(super) const ALL: [(&'static str, Self); 10] = [
        ("yy", Self::YearOfCentury),
        ("yyyy", Self::Year),
        ("MM", Self::Month),
        ("dd", Self::Day),
        ("DDD", Self::DayOfYear),
        ("HH", Self::Hour),
        ("q", Self::Quarter),
        ("ww", Self::Week),
        ("YY", Self::WeekYearOfCentury),
        ("YYYY", Self::WeekYear),
    ];

    pub(super) const fn width(self) -> usize {
        match self {
            Self::Year | Self::WeekYear | Self::Fiscal { long: true, .. } => 4,
            Self::DayOfYear => 3,
            Self::Quarter => 1,
            _ => 2,
        }
    }

    /// The field without which this one means nothing; `None` for a year.
    pub(super) const fn needs(self) -> Option<Fineness> {
        match self {
            Self::YearOfCentury | Self::Year | Self::Fiscal { .. } => None,
            Self::Month | Self::DayOfYear | Self::Quarter => Some(Fineness::Year),
            Self::Week => Some(Fineness::WeekYear),
            // Else it would be confused with the calendar year.
            Self::WeekYearOfCentury | Self::WeekYear => Some(Fineness::Week),
            Self::Day => Some(Fineness::Month),
            Self::Hour => Some(Fineness::Day),
        }
    }

    pub(super) const fn fineness(self) -> Fineness {
        match self {
            Self::YearOfCentury | Self::Year => Fineness::Year,
            Self::Month => Fineness::Month,
            Self::Day | Self::DayOfYear => Fineness::Day,
            Self::Hour => Fineness::Hour,
            Self::Quarter => Fineness::Quarter,
            Self::Week => Fineness::Week,
            Self::WeekYearOfCentury | Self::WeekYear => Fineness::WeekYear,
            Self::Fiscal { ends: false, .. } => Fineness::FiscalYear,
            Self::Fiscal { ends: true, .. } => Fineness::FiscalEnd,
        }
    }

    /// Its number on a date: years in full. `start` is that of the fiscal year, which the reset defines.
    pub(super) fn number(self, date: &CivilHour, start: Option<YearStart>) -> u64 {
        match self {
            Self::YearOfCentury | Self::Year => date.year,
            Self::Month => date.month,
            Self::Day => date.day,
            Self::DayOfYear => date.day_of_year(),
            Self::Hour => date.hour,
            Self::Quarter => date.quarter(),
            Self::Week => date.week().1,
            Self::WeekYearOfCentury | Self::WeekYear => date.week().0,
            Self::Fiscal { ends, .. } => {
                start.map_or(date.year, |start| start.year_of(date)) + u64::from(ends)
            }
        }
    }

    /// True if two digits stand for a year.
    pub(super) const fn is_of_century(self) -> bool {
        matches!(
            self,
            Self::YearOfCentury | Self::WeekYearOfCentury | Self::Fiscal { long: false, .. }
        )
    }

    /// True if it is a part of the calendar date that is coarser than a day.
    pub(super) const fn is_coarse(self) -> bool {
        matches!(
            self.fineness(),
            Fineness::Year | Fineness::Quarter | Fineness::Month
        )
    }
}

/// The precision of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fineness {
    Year,
    Quarter,
    Month,
    Day,
    Hour,
    WeekYear,
    Week,
    FiscalYear,
    FiscalEnd,
}

impl fmt::Display for Fineness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fineness::Year => "year (yy or yyyy)",
            Fineness::Month => "month (MM)",
            Fineness::Day => "day (dd or DDD)",
            Fineness::Hour => "hour (HH)",
            Fineness::Quarter => "quarter (q)",
            Fineness::WeekYear => "year of the week (YY or YYYY)",
            Fineness::Week => "week (ww)",
            Fineness::FiscalYear => "fiscal year (fy)",
            Fineness::FiscalEnd => "end of the fiscal year (fy)",
        })
    }
}

/// Format of the counter.
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
    pub(super) const ALL: [(&'static str, Self); 4] = [
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

/// Maximum digits of a counter; in every radix they reach the end of 63 bits or beyond.
pub(super) const MOST_DIGITS: u64 = 18;

impl Pattern {
    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// When the counter restarts.
    pub const fn reset(&self) -> Reset {
        self.reset
    }

    /// True if the counter is written as another number, which depends on a key.
    pub const fn is_shuffled(&self) -> bool {
        self.counter.shuffled
    }

    /// True if serials contain a date.
    pub fn has_date(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Date(_)))
    }

    /// Exclusive upper bound of the counters that can be written.
    pub const fn end_of_counters(&self) -> u64 {
        self.end
    }
}

impl Counter {
    /// Exclusive upper bound of the counters that fit both the width and a position, which holds
    /// counters below `most`.
    pub(super) fn end(self, most: u64) -> u64 {
        match self.size() {
            Some(size) if !self.grows => size.min(most),
            _ => most,
        }
    }

    /// Number of counters that fit the width; `None` if that exceeds 64 bits.
    pub(super) fn size(self) -> Option<u64> {
        (self.radix.digits().symbols.len() as u64).checked_pow(u32::try_from(self.width).ok()?)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern")
            .field(&self.text)
            .field(&self.reset)
            .finish()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
