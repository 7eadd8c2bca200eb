//! Positions of waiting callers, reserved in the order of their arrival.

use std::collections::BTreeSet;
use std::mem::{replace, take};
use std::sync::atomic::AtomicU64 as Count;
use std::time::Duration;

use vesta_intf::{IdError, NotReady, NotReadyReason};

use super::HeldLease;
use crate::fork;
use crate::number::number;
use crate::reentry::Inside;
use crate::sequence::{Claim, Refusal};
use crate::sync::{Mutex, Ordering};

/// Positions that waiting callers gave up.
#[derive(Debug, Default)]
pub(super) struct GivenUp {
    /// Those that another caller may get. All are below the next position of the lease.
    positions: Mutex<BTreeSet<u64>>,
    /// Number of the others.
    lost: Count,
}

impl HeldLease {
    /// Reserves a position for a caller that waits until it is due, at most `ahead` from now: the first one
    /// that another caller gave up, or else the next one.
    ///
    /// A position that was given up keeps the order for a caller that arrives before it is due: each ID
    /// returned so far was due then, so its position is lower. Once it is due, a larger one may have been
    /// returned, and it is lost.
    pub(crate) fn reserve(
        &self,
        ahead: Duration,
        max_wait: Duration,
    ) -> Result<Reserved<'_>, IdError> {
        self.check_end()?;
        let now = self.ticks.now().map_err(|behind| self.why_not(behind))?;
        let slices = self.ticks.slices(ahead);
        let rules = self.rules.reserving(slices);
        let given_up = self.take_given_up(now, rules.cap(now, 1));
        let next = || self.populator.claim(now, 1, &rules, self.bound());
        let position = given_up.map_or_else(|| next().map(|claim| claim.start), Ok);
        let position = position.map_err(|refusal| match refusal {
            // A caller that waits longer gets it only when it is due.
            Refusal::SequenceUsedUp { until } => self.explain(Refusal::SequenceUsedUp {
                until: until.saturating_add(slices),
            }),
            refusal => self.explain(refusal),
        })?;
        let wake = self.rules.wake(position);
        let in_time = self.ticks.until(wake) <= max_wait;
        Ok(Reserved {
            lease: self,
            position,
            wake: if in_time {
                wake
            } else {
                self.rules.due(position)
            },
            is_issued: false,
        })
    }

    /// The first position given up that is not due yet, and below `end`.
    fn take_given_up(&self, now: u64, end: u64) -> Option<u64> {
        let mut given_up = self.given_up.positions.lock();
        let ahead = given_up.split_off(&self.rules.cap(now, 1));
        self.lose(&replace(&mut *given_up, ahead));
        let first = given_up.first().copied().filter(|first| *first < end)?;
        given_up.remove(&first);
        Some(first)
    }

    /// Gives up a reserved position. The last positions taken go back to the populator; the others wait for
    /// another caller.
    fn give_up(&self, position: u64) {
        if self.ticks.is_forked() {
            return; // takes no lock: another thread of the parent may have held it at the fork
        }
        let _inside = Inside::enter();
        let mut given_up = self.given_up.positions.lock();
        given_up.insert(position);
        while let Some(start) = given_up.last().copied()
            && self.give_back(Claim {
                start,
                end: start + 1,
            })
        {
            given_up.pop_last();
        }
        drop(given_up);
        if self.is_sealed() {
            self.lose_given_up();
        }
    }

    /// Forgets the positions given up, after the lease was sealed.
    pub(super) fn lose_given_up(&self) {
        self.lose(&take(&mut *self.given_up.positions.lock()));
    }

    fn lose(&self, positions: &BTreeSet<u64>) {
        let count = number(positions.len());
        self.given_up.lost.fetch_add(count, Ordering::Relaxed); // a statistic
    }

    /// Number of positions given up that no caller can get any more.
    pub(super) fn lost(&self) -> u64 {
        if let Ok(now) = self.ticks.now() {
            self.take_given_up(now, 0); // forgets those that are due
        }
        self.given_up.lost.load(Ordering::Relaxed)
    }
}

/// Position that a waiting caller has taken before it is due. Dropped before it is issued, it is given up.
#[derive(Debug)]
pub(crate) struct Reserved<'a> {
    lease: &'a HeldLease,
    pub(super) position: u64,
    /// Slice to sleep until.
    wake: u64,
    is_issued: bool,
}

impl<'a> Reserved<'a> {
    /// Issues the position, once it is due.
    pub(crate) fn issue(&mut self) -> Result<(&'a HeldLease, Claim), IdError> {
        let (ticks, rules) = (&self.lease.ticks, &self.lease.rules);
        let _inside = Inside::enter()?;
        if ticks.is_forked() {
            return Err(fork::refusal()); // it is the parent's
        }
        if !ticks.has_reached(rules.due(self.position)) {
            let (retry_after, why) = (ticks.until(self.wake), NotReadyReason::SequenceUsedUp);
            return Err(NotReady { retry_after, why }.into());
        }
        self.is_issued = true;
        let (start, end) = (self.position, self.position + 1);
        Ok((self.lease, Claim { start, end }))
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if !self.is_issued {
            self.lease.give_up(self.position);
        }
    }
}
