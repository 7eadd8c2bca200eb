//! A store in memory: the reference that the databases are compared with.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::{NewSegmentTag, NextRange, SegmentStore, SegmentTag, StoreError};

/// Tags in this process's memory. For tests and simulations: it forgets everything at exit.
#[derive(Debug, Default)]
pub struct MemorySegmentStore {
    tags: Mutex<BTreeMap<String, SegmentTag>>,
}

impl MemorySegmentStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a row as it comes, as a person with a database client does.
    pub fn put(&self, tag: SegmentTag) {
        self.tags.lock().insert(tag.key.clone(), tag);
    }

    /// Removes a tag; `false` if there is none.
    pub fn remove(&self, key: &str) -> bool {
        self.tags.lock().remove(key).is_some()
    }
}

impl SegmentStore for MemorySegmentStore {
    fn describe(&self) -> String {
        "memory".into()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        Ok(self.tags.lock().values().cloned().collect())
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        let mut tags = self.tags.lock();
        let Some(tag) = tags.get_mut(key) else { return Ok(NextRange::NoTag) };
        let start = u64::try_from(tag.max_id)
            .map_err(|_| StoreError::permanent(format!("max_id of tag `{key}` is negative")))?;
        let Some(max_id) = i64::try_from(step).ok().and_then(|step| tag.max_id.checked_add(step))
        else {
            return Ok(NextRange::UsedUp);
        };
        tag.max_id = max_id;
        Ok(NextRange::Numbers(start..start + step))
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        let mut tags = self.tags.lock();
        if tags.contains_key(tag.key()) {
            return Ok(false);
        }
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX); // checked when it was made
        let row = SegmentTag {
            key: tag.key().into(),
            max_id: signed(tag.first()),
            step: signed(tag.step()),
            description: tag.description().map(Into::into),
            update_time: None,
        };
        tags.insert(tag.key().into(), row);
        Ok(true)
    }
}
