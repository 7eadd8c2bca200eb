//! Entries that somebody deletes behind everybody's back: no request of a [`KvStore`] does that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use vesta_service::contract::UnixMillis;
use vesta_service::lease::{KvStore, Put, StoreError, Suspicion, Timing};

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

    /// A window of a minute, as many of these tests need it, is usual.
    fn timing(&self) -> Timing {
        let Timing { window, takeover_grace, .. } = Timing::NETWORK;
        Timing { window, takeover_grace, ..self.inner.timing() }
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
        let put = Put { key: key.into(), old: old.map(str::to_owned), new: new.into() };
        self.put_all(area, &[put]).map(|done| done[0])
    }

    fn put_all(&self, area: &str, puts: &[Put]) -> Result<Vec<bool>, StoreError> {
        // Over what counts as deleted: as if there were nothing.
        let seen = |put: &Put| match (&put.old, self.deleted.value(area, &put.key)) {
            (Some(old), Some(deleted)) if *old == deleted => None,
            (None, deleted @ Some(_)) => Some(Put { old: deleted, ..put.clone() }),
            _ => Some(put.clone()),
        };
        let puts: Vec<_> = puts.iter().map(seen).collect();
        let asked: Vec<_> = puts.iter().flatten().cloned().collect();
        let mut done = self.inner.put_all(area, &asked)?.into_iter();
        Ok(puts.iter().map(|put| put.is_some() && done.next() == Some(true)).collect())
    }
}
