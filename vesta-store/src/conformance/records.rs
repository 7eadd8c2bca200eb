//! Records as tests read and write them: without the rules of namespaces, births and marks.

use std::ops::Deref;
use std::sync::Arc;

use vesta_service::lease::{KvStore, Leases, Namespace, Record, StoreError};

use crate::import;

/// The records in a store. Records written here are marked; namespace and birth are hidden.
#[derive(Debug, Clone)]
pub struct Records(pub Arc<dyn KvStore>);

/// The parts of a record that a change expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expect {
    /// [`Record::epoch`].
    pub epoch: u64,
    /// [`Record::owner`].
    pub owner: u128,
    /// [`Record::bound`].
    pub bound: u64,
}

/// The outcome of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cas {
    /// The record is now the new one.
    Done,
    /// The record was not as expected; this is the current one.
    Conflict(Record),
}

/// Shorthands for tests.
pub trait RecordExt {
    /// The parts that a change expects.
    fn expect(&self) -> Expect;

    /// An absent record.
    fn unclaimed(floor: u64) -> Self;
}

impl RecordExt for Record {
    fn expect(&self) -> Expect {
        Expect {
            epoch: self.epoch,
            owner: self.owner,
            bound: self.bound,
        }
    }

    fn unclaimed(_floor: u64) -> Self {
        Self::default()
    }
}

fn shown(record: Record) -> Record {
    Record {
        namespace: 0,
        birth: 0,
        ..record
    }
}

impl Records {
    fn of(&self, namespace: &str) -> Result<(Leases, Namespace), StoreError> {
        let leases = Leases::new(self.0.clone(), namespace);
        let missing = || StoreError::permanent(format!("namespace `{namespace}` was not opened"));
        let found = leases.find()?.ok_or_else(missing)?;
        Ok((leases, found))
    }

    /// Opens a namespace.
    ///
    /// # Errors
    /// As [`Leases::open`].
    pub fn open_namespace(
        &self,
        namespace: &str,
        fingerprint: &str,
    ) -> Result<Namespace, StoreError> {
        Leases::new(self.0.clone(), namespace).open(fingerprint)
    }

    /// Every record.
    ///
    /// # Errors
    /// As [`Leases::snapshot`].
    pub fn list(&self, namespace: &str) -> Result<Vec<(u64, Record)>, StoreError> {
        let records = self.of(namespace)?.0.snapshot()?.records;
        Ok(records
            .into_iter()
            .map(|(machine, record)| (machine, shown(record)))
            .collect())
    }

    /// One record.
    ///
    /// # Errors
    /// As [`Leases::record`].
    pub fn read(&self, namespace: &str, machine: u64) -> Result<Option<Record>, StoreError> {
        Ok(self.of(namespace)?.0.record(machine)?.map(shown))
    }

    /// Changes a record, if these parts are as expected.
    ///
    /// # Errors
    /// As [`Leases::change`].
    pub fn cas(
        &self,
        namespace: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        let (leases, Namespace { uuid, .. }) = self.of(namespace)?;
        let seen = leases.snapshot()?;
        let current = seen.records.get(&machine);
        let birth = current.map_or(1, |record| record.birth);
        let new = Record {
            namespace: uuid,
            birth,
            ..new.clone()
        };
        if current.cloned().unwrap_or_default().expect() == *expect
            && import::put(&leases, &seen, machine, &new)? == vesta_service::lease::Cas::Done
        {
            return Ok(Cas::Done);
        }
        Ok(Cas::Conflict(
            leases.record(machine)?.map_or_else(Record::default, shown),
        ))
    }

    /// Raises the floor.
    ///
    /// # Errors
    /// As [`Leases::raise_floor`].
    pub fn raise_floor(&self, namespace: &str, floor: u64) -> Result<u64, StoreError> {
        self.of(namespace)?.0.raise_floor(floor)
    }
}

impl Deref for Records {
    type Target = dyn KvStore;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
