//! Segment mode: its answers, its operations and its commands. Its settings are in `settings`, because the commands need
//! all settings to open the store.

mod answers;
pub(crate) mod command;
mod import;
mod operations;
mod stored;

pub use answers::{
    NewSegment, Numbers, SegmentCreated, SegmentNow, SegmentTags, StoredSegment, Verbatim,
};
pub use command::{LegacySegments, SegmentCommand, SegmentImport};
pub(crate) use operations::create_segment;
