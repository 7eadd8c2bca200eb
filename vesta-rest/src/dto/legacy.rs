//! Bodies of the endpoints of Leaf and uid-generator.

use std::ops::Range;

use serde::Serialize;
use utoipa::ToSchema;
use vesta_numbers::segment::{SegmentStatus, SegmentTag};

/// The fields of an ID as Leaf's monitor shows them. Every member is a string.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "timestamp": "1515031703000(2018-01-04 02:08:23.000)", "sequenceId": "0", "workerId": "1021"
}))]
pub struct LeafDecoded {
    /// Milliseconds since 1970 and, in brackets, the same in the server's time zone.
    pub timestamp: String,
    /// Sequence number inside the tick.
    pub sequence_id: String,
    /// The machine ID.
    pub worker_id: String,
}

/// The fields of a UID as uid-generator shows them. Every member is a string.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "UID": "3516414031872", "timestamp": "2016-05-20 00:01:42", "workerId": "19", "sequence": "0"
}))]
pub struct UidParsed {
    /// The UID.
    #[serde(rename = "UID")]
    pub uid: String,
    /// The UID's second, in the server's time zone.
    pub timestamp: String,
    /// The machine ID.
    pub worker_id: String,
    /// Sequence number inside the second.
    pub sequence: String,
}

/// In-memory ranges of one segment tag. Its numbers are strings.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "key": "orders", "position": "1042", "current": ["1001", "2001"], "next": [["2001", "3001"]],
    "step": 1000, "perSecond": 42
}))]
pub struct SegmentCache {
    /// The tag.
    pub key: String,
    /// The next number to issue.
    pub position: String,
    /// Current range: its first number and its exclusive upper bound.
    pub current: Option<[String; 2]>,
    /// Prefetched ranges.
    pub next: Vec<[String; 2]>,
    /// Step of the next fetch.
    pub step: u64,
    /// Numbers issued per second.
    pub per_second: u64,
    /// Last database error, even if it has since recovered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl From<SegmentStatus> for SegmentCache {
    fn from(status: SegmentStatus) -> Self {
        let text = |range: Range<u64>| [range.start.to_string(), range.end.to_string()];
        Self {
            key: status.key,
            position: status.position.to_string(),
            current: status.current.map(text),
            next: status.next.into_iter().map(text).collect(),
            step: status.step,
            per_second: status.rate,
            last_error: status.last_error,
        }
    }
}

/// A row of the table of segment tags.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"biz_tag": "orders", "max_id": "3001", "step": 1000, "description": null, "update_time": "2026-01-01T00:00:00.000Z"}))]
pub struct SegmentRow {
    /// The tag.
    pub biz_tag: String,
    /// The first number that no server has fetched yet.
    pub max_id: String,
    /// Minimum size of a fetch.
    pub step: i64,
    /// Purpose of the tag.
    pub description: Option<String>,
    /// Time of the last change to the row, in UTC.
    pub update_time: Option<String>,
}

impl From<SegmentTag> for SegmentRow {
    fn from(tag: SegmentTag) -> Self {
        Self {
            max_id: tag.shown()[0].clone(),
            biz_tag: tag.key,
            step: tag.step,
            description: tag.description,
            update_time: tag.update_time.map(|moment| moment.to_string()),
        }
    }
}
