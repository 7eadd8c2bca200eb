//! Machine IDs of one namespace over a [`KvStore`]: the layout of the namespace's area, shared by all stores.
//!
//! ```text
//!  lease/orders    namespace    uuid, fingerprint of the layout, floor
//!                  births-0     marks: which of the machine IDs 0 to 63 were ever created
//!                  17           record of machine ID 17
//! ```

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::codec::{Entry, Marks};
use super::{
    Amendment, Area, Cas, Doubt, KvStore, Namespace, Record, Standing, StoreError, Suspicion,
};

const NAMESPACE: &str = "namespace";
const MARKS: &str = "births-";
/// Number of machine IDs whose marks share an entry: few enough that first starts hardly contend.
const BUCKET: u64 = 64;

/// Machine IDs of one namespace in a store.
#[derive(Debug, Clone)]
pub struct Leases {
    area: Area,
    namespace: String,
    /// Shared by the clones: one check serves all machine IDs of a process.
    last_look: Arc<Mutex<Option<Look>>>,
}

/// Result of a check whether the store may forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    /// Start of the check, on the monotonic clock. No fact of the check is older.
    pub(super) asked: Duration,
    /// Namespace, unless it is gone.
    pub(super) namespace: Option<Namespace>,
    /// Reason that the store gives.
    pub(super) seen: Option<Suspicion>,
}

/// Snapshot of a namespace. Entries are read one after another, so some may be a little newer than others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The namespace itself.
    pub namespace: Namespace,
    /// Records, by machine ID.
    pub records: BTreeMap<u64, Record>,
    /// Marks of all records that were ever created, by bucket.
    pub(super) marks: BTreeMap<u64, Marks>,
}

/// Area of a namespace that has a single machine ID, created and marked.
pub(super) fn entries(
    area: &str,
    name: &str,
    namespace: &Namespace,
    machine: u64,
    record: &Record,
) -> Vec<(String, String)> {
    if area != area_of(name) {
        return Vec::new();
    }
    let births = [(machine, record.birth)].into();
    let marks = Marks {
        namespace: namespace.uuid,
        births,
    };
    vec![
        (NAMESPACE.into(), namespace.encode()),
        (bucket(machine), marks.encode()),
        (machine.to_string(), record.encode()),
    ]
}

fn area_of(namespace: &str) -> String {
    format!("lease/{namespace}")
}

impl Snapshot {
    #[cfg(test)]
    pub(super) fn of(
        namespace: Namespace,
        records: impl IntoIterator<Item = (u64, Record)>,
    ) -> Self {
        Self {
            namespace,
            records: records.into_iter().collect(),
            marks: BTreeMap::new(),
        }
    }

    /// Bucket of marks that a machine ID belongs to.
    pub(super) fn marks_of(&self, machine: u64) -> Option<&Marks> {
        self.marks.get(&(machine / BUCKET))
    }

    /// True if the record of a machine ID was deleted, or replaced by one that is not the marked one.
    pub fn is_lost(&self, machine: u64) -> bool {
        matches!(self.standing(machine), Standing::Lost)
    }

    /// True if the record of a machine ID was created, but its creator stopped before marking it.
    pub fn is_unmarked(&self, machine: u64) -> bool {
        matches!(self.standing(machine), Standing::Unmarked(_))
    }

    fn standing(&self, machine: u64) -> Standing<'_> {
        let (record, marks) = (self.records.get(&machine), self.marks_of(machine));
        Standing::of(self.namespace.uuid, machine, record, marks)
    }

    /// Machine IDs that [are lost](Self::is_lost).
    pub fn lost(&self) -> BTreeSet<u64> {
        let marked = self.marks.values().flat_map(|marks| marks.births.keys());
        let known = self.records.keys().chain(marked).copied();
        known.filter(|machine| self.is_lost(*machine)).collect()
    }
}

impl Leases {
    /// Machine IDs of a namespace; nothing is read or written yet.
    pub fn new(store: Arc<dyn KvStore>, namespace: &str) -> Self {
        let area = Area {
            store,
            name: area_of(namespace),
        };
        Self {
            area,
            namespace: namespace.into(),
            last_look: Arc::default(),
        }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn KvStore> {
        &self.area.store
    }

    /// Entries of the namespace in the store.
    pub(super) const fn area(&self) -> &Area {
        &self.area
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
        let (namespace, seen) = (self.find()?, self.area.store.doubt()?);
        let look = Look {
            asked: now,
            namespace,
            seen,
        };
        *self.last_look.lock() = Some(look.clone());
        Ok(look)
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
    pub fn trust(&self) -> Result<Option<Doubt>, StoreError> {
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

    /// Reads the whole namespace.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, the namespace does not exist, or an entry is
    /// damaged.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let (mut namespace, mut records, mut marks) = (None, BTreeMap::new(), BTreeMap::new());
        for (key, text) in self.area.list()? {
            if key == NAMESPACE {
                namespace = Some(self.area.read(&key, &text)?);
            } else if let Some(bucket) = key.strip_prefix(MARKS).and_then(number) {
                marks.insert(bucket, self.area.read(&key, &text)?);
            } else if let Some(machine) = number(&key) {
                records.insert(machine, self.area.read(&key, &text)?);
            } else {
                return Err(self
                    .area
                    .damaged(&key, "no version of Vesta writes such an entry"));
            }
        }
        let namespace = match namespace {
            Some(namespace) => namespace,
            None => self.opened()?,
        };
        Ok(Snapshot {
            namespace,
            records,
            marks,
        })
    }

    /// Reads the record of one machine ID; `None` if it was never created.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, or the record is damaged.
    pub fn record(&self, machine: u64) -> Result<Option<Record>, StoreError> {
        self.area.get(&machine.to_string())
    }

    /// Replaces a record in one atomic step, if it still is the old one; `None` stands for no record.
    ///
    /// # Errors
    /// [`StoreError`] if it is not known whether the change happened.
    pub fn change(
        &self,
        machine: u64,
        old: Option<&Record>,
        new: &Record,
    ) -> Result<Cas<Record>, StoreError> {
        self.area.put(&machine.to_string(), old, new)
    }

    /// Locks a machine ID against the other processes of this machine; see [`KvStore::lock`].
    pub(crate) fn lock(&self, machine: u64) -> Result<Option<Box<dyn Any + Send>>, StoreError> {
        self.area.store.lock(&self.area.name, &machine.to_string())
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
        loop {
            let old = self.area.get(&bucket(machine))?;
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
            if self.area.put(&bucket(machine), old.as_ref(), &new)? == Cas::Done {
                return Ok(true);
            }
        }
    }
}

/// Key of the bucket that holds the mark of a machine ID.
pub(super) fn bucket(machine: u64) -> String {
    format!("{MARKS}{}", machine / BUCKET)
}

fn number(key: &str) -> Option<u64> {
    key.parse()
        .ok()
        .filter(|number: &u64| number.to_string() == key)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
