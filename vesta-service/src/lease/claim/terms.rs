//! Where a claim begins, what it writes, and whether it took effect. Pure.

use crate::lease::{Cas, Record};
use crate::sequence::Rules;

/// What decides where a claim begins and how far it reaches.
#[derive(Debug)]
pub(in crate::lease) struct Terms<'a> {
    pub(in crate::lease) rules: &'a Rules,
    /// How many ticks a window has.
    pub(in crate::lease) window_ticks: u64,
    /// No claim of the namespace begins below this position.
    pub(in crate::lease) floor: u64,
    /// The bound that this host remembers of the machine ID; 0 if it remembers none.
    pub(in crate::lease) remembered: u64,
    /// The record may be older than what was lost, by at most a window: keep that distance.
    pub(in crate::lease) guard: bool,
    /// No position before this tick.
    pub(in crate::lease) from_tick: u64,
}

impl Terms<'_> {
    /// The first position that a claim of this record may issue.
    pub(in crate::lease) fn start(&self, record: &Record) -> u64 {
        let known = record.bound.max(self.floor).max(self.remembered);
        let guarded = if self.guard {
            self.rules.position(self.rules.tick(known) + 1 + self.window_ticks)
        } else {
            known
        };
        guarded.max(self.rules.position(self.from_tick))
    }

    /// What a claim that begins at `start` makes of this record, but for what people read.
    pub(in crate::lease) fn claimed(
        &self,
        record: &Record,
        start: u64,
        owner: u128,
        attempt: u64,
    ) -> Record {
        let tick = self.rules.tick(start);
        let bound = self.rules.position(tick.saturating_add(self.window_ticks));
        Record { epoch: record.epoch + 1, owner, bound, attempt, ..Record::default() }
    }
}

/// Whether a claim took effect: now, or by an attempt whose reply was lost.
pub(in crate::lease) fn took_effect(outcome: &Cas, claimed: &Record) -> bool {
    match outcome {
        Cas::Done => true,
        Cas::Conflict(current) => {
            current.attempt == claimed.attempt && current.meets(&claimed.expect())
        }
    }
}
