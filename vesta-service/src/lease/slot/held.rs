//! Held lease: one machine ID for the duration of its lease. Its identity never changes and is never used
//! again after sealing.

#[cfg(all(test, loom))]
mod races;
mod reserved;

use std::sync::OnceLock;
use std::time::Duration;

use vesta_intf::{Id, IdError, IdMeta, NotReady, NotReadyReason};

use crate::clock::{AnyClock, ClockKind};
use crate::fork;
use crate::id::gate::Gate;
use crate::populator::{Populator, PopulatorKind};
use crate::sequence::{Claim, Refusal, Rules};
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use crate::ticks::Ticks;
use crate::wait::RETRY_AFTER;

use reserved::GivenUp;
pub(crate) use reserved::Reserved;

/// Successive leases of one machine slot; the last one is in force.
#[derive(Debug)]
pub(crate) struct HeldLeases {
    /// Number of the lease in force: 0 is the first; the others count from 1.
    current: AtomicUsize,
    /// The first lease is stored inline, where no pointer has to be followed: most services never have
    /// another.
    first: HeldLease,
    others: boxcar::Vec<HeldLease>,
}

impl HeldLeases {
    pub(crate) fn new(first: HeldLease) -> Self {
        Self {
            current: AtomicUsize::new(0),
            first,
            others: boxcar::Vec::new(),
        }
    }

    /// The first lease, in force or sealed.
    #[inline(always)]
    pub(crate) fn first(&self) -> &HeldLease {
        &self.first
    }

    /// The lease in force.
    #[inline]
    pub(crate) fn current(&self) -> &HeldLease {
        // Acquire, paired with the release in `follow`: the lease is complete before its number is visible.
        match self.current.load(Ordering::Acquire) {
            0 => &self.first,
            number => self.other(number),
        }
    }

    #[cold]
    #[inline(never)] // keeps its code out of the path of every ID
    fn other(&self, number: usize) -> &HeldLease {
        &self.others[number - 1]
    }

    /// Positions of all leases that waiting callers reserved and no caller gets.
    pub(crate) fn lost(&self) -> u64 {
        let others = self.others.iter().map(|(_, lease)| lease);
        let leases = std::iter::once(&self.first).chain(others);
        leases.map(HeldLease::lost).sum()
    }

    /// Puts a new lease in force. Called by one thread at a time. The lease before must be sealed, and stays
    /// so (SAFETY.md, rule 2).
    pub(crate) fn follow(&self, next: HeldLease) {
        let index = self.others.push(next);
        self.current.store(index + 1, Ordering::Release);
    }
}

const NO_BARRIER: &str = "another thread took the first ID, and since then the system refuses the call `membarrier`, \
     which lets this one take over; allow it, or set up the filter of system calls before the service is built";

/// End of a lease that only its bound limits.
const UNENDING: u64 = u64::MAX;

fn nanos(moment: Duration) -> u64 {
    u64::try_from(moment.as_nanos()).unwrap_or(UNENDING - 1)
}

/// Held lease: the right to issue positions of one machine ID below a bound.
#[derive(Debug)]
pub(crate) struct HeldLease {
    gate: Gate,
    pub(crate) machine: u64,
    /// Epoch of the claim.
    pub(crate) epoch: u64,
    /// ID at position 0: every field but time, sequence and genMethod.
    pub(crate) base: u64,
    rules: Rules,
    /// Clock of this lease.
    pub(crate) ticks: Ticks,
    sealed: OnceLock<String>,
    /// Durable bound, exclusive. Only grows, and only after a store acknowledged it.
    bound: AtomicU64,
    /// Nothing is issued from this moment of the monotonic clock on, in nanoseconds; [`UNENDING`], or only grows
    /// (SAFETY.md, rule 11).
    ends_at: AtomicU64,
    populator: Populator,
    given_up: GivenUp,
}

impl HeldLease {
    /// Fast path: takes one position without reading the precise clocks, if that is possible, and applies
    /// `make` to it. All of it is inlined into the caller, and its result stays in registers.
    #[inline(always)]
    pub(crate) fn one(&self, make: impl Fn(u64) -> u64) -> Option<u64> {
        self.one_at(self.ticks.glance(), make)
    }

    /// As [`one`](Self::one), at this reading of the cheap clock.
    #[inline(always)]
    pub(crate) fn one_at(&self, shown: u64, make: impl Fn(u64) -> u64) -> Option<u64> {
        let end = self.gate.end(shown)?;
        self.populator.take_one(end, make)
    }

    /// Takes up to `want` consecutive positions of one tick, without waiting.
    pub(crate) fn claim(&self, want: u32) -> Result<Claim, IdError> {
        let shown = self.ticks.glance();
        self.gate
            .pass(&self.populator, shown, want)
            .map_or_else(|| self.claim_judged(shown, want), Ok)
    }

    /// Closes the fast paths in the child of a fork. The slow paths refuse there by themselves.
    pub(crate) fn close_in_child(&self) {
        self.gate.close();
        self.populator.close_in_child();
    }

    /// Slow path: reads the precise clocks, because the cheap ones may lag by milliseconds.
    #[cold]
    #[inline(never)]
    fn claim_judged(&self, shown: u64, want: u32) -> Result<Claim, IdError> {
        self.check_end()?;
        let now = self.ticks.now().map_err(|behind| {
            // A clock that was set back may show the gate's reading once more.
            self.gate.close();
            self.why_not(behind)
        })?;
        let bound = self.bound();
        let claim = self.populator.claim(now, want, &self.rules, bound);
        let claim = claim.map_err(|refusal| self.explain(refusal))?;
        // A lease that ends at a moment has no fast path, which does not read that clock.
        if self.ends_at.load(Ordering::Relaxed) == UNENDING {
            let end = |want| self.rules.end(claim.start, now, want, bound);
            self.gate.open(shown, end(1), end(2));
        }
        Ok(claim)
    }

    /// Refuses a call that arrives after the end of the lease. A call that passes is in order wherever it is paused
    /// afterwards: it was made before a successor issued anything.
    fn check_end(&self) -> Result<(), IdError> {
        if self.left().is_zero() && !self.is_sealed() {
            return Err(self.explain(Refusal::AwaitingLease));
        }
        Ok(())
    }

    /// Time until the lease ends unless it is renewed, regardless of its bound; `Duration::MAX` if it does not.
    pub(crate) fn left(&self) -> Duration {
        match self.ends_at.load(Ordering::Acquire) {
            UNENDING => Duration::MAX,
            end => Duration::from_nanos(end).saturating_sub(self.ticks.monotonic()),
        }
    }

    /// Moves the end of the lease, after a store acknowledged a change.
    pub(crate) fn lasts_until(&self, end: Duration) {
        self.ends_at.fetch_max(nanos(end), Ordering::Release); // a maximum, as for the bound
    }

    /// Gives back a claim that no caller received, unless positions were taken after it; `false` if the claim
    /// is lost.
    pub(crate) fn give_back(&self, claim: Claim) -> bool {
        self.rules.may_give_back(claim) && self.populator.give_back(claim)
    }

    /// Error for a clock that cannot be used.
    fn why_not(&self, behind: Duration) -> IdError {
        if self.ticks.is_forked() {
            // Takes no lock: another thread of the parent may have held it at the fork.
            fork::refusal()
        } else if self.is_sealed() {
            // Waiting does not help with a sealed lease.
            self.explain(Refusal::Sealed)
        } else {
            NotReady {
                retry_after: behind,
                why: NotReadyReason::ClockBehind,
            }
            .into()
        }
    }

    #[cold]
    fn explain(&self, refusal: Refusal) -> IdError {
        match refusal {
            Refusal::SequenceUsedUp { until } => NotReady {
                retry_after: self.ticks.until(until),
                why: NotReadyReason::SequenceUsedUp,
            }
            .into(),
            Refusal::AwaitingLease => NotReady {
                retry_after: RETRY_AFTER,
                why: NotReadyReason::AwaitingLease,
            }
            .into(),
            Refusal::TimeExhausted => IdError::TimeExhausted,
            Refusal::Reentered => IdError::Reentered,
            Refusal::NoBarrier => IdError::Internal {
                reason: NO_BARRIER.into(),
                source: None,
            },
            Refusal::Sealed => IdError::Sealed {
                reason: self
                    .sealed_reason()
                    .unwrap_or("its machine ID was given up")
                    .into(),
            },
        }
    }

    /// The durable bound.
    pub(crate) fn bound(&self) -> u64 {
        self.bound.load(Ordering::Acquire)
    }

    /// Raises the bound, after a store acknowledged it.
    pub(crate) fn raise(&self, bound: u64) {
        // Release: a caller that sees the new bound sees everything that led to it. A maximum, so that the
        // bound never shrinks.
        self.bound.fetch_max(bound, Ordering::Release);
    }

    /// Ends the lease for good, for this reason; returns the first position never issued. Nothing is issued
    /// afterwards (SAFETY.md, rule 2).
    pub(crate) fn seal(&self, reason: &str) -> u64 {
        let _ = self.sealed.set(reason.to_owned()); // the first reason counts
        // If the position cannot be known, nothing at or above the bound was issued.
        let end = self.populator.seal().unwrap_or_else(|| self.bound());
        self.lose_given_up();
        end
    }

    fn is_sealed(&self) -> bool {
        self.sealed_reason().is_some()
    }

    /// Reason why the lease was sealed, if it was.
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
    pub(crate) clock_kind: ClockKind,
    pub(crate) populator: PopulatorKind,
    pub(crate) version: u64,
}

impl HeldLeaseFactory {
    /// Makes the lease of a claim: from `next` on, below `bound`, and until `ends_at` if given.
    pub(crate) fn make(
        &self,
        machine: u64,
        epoch: u64,
        next: u64,
        bound: u64,
        ends_at: Option<Duration>,
    ) -> Result<HeldLease, IdError> {
        let base = self.meta.pack(&Id {
            machine,
            version: self.version,
            id_type: self.meta.id_type(),
            ..Id::default()
        })?;
        Ok(HeldLease {
            gate: Gate::closed(),
            machine,
            epoch,
            base,
            rules: self.rules,
            ticks: Ticks::new(
                self.clock.clone(),
                self.clock_kind,
                &self.meta,
                &self.rules,
                next,
            ),
            sealed: OnceLock::new(),
            bound: AtomicU64::new(bound),
            ends_at: AtomicU64::new(ends_at.map_or(UNENDING, nanos)),
            populator: Populator::new(self.populator, next),
            given_up: GivenUp::default(),
        })
    }
}
