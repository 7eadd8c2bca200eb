//! Values in requests: whole numbers, and moments in milliseconds or RFC 3339.

use jiff::Timestamp;
use vesta_intf::UnixMillis;

use crate::problem::{Problem, quoted};

/// Parses a whole number: decimal digits only, no sign, no blanks, nothing clamped.
pub(crate) fn number(name: &str, text: &str, min: u64, max: u64) -> Result<u64, Problem> {
    let is_number = is_digits(text);
    // Digits only, so what does not parse is beyond 64 bits.
    let value = text.parse().ok().filter(|value| is_number && (min..=max).contains(value));
    value.ok_or_else(|| {
        let is = shown(text);
        let detail = format!("{name} must be a whole number {min} to {max}, but is {is}");
        match is_number {
            true => Problem::out_of_range(name, detail),
            false => Problem::invalid(name, detail),
        }
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn shown(text: &str) -> String {
    if text.is_empty() { "empty".to_owned() } else { quoted(text) }
}

/// Description of a valid moment, for errors.
pub(crate) const A_MOMENT: &str =
    "milliseconds since 1970, or RFC 3339 with its offset such as 2026-01-01T00:00:00Z";

/// Parses a moment: digits alone are milliseconds since 1970, everything else is RFC 3339. A time
/// without an offset would mean another moment on every host, so it is refused. Fractions of a
/// millisecond are rounded down, as the ticks of a layout are.
pub(crate) fn moment(name: &str, text: &str) -> Result<UnixMillis, Problem> {
    if is_digits(text) {
        return number(name, text, 0, u64::MAX).map(UnixMillis);
    }
    let moment = is_rfc_3339(text).then(|| text.parse::<Timestamp>().ok()).flatten();
    let Some(moment) = moment else {
        // In a query, + means a space.
        let hint = if text.contains(' ') { "; in a URL + is written %2B" } else { "" };
        let detail = format!("{name} must be {A_MOMENT}, but is {}{hint}", shown(text));
        return Err(Problem::invalid(name, detail));
    };
    u64::try_from(moment.as_nanosecond().div_euclid(1_000_000)).map(UnixMillis).map_err(|_| {
        let detail = format!("{name} must not be before 1970, but is {}", quoted(text));
        Problem::out_of_range(name, detail)
    })
}

/// True for the form of RFC 3339: `2026-01-01T00:00:00`, at most nine digits of a fraction,
/// `Z` or an offset. jiff, which reads more than that, does the calendar. No leap seconds: IDs do not
/// count them.
fn is_rfc_3339(text: &str) -> bool {
    let Some((date_time, rest)) = text.split_at_checked("2026-01-01T00:00:00".len()) else {
        return false;
    };
    let offset = match rest.strip_prefix('.') {
        None => rest,
        Some(fraction) => {
            let offset = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if !(1..=9).contains(&(fraction.len() - offset.len())) {
                return false;
            }
            offset
        }
    };
    let zone = match offset.strip_prefix(['+', '-']) {
        None => matches!(offset, "Z" | "z"),
        Some(hours) => has_form(hours, "00:00") && hours < "24",
    };
    has_form(date_time, "0000-00-00T00:00:00") && !date_time.ends_with("60") && zone
}

/// True if the text has digits where the form has zeros, and otherwise the same characters in either
/// case.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            form => byte.eq_ignore_ascii_case(&form),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_in_range_and_nothing_else() {
        assert_eq!(number("id", "0", 0, u64::MAX).unwrap(), 0);
        assert_eq!(number("id", "18446744073709551615", 0, u64::MAX).unwrap(), u64::MAX);
        assert_eq!(number("id", "007", 0, 7).unwrap(), 7);
        for text in ["", "-1", "+1", " 1", "1 ", "0x1", "1e3", "1.0", "١", "18446744073709551616"]
        {
            let problem = number("id", text, 0, u64::MAX).unwrap_err();
            assert!(
                problem.to_string().starts_with("id must be a whole number 0 to 184"),
                "{text}"
            );
        }
    }

    /// The seconds by `date -u -d … +%s`.
    #[test]
    fn a_moment_is_milliseconds_or_rfc_3339() {
        for (text, millis) in [
            ("0", 0),
            ("1767225600000", 1_767_225_600_000),
            ("18446744073709551615", u64::MAX),
            ("2026-01-01T00:00:00Z", 1_767_225_600_000),
            ("2026-01-01t00:00:00z", 1_767_225_600_000),
            ("2026-01-01T08:00:00+08:00", 1_767_225_600_000),
            ("2025-12-31T20:30:00-03:30", 1_767_225_600_000),
            ("2026-01-01T00:00:00-00:00", 1_767_225_600_000),
            ("2026-01-01T00:00:00.7Z", 1_767_225_600_700),
            ("2026-01-01T00:00:00.999999999Z", 1_767_225_600_999),
            ("2024-02-29T23:59:59.123456+00:00", 1_709_251_199_123),
            ("1970-01-01T00:00:00Z", 0),
        ] {
            assert_eq!(moment("time", text).unwrap(), UnixMillis(millis), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            " ",
            "-1",
            "+1",
            "1.5",
            "1e12",
            "now",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00Z",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00 08:00",
            "2026-01-01T00:00:00+08",
            "2026-01-01T00:00:00+0800",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+08:60",
            "2026-01-01T00:00:00+08:00:00",
            "2026-01-01T00:00:00+08:00[Asia/Shanghai]",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00,5Z",
            "2026-01-01T00:00:00.1234567890Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2016-12-31T23:59:60Z",
            "20260101T000000Z",
            "2026-W01-4T00:00:00Z",
            "12026-01-01T00:00:00Z",
            "２026-01-01T00:00:00Z",
            "2026-01-01T00:00:0０Z",
        ] {
            let error = moment("time", text).expect_err(text).to_string();
            assert!(
                error.starts_with("time must be milliseconds since 1970, or RFC 3339"),
                "{error}"
            );
            assert_eq!(error.ends_with("%2B"), text.contains(' '), "{error}");
        }
        for (text, says) in [
            ("18446744073709551616", "time must be a whole number 0 to"),
            ("1969-12-31T23:59:59.9995Z", "time must not be before 1970"),
            ("0000-01-01T00:00:00Z", "time must not be before 1970"),
        ] {
            let error = moment("time", text).expect_err(text).to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
