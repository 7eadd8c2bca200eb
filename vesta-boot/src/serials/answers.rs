//! Serials and their tags.

use clap::Args;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vesta_intf::IdError;
use vesta_numbers::serial::{NewSerialTag, ParsedSerial, Pattern, Reset, SerialStatus};

use crate::answers::{Long, Row, Supply, Whole};

/// A serial.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"serial": "INV-261122-0000427", "counter": "42"}))]
pub struct Serial {
    /// The serial, formatted by its pattern.
    pub serial: String,
    /// The counter of the period, before shuffling. A string, because JavaScript rounds numbers above 2^53.
    pub counter: Long,
    /// The `once` of the request; not in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub once: Option<String>,
}

impl Row for Serial {
    const COLUMNS: &'static [&'static str] = &["serial", "counter"];
}

impl From<vesta_numbers::serial::Serial> for Serial {
    fn from(serial: vesta_numbers::serial::Serial) -> Self {
        Self {
            serial: serial.text,
            counter: Long(serial.counter),
            once: None,
        }
    }
}

/// Several serials.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"serials": [
    {"serial": "INV-261122-0000427", "counter": "42"}, {"serial": "INV-261122-0000434", "counter": "43"}
]}))]
pub struct ManySerials {
    /// The serials, ordered by counter. A call that spans midnight returns serials of two days.
    pub serials: Vec<Serial>,
    /// The `once` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub once: Option<String>,
}

/// One serial; with `count`, a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[allow(
    missing_docs,
    dead_code,
    reason = "describes the responses of two types"
)]
pub enum OneOrManySerials {
    One(Serial),
    Many(ManySerials),
}

/// A serial tag to create.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"tag": "bills", "pattern": "B{date:yy}-{n:6}", "reset": "year", "zone": "UTC"}))]
pub struct NewSerial {
    /// The tag's name, 1 to 128 characters; orders-{tenant} is a template, whose tags are made when first used
    #[arg(value_name = "TAG")]
    pub tag: String,
    /// Pattern of its serials
    #[arg(value_name = "PATTERN")]
    pub pattern: String,
    /// Period after which its counter restarts at 1; year:04-01 is a fiscal year from 1 April on [default: never]
    #[arg(long, value_name = "never|day|week|month|quarter|year|year:MM-DD")]
    pub reset: Option<String>,
    /// Time zone of its dates, such as Asia/Shanghai
    #[arg(long, value_name = "NAME")]
    pub zone: Option<String>,
    /// Minimum counters per fetch [default: 100, or a hundredth of the counter's capacity]
    ///
    /// Counters that a server still has when it is killed, or when a period ends, are skipped. With 1, every
    /// serial asks the store.
    #[arg(long, value_name = "N")]
    pub step: Option<u64>,
    /// First counter of the current period, for serials that another system began [default: 1]
    #[arg(long, value_name = "N")]
    pub first: Option<u64>,
    /// Purpose of the tag, at most 256 characters
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Maximum number of tags of a template, 1 to 10,000 [default: 1000]
    #[arg(long, value_name = "N")]
    #[serde(rename = "maxTags")]
    pub max_tags: Option<u64>,
}

impl NewSerial {
    /// The pattern, if it is right.
    pub(crate) fn checked_pattern(&self) -> Result<Pattern, IdError> {
        let reset = self.reset.as_deref();
        let reset = reset.map_or(Ok(Reset::Never), str::parse)?;
        Pattern::new(&self.pattern, reset)
    }

    /// The tag of this pattern, if it is right.
    pub(crate) fn checked(&self, pattern: Pattern) -> Result<NewSerialTag, IdError> {
        let mut new = NewSerialTag::new(&*self.tag, pattern, self.zone.as_deref())?;
        if let Some(step) = self.step {
            new = new.step(step)?;
        }
        if let Some(description) = &self.description {
            new = new.described_as(&**description)?;
        }
        if let Some(most) = self.max_tags {
            new = new.max_tags(most)?;
        }
        new.starting_at(self.first.unwrap_or(1))
    }
}

/// The outcome of creating a tag.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"tag": "bills", "created": true}))]
pub struct SerialCreated {
    /// The tag.
    pub tag: String,
    /// False if the tag existed with this definition.
    pub created: bool,
}

impl Row for SerialCreated {
    const COLUMNS: &'static [&'static str] = &["tag", "created"];
}

/// The decoded parts of a serial.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "tag": "invoices", "period": "2026-11-22", "date": "2026-11-22", "counter": "42", "check": "damm"
}))]
pub struct SerialParsed {
    /// The tag.
    pub tag: String,
    /// The period of the counter: `2026`, `2026-Q4`, `2026-11`, `2026-W47` or `2026-11-22`; of a fiscal year, its first
    /// day; absent if it never restarts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The date, as precisely as the pattern contains it: in a form of `period`, or `2026-11-22T09`; absent if the
    /// pattern has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The counter, before shuffling.
    pub counter: Long,
    /// Method of the check symbol, which has been verified; absent if the pattern has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

impl Row for SerialParsed {
    const COLUMNS: &'static [&'static str] = &["tag", "period", "date", "counter", "check"];
}

impl SerialParsed {
    pub(crate) fn new(tag: &str, parsed: ParsedSerial) -> Self {
        Self {
            tag: tag.to_owned(),
            period: parsed.period,
            date: parsed.date,
            counter: Long(parsed.counter),
            check: parsed.check.map(|method| method.to_string()),
        }
    }
}

/// Serials with their tags.
#[derive(Debug, Clone, Serialize)]
pub struct SerialTags {
    /// The whole.
    #[serde(flatten)]
    pub whole: Whole,
    /// The tags.
    pub tags: Vec<SerialNow>,
}

/// A serial tag as this process uses it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SerialNow {
    /// The tag.
    pub tag: String,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its pattern.
    pub pattern: String,
    /// When its counter restarts.
    pub reset: String,
    /// The time zone of its dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Fingerprint of its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The period of `next`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The next counter of this process.
    pub next: Long,
    /// The last counter that fits the pattern.
    pub last: Long,
    /// Counters left until the last one.
    pub room: u64,
    /// True if it is expected to hand out serials.
    pub ready: bool,
    /// The reason why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready_because: Option<String>,
    /// Its supply.
    #[serde(flatten)]
    pub supply: Supply,
}

impl From<&SerialStatus> for SerialNow {
    fn from(tag: &SerialStatus) -> Self {
        let trouble = trouble(tag);
        Self {
            tag: tag.segment.key.clone(),
            description: tag.segment.description.clone(),
            pattern: tag.pattern.clone(),
            reset: tag.reset.clone(),
            zone: tag.zone.clone(),
            fingerprint: tag.key.clone(),
            period: tag.period.clone(),
            next: Long(tag.next),
            last: Long(tag.last),
            room: room(tag),
            ready: trouble.is_none(),
            not_ready_because: trouble,
            supply: (&tag.segment).into(),
        }
    }
}

/// The reason why a tag is not ready.
pub(crate) fn trouble(tag: &SerialStatus) -> Option<String> {
    tag.key_trouble
        .clone()
        .or_else(|| tag.segment.not_ready_because.clone())
}

/// Counters left until the tag exceeds its digits.
pub(crate) fn room(tag: &SerialStatus) -> u64 {
    (tag.last + 1).saturating_sub(tag.next)
}

/// A serial tag in its store.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredSerial {
    /// The tag.
    pub tag: String,
    /// Its pattern.
    pub pattern: String,
    /// When its counter restarts.
    pub reset: String,
    /// The time zone of its dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The period of `nextInStore`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The first counter that no process has fetched.
    pub next_in_store: Long,
    /// The last counter that fits the pattern.
    pub last: Long,
    /// Step in the table.
    pub table_step: u64,
    /// Fingerprint of its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Row for StoredSerial {
    const COLUMNS: &'static [&'static str] = &[
        "tag",
        "pattern",
        "reset",
        "zone",
        "period",
        "next in store",
        "last",
        "table step",
        "fingerprint",
        "description",
    ];
}

impl From<&SerialStatus> for StoredSerial {
    fn from(tag: &SerialStatus) -> Self {
        Self {
            tag: tag.segment.key.clone(),
            pattern: tag.pattern.clone(),
            reset: tag.reset.clone(),
            zone: tag.zone.clone(),
            period: tag.period.clone(),
            next_in_store: Long(tag.next),
            last: Long(tag.last),
            table_step: tag.segment.table_step,
            fingerprint: tag.key.clone(),
            description: tag.segment.description.clone(),
        }
    }
}

/// Answers as messages of the protocol.
#[cfg(feature = "grpc")]
mod grpc {
    use vesta_intf::grpc::v1;

    use super::{NewSerial, Serial, SerialParsed};

    impl From<Serial> for v1::Serial {
        fn from(it: Serial) -> Self {
            Self {
                serial: it.serial,
                counter: it.counter.0,
            }
        }
    }

    impl From<SerialParsed> for v1::ParsedSerial {
        fn from(it: SerialParsed) -> Self {
            Self {
                tag: it.tag,
                period: it.period,
                date: it.date,
                counter: it.counter.0,
                check: it.check,
            }
        }
    }

    impl From<v1::CreateSerialRequest> for NewSerial {
        fn from(it: v1::CreateSerialRequest) -> Self {
            Self {
                tag: it.tag,
                pattern: it.pattern,
                reset: it.reset,
                zone: it.zone,
                step: it.step,
                first: it.first,
                description: it.description,
                max_tags: it.max_tags,
            }
        }
    }
}
