//! The checker that finds an ID made twice.

use std::collections::{HashMap, HashSet};

use vesta_service::IdMeta;

/// Every ID must be new, and each machine's greater than its last. So the IDs of one process are
/// checked before those of the next with its machine ID.
pub(crate) struct Checker {
    layout: IdMeta,
    seen: HashSet<u64>,
    last: HashMap<u64, u64>,
}

impl Checker {
    pub(crate) fn new(layout: IdMeta) -> Self {
        Self { layout, seen: HashSet::new(), last: HashMap::new() }
    }

    pub(crate) fn check(&mut self, ids: &[u64]) -> Result<(), String> {
        for &id in ids {
            if !self.seen.insert(id) {
                return Err(format!("{id} twice"));
            }
            let parts = self.layout.unpack(id).map_err(|error| error.to_string())?;
            let before = self.last.insert(parts.machine, id);
            if before.is_some_and(|before| before > id) {
                return Err(format!("{id} after {before:?} of machine {}", parts.machine));
            }
        }
        Ok(())
    }

    /// The number of different ones.
    pub(crate) fn count(&self) -> usize {
        self.seen.len()
    }
}
