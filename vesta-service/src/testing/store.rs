//! An in-memory store: the reference for the other stores.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::error::StoreError;
use crate::lease::{KvStore, Timing};

type Entries = BTreeMap<(String, String), String>;

/// Entries in this process's memory. For tests and simulations: it forgets everything at exit.
#[derive(Debug, Default)]
pub struct MemoryStore {
    entries: Mutex<Entries>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything, like a database restored from an empty backup.
    pub fn forget(&self) {
        self.entries.lock().clear();
    }

    /// Forgets one entry, as if a row had been deleted.
    pub fn delete(&self, area: &str, key: &str) {
        self.entries.lock().remove(&(area.into(), key.into()));
    }
}

impl KvStore for MemoryStore {
    fn describe(&self) -> String {
        "memory".into()
    }

    /// Two of them are two places.
    fn place(&self) -> String {
        format!("memory {self:p}")
    }

    fn timing(&self) -> Timing {
        Timing::ONE_HOST
    }

    fn namespaces(&self) -> Result<Option<Vec<String>>, StoreError> {
        let entries = self.entries.lock();
        let mut names: Vec<String> = entries
            .keys()
            .filter_map(|(area, _)| Some(area.strip_prefix("lease/")?.to_owned()))
            .collect();
        names.dedup();
        Ok(Some(names))
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        let entries = self.entries.lock();
        let inside = entries.iter().filter(|((of, _), _)| of == area);
        Ok(inside
            .map(|((_, key), value)| (key.clone(), value.clone()))
            .collect())
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        Ok(self.entries.lock().get(&(area.into(), key.into())).cloned())
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        let mut entries = self.entries.lock();
        let place = (area.to_owned(), key.to_owned());
        if entries.get(&place).map(String::as_str) != old {
            return Ok(false);
        }
        entries.insert(place, new.into());
        Ok(true)
    }
}
