//! Plan of a claim: its target and its process. Pure.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use vesta_intf::{IdMeta, UnixMillis};

use super::Now;
#[cfg(test)]
use super::USUAL_DOUBTFUL_WINDOW;
use super::candidates::step;
use crate::lease::{
    BLOCK, BUCKET, BuildError, Choice, ClaimOrder, Local, Namespace, Record, Standby, Timing,
};
use crate::number::millis;
use crate::sequence::{MAX_BORROW_MILLIS, Rules};

/// Claim plan: the unchanging part of a claim, namely its target and its process.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Display name of the store.
    pub(crate) store: String,
    pub(crate) namespace: String,
    pub(crate) meta: IdMeta,
    pub(crate) rules: Rules,
    pub(crate) timing: Timing,
    pub(crate) choice: Choice,
    pub(crate) order: ClaimOrder,
    /// Number of machine IDs that the process claims.
    pub(crate) count: usize,
    /// Time after which the claim gives up on a store that does not answer.
    pub(crate) claim_timeout: Duration,
    pub(crate) host: String,
    pub(crate) pid: u32,
    /// Index at which the search among unused machine IDs begins, counted from the first of the range.
    pub(crate) start_at: u64,
    /// The store's record may lack up to one window of what was acknowledged: a claim keeps that distance
    /// from it.
    pub(crate) is_damaged: bool,
    /// The store is a pool server, which keeps a record for its owner until the bound has passed.
    pub(crate) keeps_owners: bool,
    /// Operator's setting on whether the store may forget what it acknowledged. If it is not set, the store's
    /// own report counts.
    pub(crate) doubted: Option<bool>,
    /// Longest window that a process uses without announcing it in the namespace.
    pub(crate) usual_window: Duration,
    /// Window under a doubt.
    pub(crate) doubtful_window: Duration,
    /// Set if the process stands by while another one holds its machine ID, and keeps the order of IDs.
    pub(crate) standby: Option<Standby>,
}

impl Plan {
    /// Takes over the longest window that is used on the store without being announced, once it is known.
    pub(crate) fn learn(&mut self, usual: Duration) {
        // Other processes may borrow ahead.
        let usual = usual + Duration::from_millis(MAX_BORROW_MILLIS);
        self.usual_window = self.usual_window.max(usual);
    }

    /// Time for which the record of an expired owner is watched, unless the record asks for more.
    pub(super) fn watch(&self) -> Duration {
        self.timing.renew_every * 3 / 2
    }

    /// Number of machine IDs that a search reads at a time. A search for one machine ID reads a bucket, so that it costs
    /// the same in a pool of any size; one for several, or for the lowest, reads a block.
    const fn part(&self) -> u64 {
        match self.order {
            ClaimOrder::Stable if self.count == 1 => BUCKET,
            _ => BLOCK,
        }
    }

    /// Part that a machine ID belongs to.
    pub(crate) const fn part_of(&self, machine: u64) -> u64 {
        machine / self.part()
    }

    /// Machine IDs of a part.
    pub(crate) const fn machines_of(&self, part: u64) -> RangeInclusive<u64> {
        let first = part.saturating_mul(self.part());
        first..=first.saturating_add(self.part() - 1)
    }

    /// Part that a search reads first: that of a machine ID which this host remembers, or else the one that its
    /// index falls into. So the hosts of a namespace spread over its parts.
    pub(crate) fn home_part(&self, locals: &BTreeMap<u64, Local>) -> u64 {
        let range = self.choice.range();
        if let Some((machine, _)) = locals.range(range.clone()).next() {
            return self.part_of(*machine);
        }
        let index = match self.order {
            ClaimOrder::Stable => self.start_at % (range.end() - range.start() + 1),
            ClaimOrder::Lowest => 0,
        };
        self.part_of(range.start() + index)
    }

    /// First part of the range, and the number of its parts.
    pub(super) fn parts(&self) -> (u64, u64) {
        let range = self.choice.range();
        let [first, last] = [range.start(), range.end()].map(|machine| self.part_of(*machine));
        (first, last - first + 1)
    }

    /// The part to read after this one. A search for any machine ID leaps: adjacent parts are often full together.
    pub(super) fn part_after(&self, part: u64) -> u64 {
        let (first, count) = self.parts();
        let leap = match self.order {
            ClaimOrder::Stable => step(self.start_at / count, count),
            ClaimOrder::Lowest => 1,
        };
        first + (part - first + leap) % count
    }

    /// Sample plan: a pool of this many machine IDs, with a layout that counts seconds.
    #[cfg(test)]
    pub(in crate::lease) fn sample(rules: Rules, window: Duration, machines: u64) -> Self {
        Self {
            store: String::new(),
            namespace: String::new(),
            meta: IdMeta::MAX_PEAK,
            rules,
            timing: Timing {
                window,
                renew_every: Duration::from_secs(1),
                ..Timing::ONE_HOST
            },
            choice: Choice::Any(0..=machines - 1),
            order: ClaimOrder::Lowest,
            count: 1,
            claim_timeout: Duration::ZERO,
            host: String::new(),
            pid: 0,
            start_at: 0,
            is_damaged: false,
            keeps_owners: false,
            doubted: None,
            usual_window: window,
            doubtful_window: USUAL_DOUBTFUL_WINDOW,
            standby: None,
        }
    }

    /// A duration in whole ticks, rounded up.
    pub(super) fn ticks(&self, duration: Duration) -> u64 {
        millis(duration).div_ceil(self.meta.spec().unit.millis())
    }

    pub(super) fn check(&self, namespace: &Namespace) -> Result<(), BuildError> {
        let (ours, theirs) = (self.meta.fingerprint(), namespace.fingerprint.clone());
        if ours == theirs {
            return Ok(());
        }
        Err(BuildError::Fingerprint {
            namespace: self.namespace.clone(),
            theirs,
            ours,
        })
    }

    /// Moment before which every position below the bound lies. Rounded up: a floor at that moment lies above
    /// the bound.
    pub(super) fn used_until(&self, bound: u64) -> UnixMillis {
        let tick = self.rules.tick(bound);
        let tick = tick + u64::from(self.rules.position(tick) < bound);
        self.meta.moment_of(tick).unwrap_or(self.meta.end())
    }

    /// Fields of a record that are for people only.
    pub(super) fn signature(&self, now: &Now) -> Record {
        let (host, pid) = (self.host.clone(), self.pid);
        Record {
            host,
            pid,
            info_time: now.wall,
            ..Record::default()
        }
    }
}
