//! Bodies of serials.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A serial.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"serial": "INV-261122-0000427", "counter": "42"}))]
pub struct Serial {
    /// The serial, formatted by its pattern.
    pub serial: String,
    /// The counter of the period, before shuffling. A string, because JavaScript rounds numbers above 2^53.
    pub counter: String,
    /// The `once` of the request; not in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub once: Option<String>,
}

impl From<vesta_numbers::serial::Serial> for Serial {
    fn from(serial: vesta_numbers::serial::Serial) -> Self {
        Self {
            serial: serial.text,
            counter: serial.counter.to_string(),
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
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"tag": "bills", "pattern": "B{date:yy}-{n:6}", "reset": "year", "zone": "UTC"}))]
pub struct NewSerial {
    /// Its name, 1 to 128 characters. With a placeholder, as in `orders-{tenant}`, it is a template: its tags are
    /// made when first asked for serials.
    pub tag: String,
    /// The pattern of its serials; one that shuffles is refused.
    pub pattern: String,
    /// `never` (default), `day`, `week`, `month`, `quarter`, `year`, or `year:MM-DD` for a fiscal year.
    pub reset: Option<String>,
    /// The time zone of its dates; needed if the pattern has one.
    pub zone: Option<String>,
    /// Minimum counters per fetch; default 100, or a hundredth of the counter's capacity.
    pub step: Option<u64>,
    /// The first counter of the current period; default 1.
    pub first: Option<u64>,
    /// The purpose of the tag, at most 256 characters.
    pub description: Option<String>,
    /// Maximum number of tags of a template, 1 to 10,000; default 1,000. Anything but a template has none.
    #[serde(rename = "maxTags")]
    pub max_tags: Option<u64>,
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
    pub counter: String,
    /// Method of the check symbol, which has been verified; absent if the pattern has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}
