//! CosId's friendly form of an ID: `20260131120000123-7-42`.

use vesta_intf::inside::{civil_from_days, days_from_civil};
use vesta_intf::{Id, IdError, IdMeta, UnixMillis};

/// True if a text looks like a [friendly ID](friendly): three numbers separated by hyphens.
pub fn is_friendly(text: &str) -> bool {
    parts(text).is_some()
}

fn parts(text: &str) -> Option<[&str; 3]> {
    let parts: Vec<_> = text.split('-').collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts
        .try_into()
        .ok()
        .filter(|parts: &[&str; 3]| parts.iter().all(digits))
}

/// An ID in CosId's form for people: the local time, to the millisecond, or to the second where
/// ticks are that long; the machine ID; the sequence. `local` returns the local time of a moment, as
/// if it were UTC, or `None` if that time zone has none.
///
/// ```
/// use vesta_explain::{friendly, layouts, parse_friendly};
/// use vesta_intf::UnixMillis;
///
/// let east = 8 * 3_600_000; // of UTC, in China
/// let local = |moment: UnixMillis| Some(UnixMillis(moment.0 + east));
/// let text = friendly(&layouts::COSID, 807_943_746_871_128_106, local)?;
/// assert_eq!(text, "20260131120000123-7-42");
///
/// let moment = |local: UnixMillis| local.0.checked_sub(east).map(UnixMillis);
/// assert_eq!(parse_friendly(&layouts::COSID, &text, moment)?, 807_943_746_871_128_106);
/// # Ok::<(), vesta_intf::IdError>(())
/// ```
///
/// # Errors
/// As for [`unpack`](IdMeta::unpack), and [`IdError::Invalid`] if `local` returns `None`.
pub fn friendly(
    layout: &IdMeta,
    raw: u64,
    local: impl FnOnce(UnixMillis) -> Option<UnixMillis>,
) -> Result<String, IdError> {
    let id = layout.unpack(raw)?;
    let time = local(layout.moment_of(id.time)?);
    let time =
        time.ok_or_else(|| IdError::invalid("id", "its time does not exist in that time zone"))?;
    let time = time.to_string(); // 2026-01-31T12:00:00.123Z
    let digits = time
        .chars()
        .filter(char::is_ascii_digit)
        .take(time_digits(layout));
    Ok(format!(
        "{}-{}-{}",
        digits.collect::<String>(),
        id.machine,
        id.seq
    ))
}

/// The ID of a friendly text, whose machine ID and sequence may have leading zeros. Every other
/// field of the layout is 0, and the type is the layout's own. `moment` receives a local time as if
/// it were UTC and returns the moment at which clocks show it; `None` if they never do.
///
/// # Errors
/// [`IdError::Invalid`] if the text is not a friendly ID of this layout, or its time is outside
/// the layout or between two ticks; [`IdError::OutOfRange`] for a machine ID or sequence that
/// does not fit.
pub fn parse_friendly(
    layout: &IdMeta,
    text: &str,
    moment: impl FnOnce(UnixMillis) -> Option<UnixMillis>,
) -> Result<u64, IdError> {
    let invalid = |reason: String| IdError::invalid("id", reason);
    let form = &"yyyyMMddHHmmssSSS"[..time_digits(layout)];
    let parts = parts(text).filter(|[time, ..]| time.len() == form.len());
    let Some([time, machine, seq]) = parts else {
        let name = layout.name();
        return Err(invalid(format!(
            "a friendly ID of {name} is {form}-MACHINE-SEQUENCE"
        )));
    };
    let never = || invalid(format!("the time {time} does not exist (expected {form})"));
    let moment = civil(time).and_then(moment).ok_or_else(never)?;
    let tick = layout.tick_within(moment)?;
    if layout.moment_of(tick)? != moment {
        let (name, unit) = (layout.name(), layout.spec().unit);
        return Err(invalid(format!(
            "{time} is between two ticks of {name} (one: {unit})"
        )));
    }
    let number = |digits: &str| digits.parse().unwrap_or(u64::MAX); // too large for any field
    layout.pack(&Id {
        time: tick,
        machine: number(machine),
        seq: number(seq),
        ..layout.blank()
    })
}

fn time_digits(layout: &IdMeta) -> usize {
    if layout.spec().unit.millis() < 1000 {
        17
    } else {
        14
    }
}

/// The time of 14 or 17 digits, as if it were UTC.
fn civil(digits: &str) -> Option<UnixMillis> {
    let part = |from: usize, to: usize| digits.get(from..to)?.parse::<u64>().ok();
    let date @ (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    let is_right = year >= 1970 && (1..=12).contains(&month) && day >= 1;
    let days = is_right.then(|| days_from_civil(year, month, day))?;
    let exists = civil_from_days(days) == date && hour < 24 && minute < 60 && second < 60;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    exists.then(|| UnixMillis(seconds * 1000 + part(14, 17).unwrap_or(0)))
}
