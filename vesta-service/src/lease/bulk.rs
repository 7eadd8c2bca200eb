//! Many changes in few requests: records side by side, and all marks of a bucket in one change.

use std::collections::BTreeMap;

use super::area::outcome;
use super::history::ended;
use super::kv::{AT_ONCE, Put};
use super::leases::{block_of, bucket};
use super::state::{Answer, Write};
use super::{Cas, Entry, Leases, Marks, Secret, StoreError};
use crate::error::ask_store;

/// Change of one entry, and the indices of the writes that asked for it.
struct Change {
    /// Block of machine IDs that the entry belongs to.
    block: u64,
    put: Put,
    /// If the change is of marks: the bucket with all marks that are asked for at once.
    marks: Option<Marks>,
    askers: Vec<usize>,
}

/// Outcome of a change: it took effect, or the text that is there instead, if any.
type Outcome = Result<Cas<String>, StoreError>;

impl Leases {
    /// Makes changes side by side, each to a different machine ID and each with its own answer.
    pub(super) fn write_all(&self, writes: &[(u64, Write)]) -> Vec<Answer> {
        let mut answers = vec![None; writes.len()];
        // A claim waits until the history is written; renewals do not.
        let archived = self.archive(writes);
        let possible = writes
            .iter()
            .enumerate()
            .filter(|(asker, (_, write))| match &archived {
                Err(error) if ended(write).is_some() => {
                    answers[*asker] = Some(Answer::Failed(error.clone()));
                    false
                }
                _ => true,
            });
        let mut changes: Vec<_> = gathered(possible).into_values().collect();
        changes.sort_by(|one, other| (one.block, &one.put.key).cmp(&(other.block, &other.put.key)));
        let outcomes = self.put_all(&changes);
        for (change, outcome) in changes.iter().zip(outcomes) {
            for asker in &change.askers {
                answers[*asker] = Some(self.answer(change, &writes[*asker].1, outcome.clone()));
            }
        }
        answers
            .into_iter()
            .map(|answer| answer.expect("each write is in one change"))
            .collect()
    }

    fn put_all(&self, changes: &[Change]) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(changes.len());
        // Once the store is unreachable, the remaining chunks fail at once.
        let mut away: Option<StoreError> = None;
        let blocks = changes.chunk_by(|one, other| one.block == other.block);
        for chunk in blocks.flat_map(|block| block.chunks(AT_ONCE)) {
            match &away {
                Some(error) => outcomes.extend(all(chunk, error)),
                None => outcomes.extend(self.put_apart(chunk, &mut away)),
            }
        }
        outcomes
    }

    /// Puts a chunk. After an error, halves it: a change that the store cannot make, such as one to a locked
    /// row, must not hold up the others. If both halves fail, the store counts as unreachable.
    fn put_apart(&self, mut chunk: &[Change], away: &mut Option<StoreError>) -> Vec<Outcome> {
        let done = self.put_chunk(chunk);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut failed = match done {
            Ok(done) => return done.into_iter().map(Ok).collect(),
            Err(error) => error,
        };
        // SAFETY.md, rule 3. A creation is never sent twice: if the first copy arrived late, it could bring
        // back a record that was deleted in between.
        let once = chunk.iter().any(|change| change.put.old.is_none());
        while chunk.len() > 1 && !failed.is_permanent() && !once {
            let (one, other) = chunk.split_at(chunk.len() / 2);
            match (self.put_chunk(one), self.put_chunk(other)) {
                (Ok(first), Ok(second)) => {
                    before.extend(first.into_iter().chain(second).map(Ok));
                    chunk = &[];
                }
                (Ok(done), Err(error)) => {
                    before.extend(done.into_iter().map(Ok));
                    (chunk, failed) = (other, error);
                }
                (Err(error), Ok(done)) => {
                    after.splice(0..0, done.into_iter().map(Ok));
                    (chunk, failed) = (one, error);
                }
                (Err(error), Err(_)) => {
                    failed = error;
                    break;
                }
            }
        }
        if before.is_empty() && after.is_empty() && !failed.is_permanent() {
            *away = Some(failed.clone());
        }
        before
            .into_iter()
            .chain(all(chunk, &failed))
            .chain(after)
            .collect()
    }

    fn put_chunk(&self, chunk: &[Change]) -> Result<Vec<Cas<String>>, StoreError> {
        let block = chunk[0].block;
        let area = self.block(block);
        let puts: Vec<_> = chunk.iter().map(|change| change.put.clone()).collect();
        if puts.iter().any(|put| put.old.is_none()) {
            ask_store(|| self.name_block(block))?;
        }
        let done = ask_store(|| area.store.put_all(&area.name, &puts))?;
        let refused = puts.iter().zip(&done).filter(|(_, done)| !**done);
        let refused: Vec<_> = refused.map(|(put, _)| put.key.clone()).collect();
        let mut current: BTreeMap<_, _> = match &*refused {
            [] => BTreeMap::new(),
            keys => ask_store(|| area.store.get_all(&area.name, keys))?
                .into_iter()
                .collect(),
        };
        let outcome = |(put, done): (Put, bool)| match done {
            true => Cas::Done,
            false => Cas::Conflict(current.remove(&put.key)),
        };
        Ok(puts.into_iter().zip(done).map(outcome).collect())
    }

    fn answer(&self, change: &Change, write: &Write, outcome: Outcome) -> Answer {
        let answered = outcome.and_then(|outcome| match (write, &change.marks) {
            (Write::Record { new, .. }, _) => self.typed(change, outcome, new).map(Answer::Record),
            // The bucket as it now is, including other marks.
            (Write::Marks { .. }, Some(all)) => {
                let current = match self.typed(change, outcome, all)? {
                    Cas::Done => Some(all.clone()),
                    Cas::Conflict(current) => current,
                };
                Ok(Answer::Marks(Cas::Conflict(current)))
            }
            (Write::Marks { .. }, None) => unreachable!("marks are gathered in buckets"),
        });
        answered.unwrap_or_else(Answer::Failed)
    }

    fn typed<T: Entry>(
        &self,
        Change { block, put, .. }: &Change,
        found: Cas<String>,
        new: &T,
    ) -> Result<Cas<T>, StoreError> {
        let (done, current) = match found {
            Cas::Done => (true, None),
            Cas::Conflict(current) => (false, current),
        };
        outcome(done, new, || {
            current
                .map(|text| self.block(*block).read(&put.key, &text))
                .transpose()
        })
    }
}

/// The same error for each change.
fn all(changes: &[Change], error: &StoreError) -> Vec<Outcome> {
    changes.iter().map(|_| Err(error.clone())).collect()
}

/// Changes by key. Marks of one bucket that rest on the same old value are put together: separately, each
/// would have to wait for the one before. A write with a different old value gets the current one as a
/// conflict.
fn gathered<'a>(
    writes: impl Iterator<Item = (usize, &'a (u64, Write))>,
) -> BTreeMap<String, Change> {
    let mut changes: BTreeMap<String, Change> = BTreeMap::new();
    let mut bases: BTreeMap<String, &Option<Marks>> = BTreeMap::new();
    for (asker, (machine, write)) in writes {
        let (key, old, new, marks, secret) = match write {
            Write::Record { old, new } => (
                machine.to_string(),
                old.as_ref().map(Entry::encode),
                new.encode(),
                None,
                old.as_ref().map(|old| old.secret).unwrap_or_default(),
            ),
            Write::Marks { old, new } => {
                let key = bucket(*machine);
                if let Some(change) = changes.get_mut(&key) {
                    change.askers.push(asker);
                    if let Some(all) = change.marks.as_mut().filter(|_| bases[&key] == old) {
                        all.births.extend(&new.births);
                    }
                    continue;
                }
                bases.insert(key.clone(), old);
                (
                    key,
                    old.as_ref().map(Entry::encode),
                    String::new(),
                    Some(new.clone()),
                    Secret::default(),
                )
            }
        };
        let put = Put {
            key: key.clone(),
            old,
            new,
            secret,
        };
        let block = block_of(*machine);
        let replaced = changes.insert(
            key,
            Change {
                block,
                put,
                marks,
                askers: vec![asker],
            },
        );
        debug_assert!(replaced.is_none(), "each machine ID is asked for once");
    }
    for Change { put, marks, .. } in changes.values_mut() {
        if let Some(all) = marks {
            put.new = all.encode();
        }
    }
    changes
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
