//! Bodies of the endpoints of Tinyid.

use serde::Serialize;
use utoipa::ToSchema;
use vesta_service::segment::LentRange;

/// Code of an answer that is no error.
pub(crate) const OK: u16 = 200;

/// New numbers of a tag.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"data": [2, 3, 4], "code": 200, "message": ""}))]
pub struct TinyidNumbers {
    /// The numbers, ascending; null with an error.
    pub data: Option<Vec<u64>>,
    /// 200; 5 for a wrong token, 6 for any other error.
    pub code: u16,
    /// The error, or nothing.
    pub message: String,
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
    /// The error, or nothing.
    pub message: String,
}

/// The numbers above `currentId`, up to and with `maxId`, whose remainder by `delta` is `remainder`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TinyidRange {
    /// The last number of the range.
    pub max_id: i64,
    /// With this number it is time to fetch the next range: a fifth is used.
    pub loading_id: i64,
    /// The last number before the range.
    pub current_id: i64,
    /// From one number to the next.
    pub delta: u64,
    /// The remainder of each number by `delta`.
    pub remainder: u64,
}

/// Numbers have at most 63 bits, so that nothing is lost.
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
    /// The same with commas in between.
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
