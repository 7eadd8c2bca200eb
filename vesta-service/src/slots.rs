//! The machine slots of one service, one for each machine ID it holds, and their choice by thread.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use vesta_intf::{ErrorKind, IdError, NotReady, NotReadyReason};

use crate::BuildError;
use crate::held_lease::{HeldLease, Reserved};
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
    members: Vec<Member>,
    /// That of the first member, one pointer nearer.
    first: Arc<MachineSlot>,
}

/// The home slot of a thread, of so many.
#[derive(Debug, Clone, Copy)]
struct Home {
    count: usize,
    number: usize,
}

/// Home slot of the next thread that asks for the first time.
static NEXT_HOME: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HOME: Cell<Home> = const { Cell::new(Home { count: 0, number: 0 }) };
    /// Home slot of this thread, not yet wrapped around.
    static NUMBER: usize = NEXT_HOME.fetch_add(1, Ordering::Relaxed);
}

impl Slots {
    /// At least one slot. If one of them fails, those before it are closed at once.
    pub(crate) fn new(
        members: impl IntoIterator<Item = Result<Member, BuildError>>,
    ) -> Result<Self, BuildError> {
        let mut members = members.into_iter();
        let member = members.next().expect("there is at least one")?;
        let mut slots = Self { first: member.slot.clone(), members: vec![member] };
        for member in members {
            slots.members.push(member.inspect_err(|_| slots.close())?);
        }
        Ok(slots)
    }

    /// The first slot, which is the only one of most services.
    pub(crate) fn first(&self) -> &MachineSlot {
        &self.first
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Member> {
        self.members.iter()
    }

    /// The calling thread's home slot.
    #[inline]
    pub(crate) fn home(&self) -> &MachineSlot {
        match self.members.len() {
            1 => &self.first,
            _ => &self.members[self.home_number()].slot,
        }
    }

    #[inline]
    fn home_number(&self) -> usize {
        let home = HOME.get();
        if home.count == self.members.len() { home.number } else { self.find_home() }
    }

    #[cold]
    fn find_home(&self) -> usize {
        let number = NUMBER.with(|number| number % self.members.len());
        self.settle(number);
        number
    }

    fn settle(&self, number: usize) {
        HOME.set(Home { count: self.members.len(), number });
    }

    /// Takes up to `want` positions in one piece of one slot, without waiting.
    pub(crate) fn claim(&self, want: u32) -> Result<(&HeldLease, Claim), IdError> {
        self.try_each(|lease| lease.claim(want).map(|claim| (lease, claim)))
    }

    /// Takes a position of one slot for a caller who waits until it is due, at most so far ahead.
    pub(crate) fn reserve(&self, ahead: Duration) -> Result<Reserved<'_>, IdError> {
        self.try_each(|lease| lease.reserve(ahead))
    }

    /// Tries the home slot first, and the others after it. The slot that gives something is home from
    /// then on.
    fn try_each<'a, T>(
        &'a self,
        mut attempt: impl FnMut(&'a HeldLease) -> Result<T, IdError>,
    ) -> Result<T, IdError> {
        let retry_after = |error: &IdError| match error {
            IdError::NotReady(not_ready) => not_ready.retry_after,
            _ => Duration::MAX,
        };
        let home = self.home_number();
        let (before, from_home) = self.members.split_at(home);
        let mut refusal = None;
        for (passed, member) in from_home.iter().chain(before).enumerate() {
            let lease = member.slot.leases.current();
            match attempt(lease) {
                Ok(taken) => {
                    if passed > 0 {
                        self.settle((home + passed) % self.members.len());
                    }
                    return Ok(taken);
                }
                // The refusal that is worth coming back for soonest.
                Err(error) => {
                    let error = member.unless_followed(lease, error);
                    refusal = refusal.into_iter().chain([error]).min_by_key(retry_after);
                }
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
