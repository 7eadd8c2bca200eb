//! A store in memory: the reference that the other stores are compared with.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::{Cas, Expect, LeaseStore, Namespace, Record, StoreError, Timing};

type Records = BTreeMap<u64, Record>;

/// Records in this process's memory. For tests and simulations: it forgets everything at exit.
#[derive(Debug, Default)]
pub struct MemoryStore {
    namespaces: Mutex<BTreeMap<String, (Namespace, Records)>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything, as a database does that is restored from an empty backup.
    pub fn forget(&self) {
        for (meta, records) in self.namespaces.lock().values_mut() {
            meta.uuid = crate::random::u128();
            meta.floor = 0;
            records.clear();
        }
    }
}

fn missing(namespace: &str) -> StoreError {
    StoreError::permanent(format!("namespace `{namespace}` was not opened"))
}

impl LeaseStore for MemoryStore {
    fn describe(&self) -> String {
        "memory".into()
    }

    fn timing(&self) -> Timing {
        Timing::ONE_HOST
    }

    fn open_namespace(&self, namespace: &str, fingerprint: &str) -> Result<Namespace, StoreError> {
        let mut namespaces = self.namespaces.lock();
        let (meta, _) = namespaces.entry(namespace.into()).or_insert_with(|| {
            let fingerprint = fingerprint.into();
            (Namespace { uuid: crate::random::u128(), fingerprint, floor: 0 }, BTreeMap::new())
        });
        Ok(meta.clone())
    }

    fn raise_floor(&self, namespace: &str, floor: u64) -> Result<u64, StoreError> {
        let mut namespaces = self.namespaces.lock();
        let (meta, _) = namespaces.get_mut(namespace).ok_or_else(|| missing(namespace))?;
        meta.floor = meta.floor.max(floor);
        Ok(meta.floor)
    }

    fn list(&self, namespace: &str) -> Result<Vec<(u64, Record)>, StoreError> {
        let namespaces = self.namespaces.lock();
        let (_, records) = namespaces.get(namespace).ok_or_else(|| missing(namespace))?;
        Ok(records.iter().map(|(machine, record)| (*machine, record.clone())).collect())
    }

    fn read(&self, namespace: &str, machine: u64) -> Result<Option<Record>, StoreError> {
        let namespaces = self.namespaces.lock();
        let (_, records) = namespaces.get(namespace).ok_or_else(|| missing(namespace))?;
        Ok(records.get(&machine).cloned())
    }

    fn cas(
        &self,
        namespace: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        let mut namespaces = self.namespaces.lock();
        let (meta, records) = namespaces.get_mut(namespace).ok_or_else(|| missing(namespace))?;
        let current =
            records.get(&machine).cloned().unwrap_or_else(|| Record::unclaimed(meta.floor));
        if !current.meets(expect) {
            return Ok(Cas::Conflict(current));
        }
        records.insert(machine, new.clone());
        Ok(Cas::Done)
    }
}
