//! The caller's deadline: the header `grpc-timeout`.

use std::time::Duration;

use tonic::codegen::http::HeaderMap;
use tonic::metadata::MetadataMap;

/// Margin before the caller's deadline: a response that arrives after it is useless.
const HEAD_START: Duration = Duration::from_millis(2);

/// Time limit of work for this caller; `None` if the caller set no deadline.
pub(crate) fn of_caller(metadata: &MetadataMap) -> Option<Duration> {
    in_headers(metadata.as_ref())
}

/// The same, before the request has metadata.
pub(crate) fn in_headers(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    Some(parse(text)?.saturating_sub(HEAD_START))
}

/// Parses up to 8 digits and a unit: gRPC over HTTP/2, "Timeout".
fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(value * 3600),
        "M" => Duration::from_secs(value * 60),
        "S" => Duration::from_secs(value),
        "m" => Duration::from_millis(value),
        "u" => Duration::from_micros(value),
        "n" => Duration::from_nanos(value),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_parsed_as_the_protocol_specifies() {
        for (text, expected) in [
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("1S", Some(Duration::from_secs(1))),
            ("50m", Some(Duration::from_millis(50))),
            ("7u", Some(Duration::from_micros(7))),
            ("0n", Some(Duration::ZERO)),
            ("", None),
            ("S", None),
            ("50", None),
            ("123456789S", None),
            ("-1S", None),
            ("+1S", None),
            ("1.5S", None),
            ("1s", None),
            ("1é", None),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }
}
