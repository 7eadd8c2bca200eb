//! Snapshot of a namespace: all entries of its areas, or of one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::{BLOCK_OF, BUCKET, Leases, MARKS, NAMESPACE, block_of, bucket, number};
use crate::lease::kv::AT_ONCE;
use crate::lease::{Marks, Namespace, Record, Standing, StoreError};

/// Snapshot of a namespace. Entries are read one after another, so some may be a little newer than others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The namespace itself.
    pub namespace: Namespace,
    /// Records, by machine ID.
    pub records: BTreeMap<u64, Record>,
    /// Marks of all records that were ever created, by bucket.
    pub(in crate::lease) marks: BTreeMap<u64, Marks>,
}

impl Snapshot {
    #[cfg(test)]
    pub(in crate::lease) fn of(
        namespace: Namespace,
        records: impl IntoIterator<Item = (u64, Record)>,
    ) -> Self {
        Self {
            namespace,
            records: records.into_iter().collect(),
            marks: BTreeMap::new(),
        }
    }

    /// Reads again what concerns one machine ID of the first block.
    #[cfg(test)]
    pub(in crate::lease) fn read_again(
        &mut self,
        leases: &Leases,
        machine: u64,
    ) -> Result<(), StoreError> {
        if let Some(record) = leases.record(machine)? {
            self.records.insert(machine, record);
        }
        if let Some(marks) = leases.area.get(&bucket(machine))? {
            self.marks.insert(machine / BUCKET, marks);
        }
        Ok(())
    }

    /// Bucket of marks that a machine ID belongs to.
    pub(in crate::lease) fn marks_of(&self, machine: u64) -> Option<&Marks> {
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
    /// Reads the whole namespace.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, the namespace does not exist, or an entry is
    /// damaged.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let mut all = self.read_block(0, None)?;
        for block in std::mem::take(&mut all.further) {
            let Read { records, marks, .. } = self.read_block(block, None)?;
            all.records.extend(records);
            all.marks.extend(marks);
        }
        self.snapshot_of(all)
    }

    /// Reads the namespace and a bucket or a whole block of its machine IDs, and the records of `others` in that block.
    pub(in crate::lease) fn snapshot_of_part(
        &self,
        machines: &RangeInclusive<u64>,
        others: impl IntoIterator<Item = u64>,
    ) -> Result<Snapshot, StoreError> {
        let block = block_of(*machines.start());
        let others = others.into_iter().filter(|it| block_of(*it) == block);
        let wanted: BTreeSet<u64> = machines.clone().chain(others).collect();
        let mut keys: Vec<_> = wanted.iter().map(u64::to_string).collect();
        keys.push(bucket(*machines.start()));
        keys.extend((block == 0).then(|| NAMESPACE.to_owned()));
        let is_short = keys.len() <= AT_ONCE;
        self.snapshot_of(self.read_block(block, is_short.then_some(&keys))?)
    }

    fn snapshot_of(&self, read: Read) -> Result<Snapshot, StoreError> {
        let Read {
            namespace,
            records,
            marks,
            ..
        } = read;
        Ok(Snapshot {
            namespace: namespace.map_or_else(|| self.opened(), Ok)?,
            records,
            marks,
        })
    }

    /// True if no machine ID of the namespace was ever claimed. Reads one block after another until it finds a claim.
    pub(in crate::lease) fn is_unclaimed(&self) -> Result<bool, StoreError> {
        let mut blocks = vec![0];
        while let Some(block) = blocks.pop() {
            let Read {
                further,
                records,
                marks,
                ..
            } = self.read_block(block, None)?;
            let marked = || marks.values().flat_map(|marks| marks.births.keys());
            let is_gone = |machine: &u64| !records.contains_key(machine);
            if records.values().any(Record::was_ever_claimed) || marked().any(is_gone) {
                return Ok(false);
            }
            blocks.extend(further);
        }
        Ok(true)
    }

    /// Reads these entries of a block, or all.
    fn read_block(&self, block: u64, keys: Option<&Vec<String>>) -> Result<Read, StoreError> {
        let (area, mut read) = (self.block(block), Read::default());
        let entries = match keys {
            Some(keys) => area.store.get_all(&area.name, keys)?,
            None => area.list()?,
        };
        for (key, text) in entries {
            if key == NAMESPACE && block == 0 {
                read.namespace = Some(area.read(&key, &text)?);
            } else if let Some(further) = key.strip_prefix(BLOCK_OF).and_then(number) {
                read.further.push(further);
            } else if let Some(bucket) = key.strip_prefix(MARKS).and_then(number) {
                read.marks.insert(bucket, area.read(&key, &text)?);
            } else if let Some(machine) = number(&key) {
                read.records.insert(machine, area.read(&key, &text)?);
            } else {
                return Err(area.damaged(&key, "no version of Vesta writes such an entry"));
            }
        }
        Ok(read)
    }
}

/// Contents of one area of a namespace.
#[derive(Default)]
struct Read {
    namespace: Option<Namespace>,
    /// Blocks in other areas.
    further: Vec<u64>,
    records: BTreeMap<u64, Record>,
    marks: BTreeMap<u64, Marks>,
}
