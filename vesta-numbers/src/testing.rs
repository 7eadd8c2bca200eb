//! Tags in memory, on the same entries as in every other store.

use std::ops::Range;
use std::sync::Arc;

use crate::segment::kv::{AREA, KvSegments, entry_key};
use crate::segment::{NewSegmentTag, NextRange, SegmentStore, SegmentTag};
use vesta_intf::UnixMillis;
use vesta_service::inside::AnyClock;
use vesta_service::lease::StoreError;
use vesta_service::testing::{ManualClock, MemoryStore};

/// Time of every change: 2023-11-14T22:13:20Z.
const DATED: UnixMillis = UnixMillis(1_700_000_000_000);

/// Tags in this process's memory. For tests and simulations: it forgets everything at exit.
#[derive(Debug)]
pub struct MemorySegmentStore {
    entries: Arc<MemoryStore>,
    tags: KvSegments,
}

impl Default for MemorySegmentStore {
    fn default() -> Self {
        let entries = Arc::new(MemoryStore::new());
        let clock = AnyClock::Other(Arc::new(ManualClock::at(DATED)));
        Self {
            tags: KvSegments::in_area(entries.clone(), AREA, clock),
            entries,
        }
    }
}

impl MemorySegmentStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a tag without validation, as an operator with a database client does.
    ///
    /// # Panics
    /// Never: the in-memory store always answers.
    pub fn put(&self, tag: SegmentTag) {
        self.remove(&tag.key);
        self.tags
            .put_as_is(None, tag, None)
            .expect("memory answers");
    }

    /// Removes a tag.
    pub fn remove(&self, key: &str) {
        self.entries.delete(AREA, &entry_key(key));
    }
}

impl SegmentStore for MemorySegmentStore {
    fn describe(&self) -> String {
        self.tags.describe()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        self.tags.tags()
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        self.tags.next_range(key, step)
    }

    fn give_back(&self, key: &str, numbers: Range<u64>) -> Result<bool, StoreError> {
        self.tags.give_back(key, numbers)
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        self.tags.create(tag)
    }
}
