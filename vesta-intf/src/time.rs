//! Moments and units of time. Values only: this module never reads a clock.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// The same moment as a [`SystemTime`].
    pub fn to_system_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0)
    }

    /// Milliseconds from `earlier` to this moment; `None` if this moment is before `earlier`.
    pub const fn since(self, earlier: UnixMillis) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }
}

/// RFC 3339 in UTC: `2015-01-01T00:00:00.000Z`.
impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, rest) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = civil_from_days(days);
        let (seconds, millis) = (rest / 1000, rest % 1000);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{millis:03}Z",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )
    }
}

/// Year, month and day of the Gregorian calendar, from days since 1970-01-01.
/// Counts in 400-year eras of 146,097 days that begin on 1 March, so that the leap day comes last.
pub fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468; // 0000-03-01
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Days since 1970-01-01 of a date in 1970 or later: the inverse of [`civil_from_days`].
pub fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let (year, from_march) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Unit of a layout's time field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum TimeUnit {
    /// One second.
    Second,
    /// Ten milliseconds.
    TenMillis,
    /// One millisecond.
    Millisecond,
    /// Ten microseconds. Moments have millisecond precision, so no generator can use this unit.
    TenMicros,
    /// One microsecond, likewise.
    Microsecond,
}

impl TimeUnit {
    /// The length of one tick in microseconds.
    pub const fn micros(self) -> u64 {
        match self {
            TimeUnit::Second => 1_000_000,
            TimeUnit::TenMillis => 10_000,
            TimeUnit::Millisecond => 1000,
            TimeUnit::TenMicros => 10,
            TimeUnit::Microsecond => 1,
        }
    }

    /// The length of one tick in whole milliseconds; 1 for a shorter one.
    pub const fn millis(self) -> u64 {
        match self.micros() / 1000 {
            0 => 1,
            millis => millis,
        }
    }

    /// Ticks per millisecond; 1 if a tick is a millisecond or longer.
    pub const fn per_milli(self) -> u64 {
        match 1000 / self.micros() {
            0 => 1,
            ticks => ticks,
        }
    }

    /// Number of whole ticks in a span of milliseconds; saturates at [`u64::MAX`].
    pub(crate) const fn ticks_in(self, millis: u64) -> u64 {
        (millis / self.millis()).saturating_mul(self.per_milli())
    }

    /// Milliseconds of a number of ticks, rounded down; `None` on overflow.
    pub(crate) const fn millis_in(self, ticks: u64) -> Option<u64> {
        (ticks / self.per_milli()).checked_mul(self.millis())
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeUnit::Second => "second",
            TimeUnit::TenMillis => "10 ms",
            TimeUnit::Millisecond => "millisecond",
            TimeUnit::TenMicros => "10 µs",
            TimeUnit::Microsecond => "microsecond",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_match_the_calendar() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_420_041_600_000, "2014-12-31T16:00:00.000Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (4_102_444_800_000, "2100-01-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(UnixMillis(millis).to_string(), text);
        }
    }
}
