//! Bodies of serials.

use serde::Serialize;
use utoipa::ToSchema;

/// A serial.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"serial": "INV-261122-0000427", "n": "42"}))]
pub struct Serial {
    /// As its pattern writes it.
    pub serial: String,
    /// The counter of its period, as it was before it was shuffled. A string, because JavaScript rounds
    /// numbers above 2^53.
    pub n: String,
}

impl From<vesta_service::serial::Serial> for Serial {
    fn from(serial: vesta_service::serial::Serial) -> Self {
        Self {
            serial: serial.text,
            n: serial.n.to_string(),
        }
    }
}

/// Several serials.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"serials": [
    {"serial": "INV-261122-0000427", "n": "42"}, {"serial": "INV-261122-0000434", "n": "43"}
]}))]
pub struct ManySerials {
    /// In the order of their counters. Those of a call that goes on over midnight are of two days.
    pub serials: Vec<Serial>,
}

/// One serial, or with `count` several.
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

/// The meaning of a serial.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "tag": "invoices", "period": "2026-11-22", "date": "2026-11-22", "n": "42", "check": "damm"
}))]
pub struct SerialParsed {
    /// The tag.
    pub tag: String,
    /// The period of the counter: `2026`, `2026-11` or `2026-11-22`; absent if it never starts anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The date, as exactly as the pattern tells it: `2026`, `2026-11`, `2026-11-22` or `2026-11-22T09`;
    /// absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The counter, as it was before it was shuffled.
    pub n: String,
    /// The method of its check symbol, which is right; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}
