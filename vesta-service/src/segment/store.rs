//! The port to the databases that hold the tags.

use std::fmt;
use std::ops::{Deref, Range};

use vesta_intf::{IdError, UnixMillis, is_control};

use super::stride::Stride;
use crate::error::StoreError;

/// The largest number a database can keep: its columns are signed, with 64 bits.
pub(crate) const MAX: u64 = i64::MAX.unsigned_abs();

/// A database of segment tags, shaped like Leaf's table `leaf_alloc`: it counts, for each tag, up to
/// which number everything was handed out.
///
/// The calls block. They come from the segment service's own threads and from administration, never
/// from the path that hands numbers out, and end within the store's request time-out, whatever the
/// network does. After an error the next call connects anew. An implementation over an asynchronous
/// client keeps its runtime to itself, so that embedding needs none.
pub trait SegmentStore: Send + Sync + fmt::Debug {
    /// Display name, without secrets: `MySQL vesta@db:3306/ids`.
    fn describe(&self) -> String;

    /// Every tag there is, as it stands in the table.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, or has no such table.
    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError>;

    /// Hands out the next `step` numbers of a tag for ever, in one atomic and durable step:
    /// `max_id` becomes `max_id + step`, and the numbers from the old `max_id` on below the new one
    /// are the caller's alone. `step` is 1 to 2^62; the tag's own step in the table is not looked at.
    ///
    /// `update_time` becomes the store's present time. Asked only with names as [`tags`](Self::tags)
    /// listed them, so names may be compared as the database does.
    ///
    /// # Errors
    /// [`StoreError`] if it is not known whether the step happened: its numbers are then lost, and
    /// the caller asks for others. Permanent, with nothing changed, if the tag's `max_id` is negative.
    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError>;

    /// Gives numbers back that nobody was given, in one atomic step: `max_id` becomes their start if
    /// it still is their end, and `true` is returned; otherwise nothing changes. Whoever then asks gets
    /// them. Asked at most once for the same numbers, and it must act at most once: a repetition could
    /// take from others what they were given meanwhile.
    ///
    /// # Errors
    /// [`StoreError`] if it is not known whether the step happened. That does no harm.
    fn give_back(&self, key: &str, numbers: Range<u64>) -> Result<bool, StoreError> {
        let _ = (key, numbers);
        Ok(false) // a store that takes nothing back loses numbers, and no more
    }

    /// Why the store, as it is set up now, may forget what it acknowledged, if it may: a crash or a
    /// fail-over could then hand out numbers again.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn doubt(&self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Adds a tag, in one atomic step. `false`, and nothing is changed, if there is one of this name.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer; then it may have been added.
    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError>;
}

/// The answer to a request for numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextRange {
    /// The numbers from `start` on below `end`. Not empty; `end` is at most 2^63 - 1.
    Numbers(Range<u64>),
    /// Those of the numbers from `start` on below `end` that belong to the stride.
    Strided(Range<u64>, Stride),
    /// There is no such tag.
    NoTag,
    /// `max_id` would grow beyond 2^63 - 1: it stays as it was. Fewer numbers may still be there.
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

/// A range whose numbers somebody else gives out, such as a client of Tinyid: nobody else gets them, and
/// none comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LentRange {
    /// From the first number that was not handed out before, below the first that still is not.
    pub numbers: Range<u64>,
    /// The numbers of the range that belong to the tag.
    pub stride: Stride,
}

/// A tag as it stands in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentTag {
    /// The tag's name: `biz_tag`.
    pub key: String,
    /// The first number that was never handed out; negative if the row has no such number.
    pub max_id: i64,
    /// The least numbers to fetch at a time. It should be positive; -1 stands for what is no number.
    pub step: i64,
    /// The numbers that the tag has here: nearly always every one, [`Stride::ONE`].
    pub stride: Stride,
    /// The purpose of the tag.
    pub description: Option<String>,
    /// When the row was last changed, where the store knows.
    pub update_time: Option<UnixMillis>,
    /// Number and step as the table shows them, if one is unusable: negative, `NULL` or of another type.
    pub unusable: Option<[String; 2]>,
}

impl SegmentTag {
    /// A tag of every number, with nothing more to be said of it.
    pub fn new(key: impl Into<String>, max_id: i64, step: i64) -> Self {
        let (stride, description, update_time, unusable) = (Stride::ONE, None, None, None);
        Self {
            key: key.into(),
            max_id,
            step,
            stride,
            description,
            update_time,
            unusable,
        }
    }

    /// Number and step, or the texts that the table has in their place.
    pub fn shown(&self) -> [String; 2] {
        let numbers = || [self.max_id, self.step].map(|number| number.to_string());
        self.unusable.clone().unwrap_or_else(numbers)
    }
}

/// A tag to be added: checked, so that every store can keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSegmentTag(SegmentTag);

impl Deref for NewSegmentTag {
    type Target = SegmentTag;

    fn deref(&self) -> &SegmentTag {
        &self.0
    }
}

impl NewSegmentTag {
    /// The longest name, in characters: what `biz_tag` has room for.
    pub const MAX_KEY: usize = 128;
    /// The longest description, in characters.
    pub const MAX_DESCRIPTION: usize = 256;
    /// The largest step: what the table's column has room for.
    pub const MAX_STEP: u64 = i32::MAX.unsigned_abs() as u64;

    /// A tag whose numbers begin at 1, as in Leaf, and are fetched `step` at a time.
    ///
    /// # Errors
    /// [`IdError::Invalid`] if the name is empty, longer than 128 characters, or has control
    /// characters, those of bidirectional text too, or white space at an end; [`IdError::OutOfRange`] if the step is not 1 to 2^31 - 1.
    pub fn new(key: impl Into<String>, step: u64) -> Result<Self, IdError> {
        let key = key.into();
        let wrong = |reason: &str| Err(IdError::invalid("key", reason));
        if key.is_empty() || key.chars().count() > Self::MAX_KEY {
            return wrong("it must have 1 to 128 characters");
        }
        if key.trim() != key || key.contains(is_control) {
            return wrong("it must not begin or end with white space or have control characters");
        }
        IdError::check("step", step, 1, Self::MAX_STEP)?;
        Ok(Self(SegmentTag::new(key, 1, signed(step))))
    }

    /// The first number to be handed out, instead of 1: for numbers that another system began.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if it is 2^63 - 1 or more.
    pub fn starting_at(mut self, first: u64) -> Result<Self, IdError> {
        IdError::check("first", first, 0, MAX - 1)?;
        self.0.max_id = signed(first);
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

/// A number that was checked to be at most [`MAX`].
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
