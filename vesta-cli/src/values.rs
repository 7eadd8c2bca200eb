//! Values as users write and read them: IDs, layouts, ranges, moments.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use vesta_boot::Error;
use vesta_boot::settings::{quoted, read_layout};
use vesta_explain::layouts;
use vesta_explain::read;
use vesta_intf::{Field, Id, IdMeta, UnixMillis};
use vesta_service::clock::{Clock as _, SystemClock};

/// Time zone in which Vesta's layouts begin at midnight; shown if the system's zone is UTC.
const EPOCHS_ZONE: &str = "Asia/Shanghai";

/// Names of UTC, and of an unknown system zone.
const UTC: [&str; 7] = [
    "UTC",
    "Etc/UTC",
    "Etc/Unknown",
    "Etc/UCT",
    "Zulu",
    "Universal",
    "UCT",
];

/// An ID in any of its forms: digits alone are decimal, all other texts must fit one format.
pub(crate) fn id_of(text: &str) -> Result<u64, Error> {
    let it = read(text).and_then(|written| written.one("vesta explain --format"));
    it.map(|it| it.id).map_err(Error::setting)
}

/// Address of a server. It cannot contain a secret, so it may be shown.
#[derive(Debug, Clone)]
pub(crate) struct ServerUrl(String);

impl FromStr for ServerUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let base = text.trim_end_matches('/');
        let host = base
            .strip_prefix("http://")
            .or_else(|| base.strip_prefix("https://"));
        match host {
            None | Some("") => Err("must begin with http:// or https://"),
            Some(host) if host.contains(['@', '?', '#']) => {
                Err("must have no user, password or query; give a token by --token or VESTA_TOKEN")
            }
            Some(_) => Ok(Self(base.to_owned())),
        }
    }
}

impl Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ServerUrl {
    /// Host and port.
    pub(crate) fn host(&self) -> &str {
        self.0.split("//").last().unwrap_or(&self.0)
    }
}

/// A column name that every database reads without quotes.
pub(crate) fn column(text: &str) -> Result<String, String> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (is_name && text.chars().all(is_inner)).then(|| text.to_owned()).ok_or_else(|| {
        "must be letters, digits, _, $ and dots, such as orders.id; take id, and replace it in the output".into()
    })
}

/// A schema name that PostgreSQL reads the same with and without quotes.
pub(crate) fn schema(text: &str) -> Result<String, String> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_name = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    (is_name && text.len() < 64 && text.chars().all(is_inner))
        .then(|| text.to_owned())
        .ok_or_else(|| "must be lower-case letters, digits and _, at most 63, such as shop".into())
}

/// A layout by its name, or from a file.
pub(crate) fn layout(text: &str) -> Result<IdMeta, String> {
    if Path::new(text).extension().is_some_and(|it| it == "toml") {
        return read_layout(Path::new(text)).map_err(|error| error.to_string());
    }
    layouts::named(text).map_err(|_| {
        let names: Vec<_> = layouts::all().map(|layout| layout.name()).collect();
        let typed = quoted(text);
        format!(
            "{typed} is not one of {}, nor a file that ends in .toml",
            names.join(", ")
        )
    })
}

/// `0-923`.
pub(crate) fn machines(text: &str) -> Result<RangeInclusive<u64>, String> {
    range(text).ok_or_else(|| "must be FIRST-LAST, such as 0-923".to_owned())
}

/// `7`, `0-923`.
pub(crate) fn range(text: &str) -> Option<RangeInclusive<u64>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = first.trim().parse().ok()?..=last.trim().parse().ok()?;
    (range.start() <= range.end()).then_some(range)
}

/// The fields of an ID other than its time, as far as its layout has them.
pub(crate) fn beside(layout: &IdMeta, id: &Id) -> impl Iterator<Item = (&'static str, u64)> {
    let fields = [Field::GenMethod, Field::Machine, Field::Seq];
    let fields =
        fields.map(|field| (layout.bits(field) > 0).then(|| (field.name(), id.get(field))));
    fields.into_iter().flatten()
}

/// A length of time: `10s`, `1m`.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    let length = text
        .parse::<SignedDuration>()
        .ok()
        .and_then(|it| Duration::try_from(it).ok());
    length
        .filter(|length| !length.is_zero())
        .ok_or_else(|| "must be a time such as 10s or 1m".to_owned())
}

/// A number of minutes: `1`, `0.5`.
pub(crate) fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text
        .parse()
        .ok()
        .filter(|minutes| (0.01..=1440.0).contains(minutes));
    minutes.ok_or_else(|| "must be a number of minutes, 0.01 to 1440".to_owned())
}

/// The day in UTC: `2016-04-30`.
pub(crate) fn day(moment: UnixMillis) -> String {
    moment.to_string().split('T').take(1).collect()
}

/// `8 years ago`, `in 3 days`.
pub(crate) fn relative(moment: UnixMillis, now: UnixMillis) -> String {
    let seconds = moment.0.abs_diff(now.0) / 1000;
    let units = [
        ("year", 31_556_952),
        ("month", 2_629_746),
        ("day", 86_400),
        ("hour", 3_600),
        ("minute", 60),
    ];
    let (unit, length) = units
        .into_iter()
        .find(|unit| seconds >= unit.1)
        .unwrap_or(("second", 1));
    let count = seconds / length;
    let s = if count == 1 { "" } else { "s" };
    match moment > now {
        true => format!("in {count} {unit}{s}"),
        false => format!("{count} {unit}{s} ago"),
    }
}

/// The time in a zone, with its name: `Asia/Shanghai 2018-01-04 10:08:23`. Without a name it is the
/// system's zone; if that is UTC, the one in which Vesta's layouts begin.
pub(crate) fn in_zone(moment: UnixMillis, name: Option<&str>) -> Result<Option<String>, String> {
    let system = || {
        TimeZone::system()
            .iana_name()
            .filter(|name| !UTC.contains(name))
            .map(str::to_owned)
    };
    let name = name
        .map(str::to_owned)
        .or_else(system)
        .unwrap_or(EPOCHS_ZONE.to_owned());
    let zone = zone(&name)?;
    let shown =
        |it: Timestamp| format!("{name} {}", it.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S"));
    Ok(timestamp(moment).map(shown))
}

/// A time zone by its name.
pub(crate) fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_| format!("unknown time zone `{name}`"))
}

fn timestamp(moment: UnixMillis) -> Option<Timestamp> {
    i64::try_from(moment.0)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
}

/// The moment at which clocks of one zone show what those of another show at a moment. For a local
/// time that occurs twice, it is the first; for a skipped one, it is as much later.
pub(crate) fn moved(moment: UnixMillis, from: &TimeZone, to: &TimeZone) -> Option<UnixMillis> {
    let shown = from.to_datetime(timestamp(moment)?);
    let millis = to.to_timestamp(shown).ok()?.as_millisecond();
    u64::try_from(millis).ok().map(UnixMillis)
}

/// The moment now, by this system's clock.
pub(crate) fn now() -> UnixMillis {
    SystemClock::new().wall()
}
