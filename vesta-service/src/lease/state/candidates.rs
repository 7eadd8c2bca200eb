//! Candidates: machine IDs to try, in order. Pure.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::lease::{Choice, ClaimOrder, Local, Record};
use crate::sequence::Rules;

/// Candidate query: the facts that the choice depends on.
pub(in crate::lease) struct Survey<'a> {
    /// Machine IDs that were read.
    pub(in crate::lease) block: RangeInclusive<u64>,
    /// Every record of them.
    pub(in crate::lease) records: &'a BTreeMap<u64, Record>,
    /// The same records, as seen by the previous survey.
    pub(in crate::lease) earlier: Option<&'a BTreeMap<u64, Record>>,
    /// Time since then, by this process's monotonic clock.
    pub(in crate::lease) watched: Duration,
    /// Time for which the record of an expired owner must stay unchanged.
    pub(in crate::lease) watch: Duration,
    /// Records held by processes of this host that are all gone.
    pub(in crate::lease) locals: &'a BTreeMap<u64, Local>,
    pub(in crate::lease) choice: &'a Choice,
    pub(in crate::lease) order: ClaimOrder,
    /// Position of the clock.
    pub(in crate::lease) now: u64,
    /// Grace: ticks after its bound before a record of an expired owner may be taken over.
    pub(in crate::lease) grace_ticks: u64,
    pub(in crate::lease) rules: &'a Rules,
    /// Index at which the unused machine IDs begin to be tried.
    pub(in crate::lease) start_at: u64,
    /// Random number that decides where the search continues among them; differs from process to process.
    pub(in crate::lease) random: u64,
    /// Number of slots that share this survey; each tries a different machine ID.
    pub(in crate::lease) count: usize,
}

/// Machine ID to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::lease) struct Candidate {
    pub(in crate::lease) machine: u64,
    /// The owner can no longer use it, but may come back during its grace: tried only if there is no other.
    pub(in crate::lease) in_grace: bool,
}

/// Unused machine IDs tried per survey. A try costs two small requests, another survey reads
/// the whole part. Of 1,000 processes that start at once on an empty pool of 1,024, few need a second survey.
const UNUSED_AT_ONCE: usize = 16;

impl Survey<'_> {
    /// Candidates in this order: this host's own last one; unused; released; expired, longest expired first.
    /// With [`ClaimOrder::Lowest`], all of these by machine ID. Last come those whose owner can no longer use
    /// them but is within its grace. The grace keeps machine IDs stable; it does not keep processes from
    /// starting.
    pub(in crate::lease) fn candidates(&self) -> Vec<Candidate> {
        let range = self.range();
        let mut known: Vec<_> = self
            .records
            .range(range)
            .filter_map(|(machine, record)| Some((self.rank(*machine, record)?, *machine, record)))
            .collect();
        known.sort_by_key(|(rank, machine, record)| (*rank, record.bound, *machine));
        let own = known.partition_point(|(rank, ..)| *rank == Rank::Own);
        let mut found: Vec<_> = known
            .into_iter()
            .map(|(rank, machine, _)| Candidate {
                machine,
                in_grace: rank == Rank::InGrace,
            })
            .collect();
        found.splice(own..own, self.unused());
        if self.order == ClaimOrder::Lowest {
            found.sort_by_key(|candidate| (candidate.in_grace, candidate.machine));
        }
        found
    }

    /// Machine IDs that may be claimed, among those that were read.
    fn range(&self) -> RangeInclusive<u64> {
        let (block, range) = (&self.block, self.choice.range());
        *block.start().max(range.start())..=*block.end().min(range.end())
    }

    /// The index at which to begin, counted from the first machine ID of this part of the range.
    fn start_in(&self, part: &RangeInclusive<u64>) -> u64 {
        let whole = self.choice.range();
        let count = whole.end() - whole.start() + 1;
        let start = whole.start() + self.start_at % count;
        if part.contains(&start) {
            start - part.start()
        } else {
            self.start_at
        }
    }

    /// Lowest bound, above the clock, of a machine ID that was given back. It is free once the clock is there.
    pub(in crate::lease) fn next_free(&self) -> Option<u64> {
        let records = self.records.range(self.range()).map(|(_, record)| record);
        let given_back = records.filter(|record| record.owner == 0 && record.bound > self.now);
        given_back.map(|record| record.bound).min()
    }

    /// True if a record in the range can become free within this many ticks.
    pub(in crate::lease) fn may_end_within(&self, ticks: u64) -> bool {
        self.records.range(self.range()).any(|(_, record)| {
            !self.is_elsewhere(record)
                && self.rules.tick(record.bound) <= self.rules.tick(self.now) + ticks
        })
    }

    /// True if a process of another system holds the record. Only a start that names the machine ID may claim
    /// it.
    fn is_elsewhere(&self, record: &Record) -> bool {
        record.owner == Record::FOREIGN && matches!(self.choice, Choice::Any(_))
    }

    fn rank(&self, machine: u64, record: &Record) -> Option<Rank> {
        let own = self
            .locals
            .get(&machine)
            .is_some_and(|Local { record: local, .. }| {
                local.epoch > 0
                    && record.epoch == local.epoch
                    && (record.owner == local.owner || record.released)
            });
        if own || matches!(self.choice, Choice::Only { alone: true, .. }) {
            return Some(Rank::Own);
        }
        if record.owner == 0 {
            let free = record.bound <= self.now || matches!(self.choice, Choice::Only { .. });
            return free.then_some(Rank::Released);
        }
        if self.is_elsewhere(record) {
            return None;
        }
        let silent = self
            .earlier
            .is_some_and(|earlier| earlier.get(&machine) == Some(record))
            && self.watched >= record.silence().max(self.watch);
        let (bound, now) = (self.rules.tick(record.bound), self.rules.tick(self.now));
        let rank = if bound + self.grace_ticks <= now {
            Rank::Expired
        } else {
            Rank::InGrace
        };
        // An owner that keeps the order has stopped by its own clock; this process's clock does not matter.
        let named = matches!(self.choice, Choice::Only { .. });
        let is_over = bound <= now || record.standby.is_some() && named;
        (silent && is_over).then_some(rank)
    }

    fn unused(&self) -> Vec<Candidate> {
        let range = self.range();
        let (first, count) = (*range.start(), range.end() - range.start() + 1);
        let from = |start_at: u64, step: u64| {
            std::iter::successors(Some(start_at % count), move |at| Some((at + step) % count))
                .zip(range.clone())
                .map(move |(at, _)| first + at)
                .filter(|machine| !self.records.contains_key(machine))
        };
        let at_once = UNUSED_AT_ONCE.max(self.count);
        let machines: Vec<u64> = match self.order {
            // Adjacent ones, from the home slot on: this host writes its records of neighbours together.
            // Processes that lose a race for the same machine ID continue elsewhere, each with its own start and
            // step: otherwise they would queue up behind one another.
            ClaimOrder::Stable => {
                // Runs of two pools either coincide or are disjoint, and each run fills the pages that it is
                // on.
                let start = self.start_in(&range);
                let start = start - start % self.count.max(1) as u64;
                let distance = |machine: u64| (machine - first + count - start % count) % count;
                let home: Vec<u64> = from(start, 1).take(self.count).collect();
                let beyond = home.last().map_or(0, |last| distance(*last));
                let others = from(self.random, step(self.random / count, count));
                let others = others.filter(|machine| distance(*machine) > beyond);
                home.iter()
                    .copied()
                    .chain(others.take(at_once - 1))
                    .collect()
            }
            ClaimOrder::Lowest => from(0, 1).take(at_once).collect(),
        };
        let unused = |machine| Candidate {
            machine,
            in_grace: false,
        };
        machines.into_iter().map(unused).collect()
    }
}

/// Step that visits all of `count` slots.
pub(super) fn step(random: u64, count: u64) -> u64 {
    let leads_through_all = |step: &u64| greatest_common_divisor(count, *step) == 1;
    (random % count..).find(leads_through_all).unwrap_or(1)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Own,
    Released,
    Expired,
    InGrace,
}

#[cfg(test)]
mod tests;
