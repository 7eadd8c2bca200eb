//! The date of a moment in a time zone.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use vesta_intf::{IdError, UnixMillis};

use super::CivilHour;

use vesta_service::inside::sync::{AtomicU64, Ordering};

/// A time zone of the IANA database bundled with this program: the same on every host.
pub(super) struct Zone {
    zone: TimeZone,
    /// A quarter of an hour since 1970, and the zone's local hour during all of it:
    ///
    /// | bits | content |
    /// |---|---|
    /// | 63 to 32 | quarters of an hour since 1970 |
    /// | 31 to 14 | year |
    /// | 13 to 10 | month |
    /// | 9 to 5 | day |
    /// | 4 to 0 | hour |
    cached: AtomicU64,
}

const QUARTER: u64 = 900_000;
/// Number of quarters that fit a cached word; the last one means "none".
const QUARTERS: u64 = u32::MAX as u64;
const NOTHING: u64 = u64::MAX;

impl Zone {
    /// The zone with this name.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `zone` if it does not exist.
    pub(super) fn new(name: &str) -> Result<Self, IdError> {
        let zone = TimeZoneDatabase::bundled().get(name).map_err(|_| {
            let name: String = name.chars().take(64).collect();
            let reason =
                format!("`{name}` is not a time zone; it must be like Asia/Shanghai or UTC");
            IdError::invalid("zone", reason)
        })?;
        Ok(Self {
            zone,
            cached: AtomicU64::new(NOTHING),
        })
    }

    /// The local hour of a moment in the zone.
    pub(super) fn hour(&self, moment: UnixMillis) -> CivilHour {
        let quarter = moment.0 / QUARTER;
        // Relaxed: the word is self-contained.
        let cached = self.cached.load(Ordering::Relaxed);
        if cached >> 32 == quarter && quarter < QUARTERS {
            return unpacked(cached);
        }
        let (seconds, lasting) = self.look_up(moment);
        let hour = CivilHour::at(moment, seconds);
        if lasting && quarter < QUARTERS {
            let start = quarter * QUARTER;
            let edges = [start, start + QUARTER - 1];
            if edges.map(|edge| CivilHour::at(UnixMillis(edge), seconds)) == [hour; 2] {
                let word = quarter << 32 | packed(&hour);
                self.cached.store(word, Ordering::Relaxed);
            }
        }
        hour
    }

    /// The zone's offset to UTC in seconds, and whether it applies to the whole quarter of an hour.
    fn look_up(&self, moment: UnixMillis) -> (i32, bool) {
        let at = |millis: u64| {
            i64::try_from(millis)
                .ok()
                .and_then(|it| Timestamp::from_millisecond(it).ok())
        };
        let start = moment.0 - moment.0 % QUARTER;
        let (Some(now), Some(start), Some(end)) =
            (at(moment.0), at(start), at(start.saturating_add(QUARTER)))
        else {
            return (0, false); // beyond the year 9999
        };
        let next = self.zone.following(start).next();
        let lasting = next.is_none_or(|next| next.timestamp() >= end);
        (self.zone.to_offset(now).seconds(), lasting)
    }
}

/// The lower half of the cached word. Years within its quarters have less than 18 bits.
const fn packed(hour: &CivilHour) -> u64 {
    hour.year << 14 | hour.month << 10 | hour.day << 5 | hour.hour
}

const fn unpacked(word: u64) -> CivilHour {
    CivilHour {
        year: word >> 14 & 0x3_ffff,
        month: word >> 10 & 0xf,
        day: word >> 5 & 0x1f,
        hour: word & 0x1f,
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.zone.iana_name().unwrap_or("unknown"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> UnixMillis {
        let moment: Timestamp = text.parse().expect("RFC 3339");
        UnixMillis(moment.as_millisecond().cast_unsigned())
    }

    #[test]
    fn hours_are_local_even_where_clocks_change() {
        for (name, moment, expected) in [
            (
                "Asia/Shanghai",
                "2026-11-22T15:59:59.999Z",
                (2026, 11, 22, 23),
            ),
            ("Asia/Shanghai", "2026-11-22T16:00:00Z", (2026, 11, 23, 0)),
            ("Europe/Berlin", "2026-03-29T00:59:59Z", (2026, 3, 29, 1)), // summer time begins
            ("Europe/Berlin", "2026-03-29T01:00:00Z", (2026, 3, 29, 3)),
            ("Europe/Berlin", "2026-10-25T00:59:59Z", (2026, 10, 25, 2)), // and ends
            ("Europe/Berlin", "2026-10-25T01:00:00Z", (2026, 10, 25, 2)),
            ("America/St_Johns", "2010-11-07T02:30:59Z", (2010, 11, 7, 0)), // set back at 00:01
            (
                "America/St_Johns",
                "2010-11-07T02:31:00Z",
                (2010, 11, 6, 23),
            ), // back to the day before
            ("Africa/Cairo", "2026-04-23T21:59:59Z", (2026, 4, 23, 23)),    // midnight is skipped
            ("Africa/Cairo", "2026-04-23T22:00:00Z", (2026, 4, 24, 1)),
            ("Pacific/Apia", "2011-12-30T09:59:59Z", (2011, 12, 29, 23)), // a day is skipped
            ("Pacific/Apia", "2011-12-30T10:00:00Z", (2011, 12, 31, 0)),
            ("UTC", "2024-02-29T00:00:00Z", (2024, 2, 29, 0)),
        ] {
            let zone = Zone::new(name).expect(name);
            let (year, month, day, hour) = expected;
            let expected = CivilHour {
                year,
                month,
                day,
                hour,
            };
            for _ in 0..2 {
                assert_eq!(zone.hour(at(moment)), expected, "{name} {moment}");
                zone.hour(at("2026-07-01T12:00:00Z")); // evicts the cached quarter of an hour
            }
        }
    }

    /// Each quarter of an hour of 2009 to 2026, in both orders, compared with jiff.
    #[test]
    fn cached_hours_never_differ_from_looked_up_ones() {
        for name in [
            "Europe/Berlin",
            "America/St_Johns",
            "Australia/Lord_Howe",
            "Asia/Kathmandu",
        ] {
            let zone = Zone::new(name).expect(name);
            let full = std::env::var_os("VESTA_TEST_FULL").is_some();
            let first = if full {
                "2009-01-01T00:00:00Z"
            } else {
                "2024-12-31T00:00:00Z"
            };
            let (first, last) = (at(first).0, at("2026-12-31T00:00:00Z").0);
            for quarter in (first..last).step_by(900_000).chain([last, first]) {
                for moment in [
                    quarter,
                    quarter + 59_999,
                    quarter + 60_000,
                    quarter + 899_999,
                ] {
                    let expected =
                        CivilHour::at(UnixMillis(moment), zone.look_up(UnixMillis(moment)).0);
                    assert_eq!(zone.hour(UnixMillis(moment)), expected, "{name} {moment}");
                }
            }
        }
    }

    #[test]
    fn an_unknown_zone_is_refused_and_far_moments_do_no_harm() {
        let said = Zone::new("Asia/Shanghaai")
            .expect_err("unknown")
            .to_string();
        assert_eq!(
            said,
            "zone: `Asia/Shanghaai` is not a time zone; it must be like Asia/Shanghai or UTC"
        );
        let zone = Zone::new("Asia/Shanghai").expect("known");
        assert!(zone.hour(UnixMillis(u64::MAX)).year > 500_000_000);
        assert_eq!(zone.hour(UnixMillis(0)).hour, 8);
    }
}
