//! Values in requests: whole numbers and moments.

use std::ops::RangeInclusive;

use vesta_intf::UnixMillis;

use crate::problem::{Problem, quoted};

/// Maximum body size in bytes.
pub(crate) const MAX_BODY: usize = 16 * 1024;

/// Parses a whole number: decimal digits only, no sign, no blanks, nothing clamped.
pub(crate) fn number(name: &str, text: &str, min: u64, max: u64) -> Result<u64, Problem> {
    let is_number = is_digits(text);
    // Only digits are left, so a number that does not parse is beyond 64 bits.
    let value = text
        .parse()
        .ok()
        .filter(|value| is_number && (min..=max).contains(value));
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
    if text.is_empty() {
        "empty".to_owned()
    } else {
        quoted(text)
    }
}

/// Parses a moment, or a day, month or year.
pub(crate) fn period(name: &str, text: &str) -> Result<RangeInclusive<UnixMillis>, Problem> {
    vesta_boot::period(text).map_err(|must| {
        // In a query, + means a space.
        let hint = if text.contains(' ') {
            "; in a URL + is written %2B"
        } else {
            ""
        };
        Problem::invalid(name, format!("{name} {must}, but is {}{hint}", shown(text)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_in_range_and_nothing_else() {
        assert_eq!(number("id", "0", 0, u64::MAX).unwrap(), 0);
        assert_eq!(
            number("id", "18446744073709551615", 0, u64::MAX).unwrap(),
            u64::MAX
        );
        assert_eq!(number("id", "007", 0, 7).unwrap(), 7);
        for text in [
            "",
            "-1",
            "+1",
            " 1",
            "1 ",
            "0x1",
            "1e3",
            "1.0",
            "١",
            "18446744073709551616",
        ] {
            let problem = number("id", text, 0, u64::MAX).unwrap_err();
            assert!(
                problem
                    .to_string()
                    .starts_with("id must be a whole number 0 to 184"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_error_hints_at_a_plus_decoded_as_a_space() {
        let error = period("time", "2026-01-01T00:00:00 08:00")
            .expect_err("two words")
            .to_string();
        assert!(
            error.starts_with("time must be") && error.ends_with("%2B"),
            "{error}"
        );
        let error = period("time", "2026-01-01T00:00:00")
            .expect_err("no offset")
            .to_string();
        assert!(
            error.contains("2026-01-01T00:00:00+08:00") && !error.contains("%2B"),
            "{error}"
        );
    }
}
