//! Machine IDs of one namespace over a [`KvStore`]: the layout of the namespace's area, shared by all stores.
//!
//! ```text
//!  lease/orders     namespace    uuid, fingerprint of the layout, floor
//!                   births-0     marks: which of the machine IDs 0 to 63 were ever created
//!                   17           record of machine ID 17
//!                   block-3      some machine IDs from 3,072 to 4,095 were created
//!  block/orders/3   births-48    marks of the machine IDs 3,072 to 3,135
//!                   3075         record of machine ID 3,075
//! ```
//! The first block of 1,024 machine IDs lies in the namespace's own area, each other one in a separate area. A claim
//! reads a part of a block, however many machine IDs the namespace has and however many of them are in use.

mod snapshot;

use std::any::Any;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::codec::{Entry, Marks, SCHEMA};
use super::state::Write;
use super::writer::judge;
use super::{Amendment, Area, Cas, Doubt, HostGuard, KvStore, Namespace, Record, StoreError};
pub use snapshot::Snapshot;

pub(super) const NAMESPACE: &str = "namespace";
pub(super) const MARKS: &str = "births-";
/// Key that names a block other than the first, once a machine ID of it was created.
pub(super) const BLOCK_OF: &str = "block-";
/// Number of machine IDs whose entries share an area.
pub(super) const BLOCK: u64 = 1024;
/// Number of machine IDs whose marks share an entry: few enough that first starts hardly contend.
pub(super) const BUCKET: u64 = 64;

/// Machine IDs of one namespace in a store.
#[derive(Debug, Clone)]
pub struct Leases {
    area: Area,
    namespace: String,
    /// Shared by the clones: one check serves all machine IDs of a process.
    last_look: Arc<Mutex<Option<Look>>>,
    /// Blocks known to be named in the namespace's area.
    named: Arc<Mutex<BTreeSet<u64>>>,
}

/// Result of a check whether the store may forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    /// Start of the check, on the monotonic clock. No fact of the check is older.
    pub(super) asked: Duration,
    /// Namespace, unless it is gone.
    pub(super) namespace: Option<Namespace>,
    /// Reason to doubt the store.
    pub(super) seen: Option<Doubt>,
    /// Server that answered, if each has its own data.
    pub(super) server: Option<String>,
}

/// Entries of an area of a namespace that has a single machine ID, created and marked.
pub(super) fn entries(
    area: &str,
    name: &str,
    namespace: &Namespace,
    machine: u64,
    record: &Record,
) -> Vec<(String, String)> {
    let (block, mut entries) = (block_of(machine), Vec::new());
    if area == area_of(name, 0) {
        entries.push((NAMESPACE.into(), namespace.encode()));
        entries.extend((block > 0).then(|| (format!("{BLOCK_OF}{block}"), block_text(block))));
    }
    if area == area_of(name, block) {
        let births = [(machine, record.birth)].into();
        let marks = Marks {
            namespace: namespace.uuid,
            births,
        };
        entries.push((bucket(machine), marks.encode()));
        entries.push((machine.to_string(), record.encode()));
    }
    entries
}

/// Area of a block of machine IDs.
fn area_of(namespace: &str, block: u64) -> String {
    match block {
        0 => format!("lease/{namespace}"),
        _ => format!("block/{namespace}/{block}"),
    }
}

/// Block that a machine ID belongs to.
pub(super) const fn block_of(machine: u64) -> u64 {
    machine / BLOCK
}

/// Machine IDs of a block.
pub(super) const fn machines_of(block: u64) -> RangeInclusive<u64> {
    let first = block.saturating_mul(BLOCK);
    first..=first.saturating_add(BLOCK - 1)
}

/// Value of the key that names a block; each block has one.
pub(super) fn block_text(block: u64) -> String {
    let machines = machines_of(block);
    let (first, last) = (machines.start(), machines.end());
    format!(r#"{{"schema":{SCHEMA},"machines":"{first}-{last}"}}"#)
}

impl Leases {
    /// Machine IDs of a namespace; nothing is read or written yet.
    pub fn new(store: Arc<dyn KvStore>, namespace: &str) -> Self {
        let area = Area {
            store,
            name: area_of(namespace, 0),
        };
        Self {
            area,
            namespace: namespace.into(),
            last_look: Arc::default(),
            named: Arc::default(),
        }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn KvStore> {
        &self.area.store
    }

    /// Entries of a block in the store.
    pub(super) fn block(&self, block: u64) -> Area {
        Area {
            store: self.store().clone(),
            name: area_of(&self.namespace, block),
        }
    }

    /// Names a block in the namespace's area before a machine ID of it is created, so that
    /// [`snapshot`](Self::snapshot) finds it.
    pub(super) fn name_block(&self, block: u64) -> Result<(), StoreError> {
        if block > 0 && !self.named.lock().contains(&block) {
            let (area, key) = (&self.area, format!("{BLOCK_OF}{block}"));
            area.store
                .put_if(&area.name, &key, None, &block_text(block))?;
            self.named.lock().insert(block);
        }
        Ok(())
    }

    /// The name of the namespace.
    pub fn name(&self) -> &str {
        &self.namespace
    }

    /// Reads the namespace; `None` if it does not exist.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, or the entry is damaged.
    pub fn find(&self) -> Result<Option<Namespace>, StoreError> {
        self.area.get(NAMESPACE)
    }

    /// Opens the namespace; on first use, creates it with this fingerprint. Returns what is stored; the
    /// caller compares the fingerprint.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, if the entry is damaged, or if it is gone while records
    /// exist.
    pub fn open(&self, fingerprint: &str) -> Result<Namespace, StoreError> {
        match self.find()? {
            Some(found) => Ok(found),
            None => self.create(fingerprint, &Amendment::default()),
        }
    }

    /// Creates the missing namespace with these facts. If another process was faster, returns that one's
    /// namespace.
    pub(super) fn create(
        &self,
        fingerprint: &str,
        facts: &Amendment,
    ) -> Result<Namespace, StoreError> {
        // Records without their namespace: its floor may have been deleted along with it.
        if let Some((key, _)) = self.area.list()?.first()
            && self.find()?.is_none()
        {
            return Err(StoreError::permanent(format!(
                "the entry of namespace `{}` was deleted, but entry `{key}` of {} still exists; \
                 restore it, or use another namespace",
                self.namespace, self.area.name
            )));
        }
        let uuid = crate::random::u128();
        let new = Namespace {
            uuid,
            fingerprint: fingerprint.into(),
            ..Namespace::default()
        };
        self.area.put(NAMESPACE, None, &facts.of(&new))?;
        self.opened()
    }

    fn opened(&self) -> Result<Namespace, StoreError> {
        self.find()?.ok_or_else(|| self.missing())
    }

    fn missing(&self) -> StoreError {
        StoreError::permanent(format!("namespace `{}` does not exist", self.namespace))
    }

    /// Raises the floor, unless it is already higher. Returns the resulting floor. For operators, after a
    /// store has forgotten something.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, or the namespace does not exist.
    pub fn raise_floor(&self, floor: u64) -> Result<u64, StoreError> {
        let raise = |old: &Namespace| Namespace {
            floor: old.floor.max(floor),
            ..old.clone()
        };
        self.change_namespace(raise)
            .map(|namespace| namespace.floor)
    }

    /// The last check, if it is younger than `max_age` at `now`, otherwise a new one.
    pub(super) fn look(&self, now: Duration, max_age: Duration) -> Result<Look, StoreError> {
        let last = self.last_look.lock().clone();
        if let Some(last) = last.filter(|last| now.saturating_sub(last.asked) < max_age) {
            return Ok(last);
        }
        // Not under the lock: while a store does not answer, callers wait for it side by side.
        let namespace = self.find()?;
        let look = self.look_at(namespace, now)?;
        *self.last_look.lock() = Some(look.clone());
        Ok(look)
    }

    /// A check whether the store may forget, and whether the server is the one that wrote to this namespace last.
    pub(super) fn look_at(
        &self,
        namespace: Option<Namespace>,
        asked: Duration,
    ) -> Result<Look, StoreError> {
        let seen = self.doubt(namespace.as_ref())?;
        Ok(Look {
            asked,
            namespace,
            seen,
            server: self.store().writer().map(|it| it.server),
        })
    }

    /// Asks whether the store may forget what it acknowledged, and whether the server is the one that wrote to this
    /// namespace last. Returns the reason for a doubt.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, or if its server may be a second one beside that one.
    pub fn doubt(&self, namespace: Option<&Namespace>) -> Result<Option<Doubt>, StoreError> {
        let seen = self.store().doubt()?;
        match self.store().writer() {
            Some(writer) => judge(namespace.and_then(|it| it.writer.as_deref()), &writer, seen),
            None => Ok(seen),
        }
    }

    /// Adds facts to the namespace. Returns the resulting namespace. If it has another uuid it is left
    /// unchanged; `None` if it is gone.
    pub(super) fn amend(&self, facts: &Amendment) -> Result<Option<Namespace>, StoreError> {
        self.change_if_there(|old| match old.uuid == facts.namespace {
            true => facts.of(old),
            false => old.clone(),
        })
    }

    /// Clears the doubt. For operators, once the store keeps what it acknowledges and has done so for as long
    /// as the doubt reaches. Returns the doubt that was cleared.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, or the namespace does not exist.
    pub fn clear_doubt(&self) -> Result<Option<Doubt>, StoreError> {
        let mut cleared = None;
        self.change_namespace(|old| {
            cleared.clone_from(&old.doubt);
            Namespace {
                doubt: None,
                ..old.clone()
            }
        })?;
        Ok(cleared)
    }

    fn change_namespace(
        &self,
        change: impl FnMut(&Namespace) -> Namespace,
    ) -> Result<Namespace, StoreError> {
        self.change_if_there(change)?.ok_or_else(|| self.missing())
    }

    fn change_if_there(
        &self,
        mut change: impl FnMut(&Namespace) -> Namespace,
    ) -> Result<Option<Namespace>, StoreError> {
        loop {
            let Some(old) = self.find()? else {
                return Ok(None);
            };
            let new = change(&old);
            if new == old || self.area.put(NAMESPACE, Some(&old), &new)? == Cas::Done {
                return Ok(Some(new));
            }
        }
    }

    /// Reads the record of one machine ID; `None` if it was never created.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, or the record is damaged.
    pub fn record(&self, machine: u64) -> Result<Option<Record>, StoreError> {
        self.block(block_of(machine)).get(&machine.to_string())
    }

    /// Replaces a record in one atomic step, if it still is the old one; `None` stands for no record. A claim that it
    /// ends is archived first.
    ///
    /// # Errors
    /// [`StoreError`] if it is not known whether the change happened.
    pub fn change(
        &self,
        machine: u64,
        old: Option<&Record>,
        new: &Record,
    ) -> Result<Cas<Record>, StoreError> {
        match old.cloned() {
            None => self.name_block(block_of(machine))?,
            old => self.archive(&[(
                machine,
                Write::Record {
                    old,
                    new: new.clone(),
                },
            )])?,
        }
        self.block(block_of(machine))
            .put(&machine.to_string(), old, new)
    }

    /// Locks a machine ID against the other processes of this machine; see [`KvStore::lock`].
    pub(crate) fn lock(&self, machine: u64) -> Result<Option<Box<dyn Any + Send>>, StoreError> {
        let Area { store, name } = self.block(block_of(machine));
        store.lock(&name, &machine.to_string())
    }

    /// Marks the birth of a record, replacing the mark that an earlier snapshot shows. For operators' tools,
    /// after they put the record. Returns `false` and changes nothing if another mark was set meanwhile.
    ///
    /// # Errors
    /// [`StoreError`] if it is not known whether the change happened. Repeating the call does no harm.
    pub fn mark_birth(
        &self,
        seen: &Snapshot,
        machine: u64,
        record: &Record,
    ) -> Result<bool, StoreError> {
        let birth_in = |marks: Option<&Marks>| {
            marks
                .filter(|marks| marks.namespace == record.namespace)
                .and_then(|marks| marks.births.get(&machine).copied())
        };
        let area = self.block(block_of(machine));
        loop {
            let old = area.get(&bucket(machine))?;
            let birth = birth_in(old.as_ref());
            if birth == Some(record.birth) {
                return Ok(true);
            }
            if birth != birth_in(seen.marks_of(machine)) {
                return Ok(false);
            }
            let known = old
                .clone()
                .filter(|marks| marks.namespace == record.namespace);
            let mut new = known.unwrap_or_default();
            new.namespace = record.namespace;
            new.births.insert(machine, record.birth);
            if area.put(&bucket(machine), old.as_ref(), &new)? == Cas::Done {
                return Ok(true);
            }
        }
    }
}

/// True if this process guards a machine ID of a namespace on this host.
pub(crate) fn is_own(namespace: &str, machine: u64) -> bool {
    let area = area_of(namespace, block_of(machine));
    HostGuard::is_own(&area, &machine.to_string())
}

/// Key of the bucket that holds the mark of a machine ID.
pub(super) fn bucket(machine: u64) -> String {
    format!("{MARKS}{}", machine / BUCKET)
}

/// Machine IDs whose marks a bucket holds.
pub(super) const fn marked_by(bucket: u64) -> RangeInclusive<u64> {
    let first = bucket.saturating_mul(BUCKET);
    first..=first.saturating_add(BUCKET - 1)
}

/// Parses a number in its only form.
pub(super) fn number(key: &str) -> Option<u64> {
    key.parse()
        .ok()
        .filter(|number: &u64| number.to_string() == key)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
