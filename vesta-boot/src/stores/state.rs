//! States of machine IDs, for output and metrics.

use std::collections::BTreeMap;

use vesta_service::lease::{Record, Snapshot};

/// State of a machine ID that has been claimed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It has an owner, and its bound is in the future.
    Held,
    /// Its owner let the bound pass; it may be taken over after the grace.
    Expired,
    /// It was released.
    Released,
    /// A process of another system holds it.
    Foreign,
    /// Its record was deleted or replaced.
    Lost,
}

impl State {
    /// The names of all states, in output and metrics.
    pub(crate) const NAMES: [&str; 5] = ["held", "expired", "released", "foreign", "lost"];

    pub(crate) const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The state of each machine ID when the clock is at position `now`.
    pub(crate) fn all(found: &Snapshot, now: u64) -> BTreeMap<u64, Self> {
        let state = |record: &Record| match record.owner {
            0 => State::Released,
            Record::FOREIGN => State::Foreign,
            _ if record.bound > now => State::Held,
            _ => State::Expired,
        };
        let known = found
            .records
            .iter()
            .map(|(machine, record)| (*machine, state(record)));
        known
            .chain(
                found
                    .lost()
                    .into_iter()
                    .map(|machine| (machine, State::Lost)),
            )
            .collect()
    }
}
