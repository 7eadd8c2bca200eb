//! The windows of all claims, as the store saw them: the positions that each process may issue.

use std::collections::BTreeMap;

use vesta_service::lease::Record;

use super::Sender;

/// The positions of one claim.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Window {
    process: u64,
    pub(crate) epoch: u64,
    pub(super) owner: u128,
    /// The bound that was found: all positions that the claim issues are at or above it.
    pub(crate) base: u64,
    /// The bound that the process knows: all positions that it issues are below it.
    pub(crate) told: u64,
    /// The position at which it was released.
    pub(crate) released_at: Option<u64>,
}

impl Window {
    /// The positions that may be issued.
    pub(crate) fn positions(&self) -> (u64, u64) {
        (self.base, self.end())
    }

    /// Exclusive upper bound of these positions.
    pub(crate) fn end(&self) -> u64 {
        self.released_at.map_or(self.told, |at| at.min(self.told))
    }
}

/// The windows of one namespace, by machine ID, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    by_machine: BTreeMap<u64, Vec<Window>>,
    granted: u64,
}

impl Windows {
    /// Records a change of a record.
    pub(super) fn note(&mut self, by: Sender, machine: u64, before: &Record, new: &Record) {
        self.granted = self.granted.max(new.bound);
        let windows = self.by_machine.entry(machine).or_default();
        if new.epoch != before.epoch {
            let (process, epoch, owner) = (by.process, new.epoch, new.owner);
            let base = before.bound;
            windows.push(Window {
                process,
                epoch,
                owner,
                base,
                told: 0,
                released_at: None,
            });
        } else if new.released
            // A later claim of another process may have been forgotten.
            && let Some(window) = windows.iter_mut().rev().find(|it| it.owner == before.owner)
        {
            window.released_at = Some(new.bound);
        }
    }

    /// A process learns of a record: its content about the process's own claim counts from now on.
    pub(super) fn tell(&mut self, by: Sender, machine: u64, record: &Record) {
        let windows = self.by_machine.get_mut(&machine);
        let own = |window: &&mut Window| {
            window.process == by.process && window.epoch == record.epoch && !record.released
        };
        if let Some(window) = windows.and_then(|windows| windows.iter_mut().rev().find(own)) {
            window.told = window.told.max(record.bound);
        }
    }

    /// The window of this process that contains the position; its latest one if none does.
    pub(super) fn find(&self, by: Sender, machine: u64, at: u64) -> Window {
        let windows = self.by_machine.get(&machine).map_or(&[][..], Vec::as_slice);
        let mut own = windows
            .iter()
            .rev()
            .filter(|window| window.process == by.process);
        let latest = own.clone().next().copied().unwrap_or_default();
        own.find(|window| (window.base..window.end()).contains(&at))
            .copied()
            .unwrap_or(latest)
    }

    /// Exclusive upper bound of all positions ever granted.
    pub(super) fn highest_grant(&self) -> u64 {
        self.granted
    }
}
