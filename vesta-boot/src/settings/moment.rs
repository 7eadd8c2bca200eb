//! Human-readable moments: the one parser for flags, files and requests.

use std::ops::RangeInclusive;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};
use vesta_intf::UnixMillis;

/// Accepted forms, for errors.
pub const FORMS: &str = "a moment such as 2026-01-31T12:00:00Z or 2026-01-31T20:00:00+08:00, a day, \
                         month or year in UTC such as 2026-01-31, 2026-01 or 2026, or milliseconds \
                         since 1970";

/// The part of [`FORMS`] that a stored moment cannot have.
const DAYS: &str = ", a day, month or year in UTC such as 2026-01-31, 2026-01 or 2026";

/// Parses a moment; a day, month or year stands for its beginning in UTC.
///
/// # Errors
/// As [`period`].
pub fn moment(text: &str) -> Result<UnixMillis, String> {
    period(text).map(|period| *period.start())
}

/// Parses a moment that is stored: a day, month or year is refused, because it begins at another moment in each zone.
///
/// # Errors
/// As [`period`], or the two usual ways to write the moment.
pub fn instant(text: &str) -> Result<UnixMillis, String> {
    let period = period(text).map_err(|must| must.replace(DAYS, ""))?;
    if period.start() == period.end() {
        return Ok(*period.start());
    }
    let rfc_3339 = period.start().to_string();
    let start = rfc_3339.trim_end_matches(".000Z");
    Err(format!(
        "must say in which zone it begins: {start}Z in UTC, {start}+08:00 in China"
    ))
}

/// The first and the last millisecond of a text: of a whole day, month or year in UTC; equal for RFC
/// 3339 and milliseconds.
///
/// # Errors
/// The required form of the text, or the fault in it.
pub fn period(text: &str) -> Result<RangeInclusive<UnixMillis>, String> {
    let text = text.trim();
    let form: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let (from, until) = match form.as_str() {
        "0000" => dates(&format!("{text}-01-01"), 1.year())?,
        "0000-00" => dates(&format!("{text}-01"), 1.month())?,
        "0000-00-00" => dates(text, 1.day())?,
        _ => {
            let moment = if !form.is_empty() && form.bytes().all(|byte| byte == b'0') {
                milliseconds(text)?
            } else {
                since_1970(timestamp(text)?)?
            };
            return Ok(moment..=moment);
        }
    };
    Ok(from..=UnixMillis(until.0 - 1))
}

/// The beginning of a day in UTC, and the beginning of the next period.
fn dates(day: &str, length: jiff::Span) -> Result<(UnixMillis, UnixMillis), String> {
    let start = |day: Date| {
        let zoned = day
            .to_zoned(TimeZone::UTC)
            .map_err(|error| error.to_string());
        since_1970(zoned?.timestamp())
    };
    let day: Date = day.parse().map_err(|_| format!("must be {FORMS}"))?;
    let next = day
        .checked_add(length)
        .map_err(|_| "must be before the year 9999".to_owned())?;
    Ok((start(day)?, start(next)?))
}

/// Digits only. A short number may be meant as seconds, or as a date without hyphens.
fn milliseconds(text: &str) -> Result<UnixMillis, String> {
    if text.len() < 12 && text != "0" {
        return Err(format!(
            "must be {FORMS} (with at least 12 digits: fewer may be meant as seconds or as a date)"
        ));
    }
    text.parse()
        .map(UnixMillis)
        .map_err(|_| format!("must be at most {}", u64::MAX))
}

fn since_1970(moment: Timestamp) -> Result<UnixMillis, String> {
    let millis = moment.as_nanosecond().div_euclid(1_000_000); // rounded down, like ticks
    u64::try_from(millis)
        .map(UnixMillis)
        .map_err(|_| "must not be before 1970".to_owned())
}

/// RFC 3339, or RFC 9557 with a zone in brackets that agrees with the offset.
fn timestamp(text: &str) -> Result<Timestamp, String> {
    let moment = text
        .parse::<Timestamp>()
        .map_err(|_| match is_local(text) {
            true => format!("must have an offset from UTC: {text}Z in UTC, {text}+08:00 in China"),
            false => format!("must be {FORMS}"),
        })?;
    if text.contains('[') {
        text.parse::<Zoned>()
            .map_err(|_| "must have a known zone in brackets that agrees with its offset")?;
    }
    match is_leap_second(text) {
        true => Err("must not be a leap second: IDs do not count them".to_owned()),
        false => Ok(moment),
    }
}

/// True for a date and a time that lack only the offset.
fn is_local(text: &str) -> bool {
    format!("{text}Z").parse::<Timestamp>().is_ok()
}

/// True if the time has 60 seconds, which jiff reads as 59.
fn is_leap_second(text: &str) -> bool {
    let time = text
        .split_once(['T', 't', ' '])
        .map_or("", |(_, time)| time);
    let end = time
        .find(|c: char| !c.is_ascii_digit() && c != ':')
        .unwrap_or(time.len());
    let digits: String = time[..end].chars().filter(char::is_ascii_digit).collect();
    digits.len() == 6 && digits.ends_with("60")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected seconds are those of `date -u -d … +%s`.
    #[test]
    fn a_moment_reads_the_same_in_each_of_its_forms() {
        for (text, millis) in [
            ("2026-01-01T00:00:00Z", 1_767_225_600_000),
            ("2026-01-01t00:00:00z", 1_767_225_600_000),
            ("2026-01-01 00:00:00Z", 1_767_225_600_000),
            (" 2026-01-01T00:00Z\n", 1_767_225_600_000),
            ("20260101T000000Z", 1_767_225_600_000),
            ("20260101T080000+0800", 1_767_225_600_000),
            ("2026-01-01T08:00:00+08:00", 1_767_225_600_000),
            (
                "2026-01-01T08:00:00+08:00[Asia/Shanghai]",
                1_767_225_600_000,
            ),
            ("2026-01-01T00:00:00Z[Asia/Shanghai]", 1_767_225_600_000),
            ("2025-12-31T20:30:00-03:30", 1_767_225_600_000),
            ("2026-01-01T00:00:00-00:00", 1_767_225_600_000),
            ("2026-01-01T00:00:00.7Z", 1_767_225_600_700),
            ("2026-01-01T00:00:00,7Z", 1_767_225_600_700),
            ("2026-01-01T00:00:00.999999999Z", 1_767_225_600_999),
            ("2024-02-29T23:59:59.123456+00:00", 1_709_251_199_123),
            ("1767225600000", 1_767_225_600_000),
            ("18446744073709551615", u64::MAX),
            ("2026-01-01", 1_767_225_600_000),
            ("2026-01", 1_767_225_600_000),
            ("2026", 1_767_225_600_000),
            ("1970-01-01T00:00:00Z", 0),
            ("0", 0),
        ] {
            assert_eq!(moment(text), Ok(UnixMillis(millis)), "{text}");
        }
    }

    #[test]
    fn any_moment_comes_back_from_each_of_its_forms() {
        let mut random = 1u64;
        for _ in 0..2000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            let millis = i64::try_from((random >> 20) % 8_000_000_000_000).expect("a moment");
            let instant = Timestamp::from_millisecond(millis).expect("before 2224");
            let quarter = i32::try_from(random % 113).expect("small") - 56;
            let offset = jiff::tz::Offset::from_seconds(quarter * 900).expect("up to 14 hours");
            let there = instant.to_zoned(offset.to_time_zone());
            for form in [
                "%FT%H:%M:%S%.f%:z",
                "%F %H:%M:%S%.3f%z",
                "%Y%m%dT%H%M%S%.f%z",
            ] {
                let text = there.strftime(form).to_string();
                let expected = UnixMillis(u64::try_from(millis).expect("after 1970"));
                assert_eq!(moment(&text), Ok(expected), "{text}");
            }
            let day = instant.to_zoned(TimeZone::UTC).strftime("%F").to_string();
            let (day, millis) = (period(&day).expect("a day"), millis.unsigned_abs());
            assert!(day.contains(&UnixMillis(millis)), "{day:?}");
            assert_eq!(day.end().0 - day.start().0, 86_399_999);
        }
    }

    #[test]
    fn a_day_a_month_and_a_year_are_whole() {
        for (text, first, last) in [
            (
                "2024-02-29",
                "2024-02-29T00:00:00.000Z",
                "2024-02-29T23:59:59.999Z",
            ),
            (
                "2024-02",
                "2024-02-01T00:00:00.000Z",
                "2024-02-29T23:59:59.999Z",
            ),
            (
                "2023-12",
                "2023-12-01T00:00:00.000Z",
                "2023-12-31T23:59:59.999Z",
            ),
            (
                "2023",
                "2023-01-01T00:00:00.000Z",
                "2023-12-31T23:59:59.999Z",
            ),
            (
                "2023-01-01T00:00:00Z",
                "2023-01-01T00:00:00.000Z",
                "2023-01-01T00:00:00.000Z",
            ),
        ] {
            let period = period(text).expect(text);
            assert_eq!(
                (&*period.start().to_string(), &*period.end().to_string()),
                (first, last)
            );
        }
    }

    #[test]
    fn a_time_without_an_offset_is_refused_with_the_two_ways_to_write_it() {
        for text in [
            "2024-05-01T20:34:56",
            "2024-05-01 20:34",
            "20240501T203456.5",
        ] {
            let must = moment(text).expect_err(text);
            assert!(
                must.contains(&format!("{text}Z in UTC, {text}+08:00 in China")),
                "{must}"
            );
        }
    }

    #[test]
    fn a_stored_moment_has_an_offset() {
        for text in ["2016-05-20", "2016-05", "2016", " 2016-01-01\n"] {
            let must = instant(text).expect_err(text);
            let start = moment(text).expect(text).to_string().replace(".000Z", "");
            let ways = format!("{start}Z in UTC, {start}+08:00 in China");
            assert!(must.contains(&ways), "{must}");
        }
        for text in ["2016-05-20T00:00:00+08:00", "1463673600000", "0"] {
            assert_eq!(instant(text), moment(text), "{text}");
        }
        assert!(instant("2016-05-20T00:00:00").is_err());
        let must = instant("tomorrow").expect_err("no moment");
        assert!(
            must.starts_with("must be a moment such as") && !must.contains("a day"),
            "{must}"
        );
    }

    #[test]
    fn everything_else_is_refused() {
        for (text, why) in [
            ("", "must be a moment such as"),
            ("tomorrow", "must be a moment such as"),
            ("-1", "must be a moment such as"),
            ("1e12", "must be a moment such as"),
            ("2026-02-29", "must be a moment such as"),
            ("2026-13", "must be a moment such as"),
            ("2026-02-29T00:00:00Z", "must be a moment such as"),
            ("2026-01-01T24:00:00Z", "must be a moment such as"),
            ("2026-01-01T00:00:00+08:60", "must be a moment such as"),
            ("2026-01-01Z", "must be a moment such as"),
            ("2026-01-01+08:00", "must be a moment such as"),
            ("2026-W01-4", "must be a moment such as"),
            ("２026-01-01T00:00:00Z", "must be a moment such as"),
            ("20260131", "fewer may be meant as seconds or as a date"),
            ("1767225600", "fewer may be meant as seconds or as a date"),
            (
                "18446744073709551616",
                "must be at most 18446744073709551615",
            ),
            ("1969-12-31T23:59:59.9995Z", "must not be before 1970"),
            ("1969", "must not be before 1970"),
            ("2016-12-31T23:59:60Z", "must not be a leap second"),
            ("20161231T235960Z", "must not be a leap second"),
            (
                "2026-01-01T08:00:00+09:00[Asia/Shanghai]",
                "agrees with its offset",
            ),
            (
                "2026-01-01T08:00:00+08:00[Mars/Olympus]",
                "must have a known zone",
            ),
        ] {
            let must = moment(text).expect_err(text);
            assert!(must.contains(why), "{text}: {must}");
        }
    }
}
