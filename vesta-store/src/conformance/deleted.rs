//! Entries that somebody deletes behind everybody's back: no request of a [`KvStore`] does that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use vesta_service::{KvStore, StoreError, Suspicion, Timing, UnixMillis};

type Entries = BTreeMap<(String, String), String>;

/// A store without its deleted entries. An entry is deleted as long as it has the value that it had
/// then: no two requests put the same value.
#[derive(Debug, Clone)]
pub(super) struct WithoutDeleted {
    pub(super) inner: Arc<dyn KvStore>,
    pub(super) deleted: Deleted,
}

/// The deleted entries, by area and key; shared by all connections to a store.
#[derive(Debug, Clone, Default)]
pub(super) struct Deleted(Arc<Mutex<Entries>>);

impl Deleted {
    fn value(&self, area: &str, key: &str) -> Option<String> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(&(area.to_owned(), key.to_owned())).cloned()
    }
}

impl WithoutDeleted {
    /// Deletes an entry.
    pub(super) fn delete(&self, area: &str, key: &str) {
        let value = self.inner.get(area, key).expect("the store answers").expect("an entry");
        let mut entries = self.deleted.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.insert((area.into(), key.into()), value);
    }
}

impl KvStore for WithoutDeleted {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn timing(&self) -> Timing {
        self.inner.timing()
    }

    fn doubt(&self) -> Result<Option<Suspicion>, StoreError> {
        self.inner.doubt()
    }

    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        self.inner.now()
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        let mut entries = self.inner.list(area)?;
        entries.retain(|(key, value)| self.deleted.value(area, key).as_ref() != Some(value));
        Ok(entries)
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        let value = self.inner.get(area, key)?;
        Ok(value.filter(|value| self.deleted.value(area, key).as_ref() != Some(value)))
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        let deleted = self.deleted.value(area, key);
        match old {
            Some(old) if deleted.as_deref() == Some(old) => Ok(false),
            None if deleted.is_some() => self.inner.put_if(area, key, deleted.as_deref(), new),
            old => self.inner.put_if(area, key, old, new),
        }
    }
}
