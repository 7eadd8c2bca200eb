//! The machine slots of one service, one for each machine ID it holds, and their choice by thread.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use vesta_intf::{ErrorKind, IdError, NotReady, NotReadyReason};

use crate::BuildError;
use crate::held_lease::HeldLease;
use crate::lease::{Keeper, MachineSlot};
use crate::sequence::Claim;

/// A machine slot, and the keeper of its lease.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) slot: Arc<MachineSlot>,
    /// `None` without a lease.
    pub(crate) keeper: Option<Keeper>,
}

/// At least one machine slot. Callers are spread over them: each thread keeps to its home slot, and
/// changes to another when that has nothing to give.
#[derive(Debug)]
pub(crate) struct Slots {
    first: Member,
    others: Vec<Member>,
}

/// Home slot of the next thread that asks for the first time.
static NEXT_HOME: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Home slot of this thread, not yet wrapped around.
    static HOME: Cell<usize> = Cell::new(NEXT_HOME.fetch_add(1, Ordering::Relaxed));
}

impl Slots {
    /// At least one slot. If one of them fails, those before it are closed at once.
    pub(crate) fn new(
        members: impl IntoIterator<Item = Result<Member, BuildError>>,
    ) -> Result<Self, BuildError> {
        let mut members = members.into_iter();
        let first = members.next().expect("there is at least one")?;
        let mut slots = Self { first, others: Vec::new() };
        for member in members {
            slots.others.push(member.inspect_err(|_| slots.close())?);
        }
        Ok(slots)
    }

    /// The first slot, which is the only one of most services.
    #[inline]
    pub(crate) fn first(&self) -> &MachineSlot {
        &self.first.slot
    }

    /// The slot, if there is but one.
    pub(crate) fn only(&self) -> Option<Arc<MachineSlot>> {
        self.others.is_empty().then(|| self.first.slot.clone())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> + Clone {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Takes up to `want` positions in one piece of one slot, without waiting.
    #[inline(always)] // on the way of every ID: a call would double its cost
    pub(crate) fn claim(&self, want: u32) -> Result<(&HeldLease, Claim), IdError> {
        if self.others.is_empty() { self.first.claim(want) } else { self.claim_from_any(want) }
    }

    #[inline(never)]
    fn claim_from_any(&self, want: u32) -> Result<(&HeldLease, Claim), IdError> {
        let count = self.others.len() + 1;
        let home = HOME.get() % count;
        let retry_after = |error: &IdError| match error {
            IdError::NotReady(not_ready) => not_ready.retry_after,
            _ => Duration::MAX,
        };
        let mut refusal = None;
        for (passed, member) in self.iter().cycle().skip(home).take(count).enumerate() {
            match member.claim(want) {
                Ok(claimed) => {
                    if passed > 0 {
                        HOME.set(home + passed);
                    }
                    return Ok(claimed);
                }
                // The refusal that is worth coming back for soonest.
                Err(error) => refusal = refusal.into_iter().chain([error]).min_by_key(retry_after),
            }
        }
        Err(refusal.unwrap_or(IdError::TimeExhausted)) // there is at least one slot
    }

    /// True in the child of a fork: machine IDs, files and connections are the parent's.
    fn are_forked(&self) -> bool {
        self.first().leases.current().ticks.is_forked()
    }

    /// Renews what is due, where no thread does it. Returns how long there is nothing more to do.
    pub(crate) fn maintain(&self) -> Option<Duration> {
        if self.are_forked() {
            return None;
        }
        let due = self.iter().filter_map(|member| member.keeper.as_ref()?.maintain(&member.slot));
        due.min()
    }

    /// Seals every slot and gives the records back, as far as the store answers in time.
    pub(crate) fn close(&self) {
        if self.are_forked() {
            self.iter().filter_map(|member| member.keeper.as_ref()).for_each(Keeper::forget);
            return;
        }
        // All are asked before one is waited for: the waits overlap.
        for member in self.iter() {
            member.slot.request_stop();
            member.slot.leases.current().seal("it was shut down");
        }
        for Member { slot, keeper } in self.iter() {
            if let Some(keeper) = keeper {
                keeper.close(slot);
            }
        }
    }
}

impl Member {
    #[inline(always)]
    fn claim(&self, want: u32) -> Result<(&HeldLease, Claim), IdError> {
        let lease = self.slot.leases.current();
        match lease.claim(want) {
            Ok(claim) => Ok((lease, claim)),
            Err(error) => Err(self.unless_followed(lease, error)),
        }
    }

    /// A lease that was sealed because its machine ID was lost will have a successor.
    #[cold]
    fn unless_followed(&self, lease: &HeldLease, error: IdError) -> IdError {
        if lease.ticks.is_forked() {
            return error;
        }
        let again = || {
            let retry_after = self.slot.retry_after(lease.ticks.monotonic());
            NotReady { retry_after, why: NotReadyReason::AwaitingLease }.into()
        };
        if matches!(error.kind(), ErrorKind::ClockBehind | ErrorKind::AwaitingLease) {
            // After a step of the clock: another machine ID ends the wait, or another window does.
            self.slot.wake_keeper();
        }
        match error {
            IdError::Sealed { .. } if !std::ptr::eq(lease, self.slot.leases.current()) => again(),
            IdError::Sealed { .. } if self.slot.will_follow() => again(),
            error if error.kind() == ErrorKind::AwaitingLease => again(),
            error => error,
        }
    }
}
