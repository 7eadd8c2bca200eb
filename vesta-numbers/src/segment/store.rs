//! Port to the databases that hold the tags.

use std::fmt;
use std::ops::{Deref, Range};

use vesta_intf::{IdError, UnixMillis, check_tag, is_control};

use super::stride::Stride;
use crate::Created;
use vesta_service::lease::StoreError;

/// The largest number that a database can store: its columns are signed, with 64 bits.
pub(crate) const MAX: u64 = i64::MAX.unsigned_abs();

/// A database of segment tags, shaped like Leaf's table `leaf_alloc`: for each tag it counts up to
/// which number all have been handed out.
///
/// The calls block. They come from the segment service's own threads and from administration, never
/// from the path that issues numbers, and end within the store's request timeout, whatever the
/// network does. After an error the next call reconnects. An implementation over an asynchronous
/// client keeps its runtime to itself, so that embedding needs none.
pub trait SegmentStore: Send + Sync + fmt::Debug {
    /// Display name, without secrets: `MySQL vesta@db:3306/ids`.
    fn describe(&self) -> String;

    /// All tags, as they are in the table.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, or the table does not exist.
    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError>;

    /// Hands out the next `step` numbers of a tag for good, in one atomic and durable step: `max_id`
    /// becomes `max_id + step`, and the numbers from the old `max_id` up to, but excluding, the new one
    /// belong to the caller alone. `step` is 1 to 2^62; the tag's own step in the table is ignored.
    ///
    /// `update_time` becomes the store's present time. Called only with names as listed by
    /// [`tags`](Self::tags), so names may be compared as the database does.
    ///
    /// # Errors
    /// [`StoreError`] if it is unknown whether the step happened: its numbers are then lost, and the
    /// caller requests others. Permanent, with nothing changed, if the tag's `max_id` is negative.
    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError>;

    /// Gives unissued numbers back, in one atomic step: if `max_id` is still their end, it becomes
    /// their start, and `true` is returned; otherwise nothing changes. The next request gets them.
    /// Called at most once for the same numbers, and it must act at most once: a repetition could take
    /// numbers from processes that were given them meanwhile.
    ///
    /// # Errors
    /// [`StoreError`] if it is unknown whether the step happened. That does no harm.
    fn give_back(&self, key: &str, numbers: Range<u64>) -> Result<bool, StoreError> {
        let _ = (key, numbers);
        Ok(false) // a store that takes nothing back only loses numbers
    }

    /// The reason why the store, in its current set-up, may forget acknowledged writes, if it may:
    /// a crash or a fail-over could then hand out numbers again.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn doubt(&self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Adds a tag, in one atomic step. Returns `false`, and changes nothing, if the name exists.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer; the tag may then have been added.
    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError>;
}

/// Reply to a request for numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextRange {
    /// The numbers from `start` up to, but excluding, `end`. Not empty; `end` is at most 2^63 - 1.
    Numbers(Range<u64>),
    /// The numbers of the stride from `start` up to, but excluding, `end`.
    Strided(Range<u64>, Stride),
    /// The tag does not exist.
    NoTag,
    /// `max_id` would exceed 2^63 - 1, or the tag's last number is used up, so it is unchanged. Fewer numbers may
    /// still be available.
    UsedUp,
}

impl NextRange {
    /// The numbers of a range that belong to the stride.
    pub fn of(numbers: Range<u64>, stride: Stride) -> Self {
        match stride {
            Stride::ONE => Self::Numbers(numbers),
            stride => Self::Strided(numbers, stride),
        }
    }
}

/// A range whose numbers another system issues, such as a client of Tinyid: no other process gets them,
/// and none is given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LentRange {
    /// From the first number that was not handed out before, up to, but excluding, the first that
    /// still is not.
    pub numbers: Range<u64>,
    /// The numbers of the range that belong to the tag.
    pub stride: Stride,
}

/// A tag as it is in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentTag {
    /// The tag's name: `biz_tag`.
    pub key: String,
    /// The first number that was never handed out; negative if the row has no valid number.
    pub max_id: i64,
    /// The minimum numbers to fetch at a time. It should be positive; -1 represents an invalid number.
    pub step: i64,
    /// The last number to be handed out; `None` if only 63 bits limit them.
    pub last: Option<u64>,
    /// The numbers that the tag has in this database: nearly always all of them, [`Stride::ONE`].
    pub stride: Stride,
    /// The purpose of the tag.
    pub description: Option<String>,
    /// When the row was last changed, if the store knows.
    pub update_time: Option<UnixMillis>,
    /// Number and step as they are in the table, if one is unusable: negative, `NULL` or of another type.
    pub unusable: Option<[String; 2]>,
}

impl SegmentTag {
    /// A tag with every number, without further details.
    pub fn new(key: impl Into<String>, max_id: i64, step: i64) -> Self {
        let (stride, description, update_time, unusable) = (Stride::ONE, None, None, None);
        let last = None;
        Self {
            key: key.into(),
            max_id,
            step,
            last,
            stride,
            description,
            update_time,
            unusable,
        }
    }

    /// The part of a range up to the last number, if any is left.
    pub(crate) fn up_to_last(&self, numbers: Range<u64>) -> Option<Range<u64>> {
        let Some(last) = self.last else {
            return Some(numbers);
        };
        let end = numbers.end.min(last.saturating_add(1));
        (numbers.start < end).then_some(numbers.start..end)
    }

    /// Number and step, or their texts in the table if unusable.
    pub fn shown(&self) -> [String; 2] {
        let numbers = || [self.max_id, self.step].map(|number| number.to_string());
        self.unusable.clone().unwrap_or_else(numbers)
    }
}

/// A tag to be added, validated so that every store can keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSegmentTag(SegmentTag);

/// Creates a tag in a store, unless one of its name exists. Definitions are compared without the first number, which
/// moves on.
///
/// # Errors
/// [`StoreError`] if the store does not answer: it is then unknown whether the tag was added.
pub fn create(store: &dyn SegmentStore, new: &NewSegmentTag) -> Result<Created, StoreError> {
    if store.create(new)? {
        return Ok(Created::New);
    }
    let definition = |it: &SegmentTag| (it.step, it.last, it.stride, it.description.clone());
    let found = store.tags()?.into_iter().find(|it| it.key == new.key);
    Ok(match found {
        Some(found) if definition(&found) == definition(new) => Created::Same,
        _ => Created::Another,
    })
}

impl Deref for NewSegmentTag {
    type Target = SegmentTag;

    fn deref(&self) -> &SegmentTag {
        &self.0
    }
}

impl NewSegmentTag {
    /// Maximum length of a description, in characters.
    pub const MAX_DESCRIPTION: usize = 256;
    /// Maximum step: the range of the table's column.
    pub const MAX_STEP: u64 = i32::MAX.unsigned_abs() as u64;

    /// A tag whose numbers start at 1, as in Leaf, and are fetched `step` at a time.
    ///
    /// # Errors
    /// [`IdError::Invalid`] if the name is empty, longer than 128 characters, or has control characters (including
    /// bidirectional controls) or leading or trailing white space; [`IdError::OutOfRange`] if the step is not 1 to 2^31
    /// - 1.
    pub fn new(key: impl Into<String>, step: u64) -> Result<Self, IdError> {
        let key = key.into();
        check_tag(&key)?;
        if key.trim() != key || key.contains(is_control) {
            let reason = "it must not begin or end with white space or have control characters";
            return Err(IdError::invalid("tag", reason));
        }
        IdError::check("step", step, 1, Self::MAX_STEP)?;
        Ok(Self(SegmentTag::new(key, 1, signed(step))))
    }

    /// The first number to be handed out, instead of 1: to continue numbers of another system.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if it is 2^63 - 1 or more.
    pub fn starting_at(mut self, first: u64) -> Result<Self, IdError> {
        IdError::check("first", first, 0, MAX - 1)?;
        self.0.max_id = signed(first);
        Ok(self)
    }

    /// The last number to be handed out, such as 2147483647 for a column of 32 bits. Afterwards calls fail.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if it is below the first number, or 2^63 - 1 or more.
    pub fn ending_at(mut self, last: u64) -> Result<Self, IdError> {
        let first = u64::try_from(self.0.max_id).unwrap_or(0);
        IdError::check("last", last, first, MAX - 1)?;
        self.0.last = Some(last);
        Ok(self)
    }

    /// The purpose of the tag.
    ///
    /// # Errors
    /// [`IdError::Invalid`] if it has more than 256 characters.
    pub fn described_as(mut self, description: impl Into<String>) -> Result<Self, IdError> {
        let description = description.into();
        if description.chars().count() > Self::MAX_DESCRIPTION {
            return Err(IdError::invalid(
                "description",
                "it must have at most 256 characters",
            ));
        }
        self.0.description = Some(description);
        Ok(self)
    }
}

/// A number that has been checked to be at most [`MAX`].
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
