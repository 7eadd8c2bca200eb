//! Records that this process held, kept in its own memory: neither a store nor a folder can take them back.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use vesta_intf::IdMeta;

use crate::lease::{Local, Record};

/// Records by namespace and layout, uuid of the namespace, and machine ID.
type Records = BTreeMap<(String, u128, u64), Record>;

/// Records that the services of a process held in one namespace, as last acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Own {
    records: Arc<Mutex<Records>>,
    namespace: String,
    /// Uuids that the namespace had while this service ran.
    uuids: Vec<u128>,
}

impl Own {
    /// Records of this process, shared with its other services.
    pub(crate) fn of_process(namespace: &str, meta: &IdMeta) -> Self {
        static RECORDS: LazyLock<Arc<Mutex<Records>>> = LazyLock::new(Arc::default);
        let namespace = format!("{namespace} {}", meta.fingerprint());
        Self {
            records: RECORDS.clone(),
            namespace,
            uuids: Vec::new(),
        }
    }

    pub(super) fn remember(&self, machine: u64, record: &Record) {
        let key = (self.namespace.clone(), record.namespace, machine);
        self.records.lock().insert(key, record.clone());
    }

    /// Records under this uuid of the namespace, and under those that it had before: no claim starts below
    /// them (SAFETY.md, rule 8).
    pub(super) fn under(&mut self, uuid: Option<u128>) -> Vec<Local> {
        self.uuids
            .extend(uuid.filter(|uuid| !self.uuids.contains(uuid)));
        let records = self.records.lock();
        let under = |uuid: &u128| {
            let [first, last] = [0, u64::MAX].map(|m| (self.namespace.clone(), *uuid, m));
            records.range(first..=last)
        };
        let local = |((.., machine), record): (&(String, u128, u64), &Record)| Local {
            machine: *machine,
            record: record.clone(),
            is_damaged: false,
            elsewhere: Vec::new(),
        };
        self.uuids.iter().flat_map(under).map(local).collect()
    }

    /// Record of a machine ID with the highest bound.
    pub(super) fn last(&self, machine: u64) -> Option<Record> {
        let records = self.records.lock();
        let of = |uuid: &u128| records.get(&(self.namespace.clone(), *uuid, machine));
        self.uuids
            .iter()
            .filter_map(of)
            .max_by_key(|record| record.bound)
            .cloned()
    }
}
