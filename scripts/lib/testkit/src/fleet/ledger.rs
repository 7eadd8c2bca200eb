//! The ledger that finds repeated IDs.

use std::collections::{HashMap, HashSet};

use vesta_intf::IdMeta;

/// Everything that was received. Every ID must be new, and greater than the last one of its machine: the
/// IDs of one process are checked before those of the next with its machine ID.
#[derive(Debug)]
pub struct Ledger {
    layout: IdMeta,
    all: HashSet<u64>,
    /// The last time and sequence number of each machine ID.
    last: HashMap<u64, (u64, u64)>,
}

impl Ledger {
    /// An empty ledger.
    #[must_use]
    pub fn new(layout: IdMeta) -> Self {
        Self {
            layout,
            all: HashSet::new(),
            last: HashMap::new(),
        }
    }

    /// Adds the IDs that one caller received, in order.
    ///
    /// # Errors
    /// The first wrong ID, and its fault.
    pub fn check(&mut self, ids: &[u64]) -> Result<(), String> {
        for &id in ids {
            if !self.all.insert(id) {
                return Err(format!("{id} twice"));
            }
            let parts = self.layout.unpack(id).map_err(|error| error.to_string())?;
            let position = (parts.time, parts.seq);
            let before = self.last.insert(parts.machine, position);
            if let Some(before) = before.filter(|before| *before >= position) {
                return Err(format!(
                    "{id} after {before:?} of machine {}",
                    parts.machine
                ));
            }
        }
        Ok(())
    }

    /// The number of different IDs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The number of machine IDs.
    #[must_use]
    pub fn machines(&self) -> usize {
        self.last.len()
    }

    /// The latest time, in ticks of the layout.
    #[must_use]
    pub fn latest(&self) -> u64 {
        self.last
            .values()
            .map(|(time, _)| *time)
            .max()
            .unwrap_or_default()
    }
}

#[test]
fn it_finds_a_planted_duplicate_and_a_step_back() {
    let id = |tick: u64| tick << 10 | 7;
    let fresh = || Ledger::new(IdMeta::MAX_PEAK);
    assert_eq!(fresh().check(&[id(1), id(2), id(3)]), Ok(()));
    assert_eq!(
        fresh().check(&[id(1), id(2), id(1)]),
        Err(format!("{} twice", id(1)))
    );
    assert!(
        fresh()
            .check(&[id(2), id(1)])
            .unwrap_err()
            .contains("after")
    );
}
