//! One machine ID, held for as long as its lease: an identity that never changes and is never used
//! again after sealing.

#[cfg(all(test, loom))]
mod races;

use std::sync::OnceLock;

use vesta_intf::{Id, IdError, IdMeta, NotReady, NotReadyReason};

use crate::clock::AnyClock;
use crate::lease::RETRY_AFTER;
use crate::populator::{Populator, PopulatorKind};
use crate::sequence::{Claim, Refusal, Rules};
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use crate::ticks::Ticks;

/// Why a lease issues nothing in the child of a fork.
const FORKED: &str = "this process was forked after the service was built; build it in the child";

/// The held leases of one machine slot, one after another; the last is in force.
#[derive(Debug)]
pub(crate) struct HeldLeases {
    /// The number of the lease in force: 0 is the first, the others count from 1.
    current: AtomicUsize,
    /// The first stands here, where it is reached without following a pointer: most services never
    /// have another.
    first: HeldLease,
    others: boxcar::Vec<HeldLease>,
}

impl HeldLeases {
    pub(crate) fn new(first: HeldLease) -> Self {
        Self { current: AtomicUsize::new(0), first, others: boxcar::Vec::new() }
    }

    /// The lease in force.
    #[inline]
    pub(crate) fn current(&self) -> &HeldLease {
        // Acquire, with the release in `follow`: the lease is complete before its number is seen.
        match self.current.load(Ordering::Acquire) {
            0 => &self.first,
            number => &self.others[number - 1],
        }
    }

    /// Puts a new lease in force. One caller at a time; the lease before must be sealed.
    pub(crate) fn follow(&self, next: HeldLease) {
        let index = self.others.push(next);
        self.current.store(index + 1, Ordering::Release);
    }
}

/// A held lease: the right to issue positions of one machine ID up to a bound.
#[derive(Debug)]
pub(crate) struct HeldLease {
    pub(crate) machine: u64,
    /// The epoch of the claim.
    pub(crate) epoch: u64,
    /// The ID at position 0: every field but time and sequence.
    pub(crate) base: u64,
    rules: Rules,
    /// The clock it goes by.
    pub(crate) ticks: Ticks,
    sealed: OnceLock<String>,
    /// The durable bound. Only grows, and only after a store acknowledged it.
    limit: AtomicU64,
    populator: Populator,
}

impl HeldLease {
    /// Takes up to `want` positions in one piece, without waiting.
    #[inline]
    pub(crate) fn claim(&self, want: u32) -> Result<Claim, IdError> {
        // Acquire, with the release in `raise`: whoever sees the new bound sees all that led to it.
        let limit = self.limit.load(Ordering::Acquire);
        if let Ok(tick) = self.ticks.now() {
            match self.populator.claim(tick, want, &self.rules, limit) {
                Ok(claim) => return Ok(claim),
                Err(Refusal::SequenceUsedUp { .. }) => {}
                Err(refusal) => return Err(self.explain(refusal)),
            }
        }
        self.claim_precisely(want)
    }

    /// That a tick is used up is believed only by the precise clocks: the cheap one may lag by
    /// milliseconds.
    #[cold]
    #[inline(never)]
    fn claim_precisely(&self, want: u32) -> Result<Claim, IdError> {
        match self.ticks.judge_precisely() {
            Ok(tick) => self
                .populator
                .claim(tick, want, &self.rules, self.limit())
                .map_err(|refusal| self.explain(refusal)),
            // Without a lock: another thread of the parent may have held it at the fork.
            Err(_) if self.ticks.is_forked() => Err(IdError::Sealed { reason: FORKED.into() }),
            // A line that has ended is not waited for.
            Err(_) if self.sealed_reason().is_some() => Err(self.explain(Refusal::Sealed)),
            Err(behind) => {
                Err(NotReady { retry_after: behind, why: NotReadyReason::ClockBehind }.into())
            }
        }
    }

    #[cold]
    fn explain(&self, refusal: Refusal) -> IdError {
        match refusal {
            Refusal::SequenceUsedUp { until_tick } => NotReady {
                retry_after: self.ticks.until(until_tick),
                why: NotReadyReason::SequenceUsedUp,
            }
            .into(),
            Refusal::AwaitingLease => {
                NotReady { retry_after: RETRY_AFTER, why: NotReadyReason::AwaitingLease }.into()
            }
            Refusal::TimeExhausted => IdError::TimeExhausted,
            Refusal::Sealed => IdError::Sealed {
                reason: self.sealed_reason().unwrap_or("its machine ID was given up").into(),
            },
        }
    }

    /// The durable bound.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Acquire)
    }

    /// Moves the bound on, after a store acknowledged it.
    pub(crate) fn raise(&self, limit: u64) {
        // Release: see `claim`. A maximum, so that it never shrinks.
        self.limit.fetch_max(limit, Ordering::Release);
    }

    /// Ends the line for good, for this reason; returns the first position never issued.
    pub(crate) fn seal(&self, reason: &str) -> u64 {
        let _ = self.sealed.set(reason.to_owned()); // the first reason counts
        self.populator.seal()
    }

    /// Why the line ended, if it did.
    pub(crate) fn sealed_reason(&self) -> Option<&str> {
        self.sealed.get().map(String::as_str)
    }
}

/// Makes the leases of one service, which differ in their machine ID only.
#[derive(Debug, Clone)]
pub(crate) struct HeldLeaseFactory {
    pub(crate) meta: IdMeta,
    pub(crate) rules: Rules,
    pub(crate) clock: AnyClock,
    pub(crate) populator: PopulatorKind,
    pub(crate) gen_method: u64,
    pub(crate) version: u64,
}

impl HeldLeaseFactory {
    /// The lease of a claim: from `next` on, below `limit`.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if a field does not fit the layout.
    pub(crate) fn make(
        &self,
        machine: u64,
        epoch: u64,
        next: u64,
        limit: u64,
    ) -> Result<HeldLease, IdError> {
        let base = self.meta.pack(&Id {
            machine,
            gen_method: self.gen_method,
            version: self.version,
            id_type: self.meta.id_type(),
            ..Id::default()
        })?;
        Ok(HeldLease {
            machine,
            epoch,
            base,
            rules: self.rules,
            ticks: Ticks::new(self.clock.clone(), &self.meta, self.rules.tick(next)),
            sealed: OnceLock::new(),
            limit: AtomicU64::new(limit),
            populator: Populator::new(self.populator, next),
        })
    }
}
