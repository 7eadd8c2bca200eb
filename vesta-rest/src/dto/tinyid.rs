//! Bodies of the endpoints of Tinyid.

use serde::Serialize;
use utoipa::ToSchema;
use vesta_numbers::segment::LentRange;

/// Code of a successful response.
pub(crate) const OK: u16 = 200;

/// New numbers of a tag.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"data": [2, 3, 4], "code": 200, "message": ""}))]
pub struct TinyidNumbers {
    /// The numbers, ascending; null with an error.
    pub data: Option<Vec<u64>>,
    /// 200; 5 for a wrong token, 6 for any other error.
    pub code: u16,
    /// Error text; empty on success.
    pub message: String,
    /// The `once` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub once: Option<String>,
}

/// A range of a tag.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "data": {"maxId": 100_001, "loadingId": 20001, "currentId": 1, "delta": 1, "remainder": 0},
    "code": 200, "message": ""
}))]
pub struct TinyidSegment {
    /// The range; null with an error.
    pub data: Option<TinyidRange>,
    /// 200; 5 for a wrong token, 6 for any other error.
    pub code: u16,
    /// Error text; empty on success.
    pub message: String,
    /// The `once` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub once: Option<String>,
}

/// The numbers n with `currentId` < n ≤ `maxId` and n mod `delta` = `remainder`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TinyidRange {
    /// The last number of the range.
    pub max_id: i64,
    /// Number at which to fetch the next range: a fifth of this one is used.
    pub loading_id: i64,
    /// The last number before the range.
    pub current_id: i64,
    /// Distance from one number to the next.
    pub delta: u64,
    /// Remainder of each number modulo `delta`.
    pub remainder: u64,
}

/// Numbers have at most 63 bits, so nothing is lost.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl From<LentRange> for TinyidRange {
    fn from(LentRange { numbers, stride }: LentRange) -> Self {
        let [current_id, max_id] = [numbers.start, numbers.end].map(|it| signed(it) - 1);
        let loading_id = current_id + signed((numbers.end - numbers.start) / 5);
        Self {
            max_id,
            loading_id,
            current_id,
            delta: stride.delta,
            remainder: stride.remainder,
        }
    }
}

impl TinyidRange {
    /// The same values, separated by commas.
    pub(crate) fn simple(&self) -> String {
        let Self {
            max_id,
            loading_id,
            current_id,
            delta,
            remainder,
        } = self;
        format!("{current_id},{loading_id},{max_id},{delta},{remainder}")
    }
}
