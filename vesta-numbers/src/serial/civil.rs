//! Civil (calendar) dates, and the periods of a counter.

use std::fmt;
use std::str::FromStr;

use vesta_intf::inside::{civil_from_days, days_from_civil};
use vesta_intf::{IdError, UnixMillis};

/// An hour of the Gregorian calendar, in any time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CivilHour {
    /// The year, 1970 or later.
    pub year: u64,
    /// 1 to 12.
    pub month: u64,
    /// 1 to 31.
    pub day: u64,
    /// 0 to 23.
    pub hour: u64,
}

impl CivilHour {
    /// The hour of a moment in a time zone this many seconds ahead of UTC. Local times before 1970
    /// saturate at its first hour.
    pub fn at(moment: UnixMillis, seconds_ahead: i32) -> Self {
        let seconds = (moment.0 / 1000).saturating_add_signed(seconds_ahead.into());
        Self {
            hour: seconds / 3600 % 24,
            ..Self::on_day(seconds / 86_400)
        }
    }

    /// The first hour of a day, counted from 1970-01-01.
    pub(super) fn on_day(days: u64) -> Self {
        let (year, month, day) = civil_from_days(days);
        Self {
            year,
            month,
            day,
            hour: 0,
        }
    }

    /// Days since 1970-01-01.
    pub(super) fn days(&self) -> u64 {
        days_from_civil(self.year, self.month, self.day)
    }

    /// The day of the year, 1 to 366.
    pub(super) fn day_of_year(&self) -> u64 {
        self.days() - days_from_civil(self.year, 1, 1) + 1
    }

    /// The quarter, 1 to 4.
    pub(super) const fn quarter(&self) -> u64 {
        (self.month - 1) / 3 + 1
    }

    /// The ISO 8601 week, 1 to 53, and its year: the one of its Thursday.
    pub(super) fn week(&self) -> (u64, u64) {
        let days = self.days();
        let thursday = Self::on_day(days + 3 - (days + MONDAY) % 7);
        (thursday.year, (thursday.day_of_year() - 1) / 7 + 1)
    }

    /// The Monday of an ISO 8601 week. Weeks from 54 on continue in the next year.
    pub(super) fn of_week(year: u64, week: u64) -> Self {
        let fourth = days_from_civil(year, 1, 4); // always in week 1
        let monday = (fourth + week * 7).saturating_sub((fourth + MONDAY) % 7 + 7);
        Self::on_day(monday)
    }
}

/// Days from a Monday to 1970-01-01, a Thursday.
const MONDAY: u64 = 3;

/// Month and day on which a fiscal year begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct YearStart {
    month: u8,
    day: u8,
}

impl YearStart {
    /// A day that every year has, except 1 January, on which the calendar year begins.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `reset`.
    pub fn new(month: u8, day: u8) -> Result<Self, IdError> {
        let days = match month {
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            _ => 0,
        };
        if (1..=days).contains(&day) && (month, day) != (1, 1) {
            return Ok(Self { month, day });
        }
        let reason = "a fiscal year begins on a day that every year has, other than 01-01, such as year:04-01";
        Err(IdError::invalid("reset", reason))
    }

    /// Its day in a year.
    fn in_year(self, year: u64) -> CivilHour {
        CivilHour {
            year,
            month: self.month.into(),
            day: self.day.into(),
            hour: 0,
        }
    }

    /// The first day of the fiscal year that begins in this year; 1970-01-01 for an earlier one.
    pub(super) fn first_hour(self, year: u64) -> CivilHour {
        self.in_year(year).max(CivilHour::on_day(0))
    }

    /// The year in which the fiscal year of a date began.
    pub(super) fn year_of(self, date: &CivilHour) -> u64 {
        date.year - u64::from(*date < self.in_year(date.year))
    }
}

/// `04-01`.
impl fmt::Display for YearStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}-{:02}", self.month, self.day)
    }
}

/// When the counter of a serial restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reset {
    /// Never.
    #[default]
    Never,
    /// At the beginning of each day.
    Day,
    /// At the beginning of each week, on Monday.
    Week,
    /// At the beginning of each month.
    Month,
    /// At the beginning of each quarter of the calendar year.
    Quarter,
    /// At the beginning of each year.
    Year,
    /// At the beginning of each fiscal year.
    FiscalYear(YearStart),
}

/// Bits of the counter in a position, for a counter that restarts.
const COUNTER_BITS: u32 = 40;
/// Periods use the rest of the 63 bits.
const MAX_PERIOD: u64 = (1 << (63 - COUNTER_BITS)) - 1;

/// A day, week, month, quarter or year with its own counter, counted since 1970; 0 if the counter never restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(u64);

impl Reset {
    /// All resets, except those of fiscal years.
    pub const ALL: [Reset; 6] = [
        Self::Never,
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Quarter,
        Self::Year,
    ];

    /// The noun of a period: `day`, `fiscal year`; `never` if there is none.
    pub const fn noun(self) -> &'static str {
        match self {
            Reset::Never => "never",
            Reset::Day => "day",
            Reset::Week => "week",
            Reset::Month => "month",
            Reset::Quarter => "quarter",
            Reset::Year => "year",
            Reset::FiscalYear(_) => "fiscal year",
        }
    }

    /// The period of a date.
    pub fn period(self, date: &CivilHour) -> Period {
        let years = date.year.saturating_sub(1970);
        Period(match self {
            Reset::Never => 0,
            Reset::Day => date.days().min(MAX_PERIOD),
            Reset::Week => ((date.days() + MONDAY) / 7).min(MAX_PERIOD),
            Reset::Month => years * 12 + date.month - 1,
            Reset::Quarter => years * 4 + date.quarter() - 1,
            Reset::Year => years,
            // The first one began in 1969.
            Reset::FiscalYear(start) => (start.year_of(date) + 1).saturating_sub(1970),
        })
    }

    /// The first hour of a period.
    pub fn first_hour(self, Period(period): Period) -> CivilHour {
        let january = |year| CivilHour {
            year,
            month: 1,
            day: 1,
            hour: 0,
        };
        match self {
            Reset::Never => january(1970),
            Reset::Day => CivilHour::on_day(period),
            Reset::Week => CivilHour::on_day((period * 7).saturating_sub(MONDAY)),
            Reset::Quarter => CivilHour {
                month: period % 4 * 3 + 1,
                ..january(1970 + period / 4)
            },
            Reset::FiscalYear(start) => start.first_hour(1969 + period),
            Reset::Month => CivilHour {
                month: period % 12 + 1,
                ..january(1970 + period / 12)
            },
            Reset::Year => january(1970 + period),
        }
    }

    /// A period as text: `2026-11-22`, `2026-W47`, `2026-11`, `2026-Q4`, `2026`, and the first day of a fiscal year;
    /// empty if the counter never restarts.
    pub fn show(self, period: Period) -> String {
        let first = self.first_hour(period);
        let CivilHour {
            year, month, day, ..
        } = first;
        match self {
            Reset::Never => String::new(),
            Reset::Day | Reset::FiscalYear(_) => format!("{year:04}-{month:02}-{day:02}"),
            Reset::Week => {
                let (year, week) = first.week();
                format!("{year:04}-W{week:02}")
            }
            Reset::Quarter => format!("{year:04}-Q{}", first.quarter()),
            Reset::Month => format!("{year:04}-{month:02}"),
            Reset::Year => format!("{year:04}"),
        }
    }

    /// Exclusive upper bound of the counters that fit a position; it is itself a position of the same period.
    pub const fn end_of_counters(self) -> u64 {
        match self {
            Reset::Never => i64::MAX.unsigned_abs(),
            _ => (1 << COUNTER_BITS) - 1,
        }
    }

    /// The position of a counter, which must be below [`end_of_counters`](Self::end_of_counters).
    pub const fn position(self, Period(period): Period, n: u64) -> u64 {
        match self {
            Reset::Never => n,
            _ => period << COUNTER_BITS | n,
        }
    }

    /// The period and the counter of a position.
    pub const fn split(self, position: u64) -> (Period, u64) {
        match self {
            Reset::Never => (Period(0), position),
            _ => (
                Period(position >> COUNTER_BITS),
                position & ((1 << COUNTER_BITS) - 1),
            ),
        }
    }
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reset::FiscalYear(start) => write!(f, "year:{start}"),
            reset => f.write_str(reset.noun()),
        }
    }
}

impl FromStr for Reset {
    type Err = IdError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if let Some((month, day)) = name.strip_prefix("year:").and_then(|it| it.split_once('-')) {
            let two = |text: &str| match text.as_bytes() {
                [b'0'..=b'9', b'0'..=b'9'] => text.parse().unwrap_or(0),
                _ => 0, // refused, as there is no such day
            };
            return YearStart::new(two(month), two(day)).map(Self::FiscalYear);
        }
        let found = Self::ALL.into_iter().find(|reset| reset.noun() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::noun).join(", ");
            let reason = format!("`{name}` is not one of {names}, or year:MM-DD for a fiscal year");
            IdError::invalid("reset", reason)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1970 to 2100, day by day, compared with a calendar that counts the days.
    #[test]
    fn every_day_has_its_date_and_its_periods() {
        let (mut date, mut of_year) = (
            CivilHour {
                year: 1970,
                month: 1,
                day: 1,
                hour: 0,
            },
            1,
        );
        let mut fiscal = date; // the first one began in 1969
        for days in 0..47_847 {
            assert_eq!(CivilHour::on_day(days), date);
            assert_eq!((date.days(), date.day_of_year()), (days, of_year));
            let last = CivilHour { hour: 23, ..date };
            assert_eq!(
                CivilHour::at(UnixMillis(days * 86_400_000 + 86_399_999), 0),
                last
            );
            let CivilHour {
                year, month, day, ..
            } = date;
            if (month, day) == (4, 6) {
                fiscal = date;
            }
            for (reset, first, shown) in [
                (Reset::Day, date, format!("{year}-{month:02}-{day:02}")),
                (
                    Reset::Quarter,
                    CivilHour {
                        day: 1,
                        month: (month - 1) / 3 * 3 + 1,
                        ..date
                    },
                    format!("{year}-Q{}", month.div_ceil(3)),
                ),
                (
                    Reset::FiscalYear(YearStart::new(4, 6).expect("a day")),
                    fiscal,
                    format!("{}-{:02}-{:02}", fiscal.year, fiscal.month, fiscal.day),
                ),
                (
                    Reset::Month,
                    CivilHour { day: 1, ..date },
                    format!("{year}-{month:02}"),
                ),
                (
                    Reset::Year,
                    CivilHour {
                        day: 1,
                        month: 1,
                        ..date
                    },
                    format!("{year}"),
                ),
            ] {
                let period = reset.period(&last);
                assert_eq!(
                    (reset.first_hour(period), reset.show(period)),
                    (first, shown)
                );
                let position = reset.position(period, reset.end_of_counters() - 1);
                assert_eq!(reset.split(position), (period, reset.end_of_counters() - 1));
                assert_eq!(reset.split(position + 1), (period, reset.end_of_counters()));
                assert!(position < reset.position(Period(period.0 + 1), 0));
            }
            let leap = year % 4 == 0 && year != 2100;
            let length = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            of_year += 1;
            date.day += 1;
            if date.day > length {
                (date.month, date.day) = (date.month + 1, 1);
            }
            if date.month > 12 {
                (date.year, date.month, of_year) = (date.year + 1, 1, 1);
            }
        }
    }

    #[test]
    fn an_hour_is_local_to_its_time_zone() {
        let moment = UnixMillis(1_795_363_199_999); // 2026-11-22T15:59:59.999Z
        let evening = CivilHour {
            year: 2026,
            month: 11,
            day: 22,
            hour: 23,
        };
        assert_eq!(CivilHour::at(moment, 8 * 3600), evening);
        let midnight = CivilHour {
            year: 2026,
            month: 11,
            day: 23,
            hour: 0,
        };
        assert_eq!(CivilHour::at(UnixMillis(moment.0 + 1), 8 * 3600), midnight);
        assert_eq!(CivilHour::at(moment, -5 * 3600).hour, 10);
        let first = CivilHour {
            year: 1970,
            month: 1,
            day: 1,
            hour: 0,
        };
        assert_eq!(CivilHour::at(UnixMillis(0), -5 * 3600), first);
    }

    #[test]
    fn reset_names_round_trip() {
        for reset in Reset::ALL {
            assert_eq!(reset.to_string().parse::<Reset>().ok(), Some(reset));
        }
        let error = "daily".parse::<Reset>().expect_err("unknown").to_string();
        assert!(
            error.contains(
                "`daily` is not one of never, day, week, month, quarter, year, or year:MM-DD"
            ),
            "{error}"
        );
        for (name, is_right) in [
            ("year:04-01", true),
            ("year:12-31", true),
            ("year:02-28", true),
        ]
        .into_iter()
        .chain(
            [
                "year:",
                "year:4-1",
                "year:02-29",
                "year:01-01",
                "year:13-01",
                "year:04-31",
                "year:+4-01",
                "year:04-01-1",
            ]
            .map(|it| (it, false)),
        ) {
            let read = name.parse::<Reset>();
            assert_eq!(read.is_ok(), is_right, "{name}");
            assert!(
                read.is_ok_and(|it| it.to_string() == name) || !is_right,
                "{name}"
            );
        }
    }

    /// 1970 to 2100: a week begins on each Monday; its number is that of its Thursday among those of the year.
    #[test]
    fn every_day_has_its_week() {
        let (mut week, mut of_year) = (0, (1970, 1));
        for days in 0..47_847 {
            let date = CivilHour::on_day(days);
            if days % 7 == 4 {
                // 1970-01-05 is a Monday, and its Thursday three days later.
                week += 1;
                let thursday = CivilHour::on_day(days + 3);
                let weeks = (thursday.day_of_year() - 1) / 7 + 1;
                of_year = (thursday.year, weeks);
            }
            let period = Reset::Week.period(&date);
            assert_eq!((period.0, date.week()), (week, of_year), "{date:?}");
            let shown = format!("{}-W{:02}", of_year.0, of_year.1);
            assert_eq!(Reset::Week.show(period), shown);
            let monday = CivilHour::on_day(days.saturating_sub((days + 3) % 7));
            assert_eq!(CivilHour::of_week(of_year.0, of_year.1), monday);
            assert_eq!(Reset::Week.first_hour(period), monday);
        }
        // By the standard and calendars: the last days of a year in week 1, and the first in week 52 or 53.
        for (year, month, day, week) in [
            (2024, 12, 30, (2025, 1)),
            (2021, 1, 3, (2020, 53)),
            (2027, 1, 1, (2026, 53)),
            (2026, 11, 22, (2026, 47)),
        ] {
            let date = CivilHour {
                year,
                month,
                day,
                hour: 0,
            };
            assert_eq!(date.week(), week, "{date:?}");
        }
    }
}
