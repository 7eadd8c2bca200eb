//! Tags of segment mode.

use std::ops::Range;

use clap::Args;
use serde::{Deserialize, Serialize};
use vesta_intf::IdError;
use vesta_numbers::segment::{NewSegmentTag, SegmentStatus, SegmentTag};

use crate::answers::{Long, Row, Supply, Whole, length};

/// A segment tag to create.
#[derive(Debug, Clone, PartialEq, Eq, Args, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewSegment {
    /// The tag's name, 1 to 128 characters
    #[arg(value_name = "TAG")]
    pub tag: String,
    /// Minimum numbers per fetch: about as many as one server needs in 15 minutes
    #[arg(long, value_name = "N")]
    pub step: u64,
    /// The first number
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[serde(default = "one")]
    pub first: u64,
    /// The last number, such as 2147483647 for a column of 32 bits [default: 2^63 - 2]
    ///
    /// After it, calls for the tag fail. Not in tables of other systems, such as leaf_alloc.
    #[arg(long, value_name = "N")]
    pub last: Option<u64>,
    /// Purpose of the tag, at most 256 characters
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
}

const fn one() -> u64 {
    1
}

impl NewSegment {
    /// The tag, if it is right.
    pub(crate) fn checked(&self) -> Result<NewSegmentTag, IdError> {
        let mut tag = NewSegmentTag::new(&*self.tag, self.step)?.starting_at(self.first)?;
        if let Some(last) = self.last {
            tag = tag.ending_at(last)?;
        }
        match &self.description {
            Some(text) => tag.described_as(&**text),
            None => Ok(tag),
        }
    }
}

/// The outcome of creating a segment tag.
#[derive(Debug, Clone, Serialize)]
pub struct SegmentCreated {
    /// The tag.
    pub tag: String,
    /// Numbers that a fetch takes at least.
    pub step: u64,
    /// Its first number.
    pub first: Long,
    /// Its last number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Long>,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// False if the tag existed with this definition.
    pub created: bool,
}

impl Row for SegmentCreated {
    const COLUMNS: &'static [&'static str] =
        &["tag", "step", "first", "last", "description", "created"];
}

impl SegmentCreated {
    pub(crate) fn new(new: NewSegment, created: bool) -> Self {
        Self {
            tag: new.tag,
            step: new.step,
            first: Long(new.first),
            last: new.last.map(Long),
            description: new.description,
            created,
        }
    }
}

/// Segment mode with its tags.
#[derive(Debug, Clone, Serialize)]
pub struct SegmentTags {
    /// The whole.
    #[serde(flatten)]
    pub whole: Whole,
    /// The tags.
    pub tags: Vec<SegmentNow>,
}

/// A range of numbers.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Numbers {
    /// The first one.
    pub from: Long,
    /// The number after the last one.
    pub below: Long,
}

impl From<&Range<u64>> for Numbers {
    fn from(range: &Range<u64>) -> Self {
        Self {
            from: Long(range.start),
            below: Long(range.end),
        }
    }
}

/// A segment tag as this process uses it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SegmentNow {
    /// The tag.
    pub tag: String,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// True if it is expected to hand out numbers.
    pub ready: bool,
    /// The range whose numbers are handed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<Numbers>,
    /// The next number.
    pub next: Long,
    /// Used share of the current range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<u64>,
    /// Its last number, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Long>,
    /// Share of the numbers up to the last one that is handed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_percent_of_last: Option<u64>,
    /// Ranges fetched ahead.
    pub fetched: Vec<Numbers>,
    /// The reason why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready_because: Option<String>,
    /// Its supply.
    #[serde(flatten)]
    pub supply: Supply,
}

impl From<&SegmentStatus> for SegmentNow {
    fn from(tag: &SegmentStatus) -> Self {
        Self {
            tag: tag.key.clone(),
            description: tag.description.clone(),
            ready: tag.not_ready_because.is_none(),
            current: tag.current.as_ref().map(Numbers::from),
            next: Long(tag.position),
            used_percent: used_percent(tag),
            last: tag.last.map(Long),
            used_percent_of_last: tag.used_percent,
            fetched: tag.next.iter().map(Numbers::from).collect(),
            not_ready_because: tag.not_ready_because.clone(),
            supply: tag.into(),
        }
    }
}

/// Used percentage of the current range.
fn used_percent(tag: &SegmentStatus) -> Option<u64> {
    let range = tag.current.as_ref().filter(|range| length(range) > 0)?;
    let used = tag.position.clamp(range.start, range.end) - range.start;
    u64::try_from(u128::from(used) * 100 / u128::from(length(range))).ok()
}

/// A number of the table; its text there, if it is none that can be used.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Verbatim {
    /// A number.
    Number(u64),
    /// Text.
    Text(String),
}

/// A segment tag in its store.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredSegment {
    /// The tag.
    pub tag: String,
    /// The first number that no process has fetched; the text in the table, if it is none.
    pub next_in_store: String,
    /// Its last number, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Long>,
    /// Step in the table.
    pub table_step: Verbatim,
    /// Time of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_time: Option<String>,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Row for StoredSegment {
    const COLUMNS: &'static [&'static str] = &[
        "tag",
        "next in store",
        "last",
        "table step",
        "update time",
        "description",
    ];
}

impl From<&SegmentTag> for StoredSegment {
    fn from(tag: &SegmentTag) -> Self {
        let [next_in_store, step] = tag.shown();
        Self {
            tag: tag.key.clone(),
            next_in_store,
            last: tag.last.map(Long),
            table_step: step.parse().map_or(Verbatim::Text(step), Verbatim::Number),
            update_time: tag.update_time.map(|time| time.to_string()),
            description: tag.description.clone(),
        }
    }
}
