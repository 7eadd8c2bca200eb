//! Typed entries of one area of a store.

use std::sync::Arc;

use super::{Cas, Entry, KvStore, Put, Secret, StoreError};

/// One area of a store, whose entries are read and replaced as values.
#[derive(Debug, Clone)]
pub struct Area {
    /// The store.
    pub store: Arc<dyn KvStore>,
    /// Name of the area.
    pub name: String,
}

/// Outcome of a compare-and-set. If the entry already has the new value, an earlier copy of this
/// very request took effect: no two requests put the same value (SAFETY.md, rule 1).
pub(super) fn outcome<T: PartialEq>(
    put: bool,
    new: &T,
    current: impl FnOnce() -> Result<Option<T>, StoreError>,
) -> Result<Cas<T>, StoreError> {
    if put {
        return Ok(Cas::Done);
    }
    Ok(match current()? {
        Some(current) if current == *new => Cas::Done,
        current => Cas::Conflict(current),
    })
}

impl Area {
    /// Every entry, as key and text.
    pub fn list(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.store.list(&self.name)
    }

    /// Value of an entry; `None` if the entry does not exist.
    pub fn get<T: Entry>(&self, key: &str) -> Result<Option<T>, StoreError> {
        let text = self.store.get(&self.name, key)?;
        text.map(|text| self.read(key, &text)).transpose()
    }

    /// Replaces an entry in one atomic step, if it still is the old one; `None` stands for no
    /// entry.
    pub fn put<T: Entry>(&self, key: &str, old: Option<&T>, new: &T) -> Result<Cas<T>, StoreError> {
        self.put_with(key, old, new, Secret::default())
    }

    /// [`put`](Self::put) with the proof that the old value is this process's own.
    pub fn put_with<T: Entry>(
        &self,
        key: &str,
        old: Option<&T>,
        new: &T,
        secret: Secret,
    ) -> Result<Cas<T>, StoreError> {
        let put = Put {
            key: key.into(),
            old: old.map(T::encode),
            new: new.encode(),
            secret,
        };
        let done = self.store.put_all(&self.name, &[put])?;
        outcome(done == [true], new, || self.get(key))
    }

    /// Parses the text of an entry.
    pub fn read<T: Entry>(&self, key: &str, text: &str) -> Result<T, StoreError> {
        T::decode(text).map_err(|why| self.damaged(key, &why))
    }

    /// The error of an entry that cannot be read.
    pub fn damaged(&self, key: &str, why: &str) -> StoreError {
        StoreError::permanent(format!("entry `{key}` of {} is damaged: {why}", self.name))
    }
}
