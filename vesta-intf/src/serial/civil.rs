//! Civil (calendar) dates, and the periods of a counter.

use std::fmt;
use std::str::FromStr;

use crate::time::{civil_from_days, days_from_civil};
use crate::{IdError, UnixMillis};

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
}

/// When the counter of a serial restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reset {
    /// Never.
    #[default]
    Never,
    /// At the beginning of each day.
    Day,
    /// At the beginning of each month.
    Month,
    /// At the beginning of each year.
    Year,
}

/// Bits of the counter in a position, for a counter that restarts.
const COUNTER_BITS: u32 = 40;
/// Periods use the rest of the 63 bits.
const MAX_PERIOD: u64 = (1 << (63 - COUNTER_BITS)) - 1;

/// A day, month or year with its own counter, as days, months or years since 1970; 0 if the counter
/// never restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(u64);

impl Reset {
    /// All resets.
    pub const ALL: [Reset; 4] = [Self::Never, Self::Day, Self::Month, Self::Year];

    /// Name in configurations and requests.
    pub const fn name(self) -> &'static str {
        match self {
            Reset::Never => "never",
            Reset::Day => "day",
            Reset::Month => "month",
            Reset::Year => "year",
        }
    }

    /// The period of a date.
    pub fn period(self, date: &CivilHour) -> Period {
        let years = date.year.saturating_sub(1970);
        Period(match self {
            Reset::Never => 0,
            Reset::Day => date.days().min(MAX_PERIOD),
            Reset::Month => years * 12 + date.month - 1,
            Reset::Year => years,
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
            Reset::Month => CivilHour {
                month: period % 12 + 1,
                ..january(1970 + period / 12)
            },
            Reset::Year => january(1970 + period),
        }
    }

    /// A period as text: `2026-11-22`, `2026-11`, `2026`; empty if the counter never restarts.
    pub fn show(self, period: Period) -> String {
        let CivilHour {
            year, month, day, ..
        } = self.first_hour(period);
        match self {
            Reset::Never => String::new(),
            Reset::Day => format!("{year:04}-{month:02}-{day:02}"),
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
        f.write_str(self.name())
    }
}

impl FromStr for Reset {
    type Err = IdError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|reset| reset.name() == name)
            .ok_or_else(|| {
                let names = Self::ALL.map(Self::name).join(", ");
                IdError::invalid("reset", format!("`{name}` is not one of {names}"))
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
            for (reset, first, shown) in [
                (Reset::Day, date, format!("{year}-{month:02}-{day:02}")),
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
            error.contains("`daily` is not one of never, day, month, year"),
            "{error}"
        );
    }
}
