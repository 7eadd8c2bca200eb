//! Machine slots of one service, one for each machine ID it holds, and the home slot of each
//! thread.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use vesta_intf::{ErrorKind, IdError};

use super::held::{HeldLease, Reserved};
use super::keeper::Keeper;
use super::machine::MachineSlot;
use crate::BuildError;
use crate::fork::AtFork;
use crate::reentry::Inside;
use crate::sequence::Claim;

/// One or more machine slots. Callers are spread over them: each thread keeps to its home slot, and
/// moves to another one when that has nothing to give.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    slots: Arc<[Arc<MachineSlot>]>,
    /// The first slot, reached with one indirection less.
    first: Arc<MachineSlot>,
    /// Shared by the clones; when the last clone is dropped, the slots end.
    pub(crate) end: Arc<End>,
}

/// Ends all slots, by a call or once they are no longer used.
#[derive(Debug)]
pub(crate) struct End {
    slots: Arc<[Arc<MachineSlot>]>,
    /// Keeper of their leases; `None` without leases.
    pub(crate) keeper: Option<Keeper>,
    _at_fork: AtFork,
}

/// Home slot of a thread, among `count` slots.
#[derive(Debug, Clone, Copy)]
struct Home {
    count: usize,
    number: usize,
}

/// Home slot of the next thread that asks for the first time, before the modulo.
static NEXT_HOME: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HOME: Cell<Home> = const { Cell::new(Home { count: 0, number: 0 }) };
    /// Home slot of this thread, before the modulo.
    static NUMBER: usize = NEXT_HOME.fetch_add(1, Ordering::Relaxed);
}

impl Slots {
    /// Slots without a lease, at least one.
    pub(crate) fn unkept(
        slots: impl IntoIterator<Item = Result<MachineSlot, BuildError>>,
    ) -> Result<Self, BuildError> {
        let slots = slots.into_iter().map(|slot| slot.map(Arc::new));
        Ok(Self::of(slots.collect::<Result<_, _>>()?, None))
    }

    /// Slots of a keeper.
    pub(crate) fn kept(keeper: Keeper) -> Self {
        Self::of(keeper.slots().to_vec(), Some(keeper))
    }

    fn of(slots: Vec<Arc<MachineSlot>>, keeper: Option<Keeper>) -> Self {
        let first = slots.first().expect("there is at least one").clone();
        let slots: Arc<[_]> = slots.into();
        let closed = Arc::clone(&slots);
        let close = move || {
            closed
                .iter()
                .for_each(|it| it.leases.current().close_in_child())
        };
        let _at_fork = AtFork::call(close);
        Self {
            end: Arc::new(End {
                slots: Arc::clone(&slots),
                keeper,
                _at_fork,
            }),
            slots,
            first,
        }
    }

    /// First slot, which is the only one of most services.
    pub(crate) fn first(&self) -> &MachineSlot {
        &self.first
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<MachineSlot>> {
        self.slots.iter()
    }

    /// Home slot of the calling thread.
    #[inline]
    pub(crate) fn home(&self) -> &MachineSlot {
        match self.slots.len() {
            1 => &self.first,
            _ => &self.slots[self.home_number()],
        }
    }

    #[inline]
    fn home_number(&self) -> usize {
        let home = HOME.get();
        if home.count == self.slots.len() {
            home.number
        } else {
            self.find_home()
        }
    }

    #[cold]
    fn find_home(&self) -> usize {
        let number = NUMBER.with(|number| number % self.slots.len());
        self.settle(number);
        number
    }

    fn settle(&self, number: usize) {
        HOME.set(Home {
            count: self.slots.len(),
            number,
        });
    }

    /// Takes up to `want` consecutive positions of one slot, without waiting.
    pub(crate) fn claim(&self, want: u32) -> Result<(&HeldLease, Claim), IdError> {
        self.try_each(|lease| lease.claim(want).map(|claim| (lease, claim)))
    }

    /// Reserves a position of one slot for a caller that waits until it is due: within `soonest`, which is
    /// when the first slot has one, or else at most `max_wait` from now.
    pub(crate) fn reserve(
        &self,
        soonest: Duration,
        max_wait: Duration,
    ) -> Result<Reserved<'_>, IdError> {
        self.try_each(|lease| lease.reserve(soonest.min(max_wait), max_wait))
            .or_else(|_| self.try_each(|lease| lease.reserve(max_wait, max_wait)))
    }

    /// Tries the home slot first, then the others in order. The first slot that succeeds becomes
    /// the home slot.
    fn try_each<'a, T>(
        &'a self,
        mut attempt: impl FnMut(&'a HeldLease) -> Result<T, IdError>,
    ) -> Result<T, IdError> {
        let _inside = Inside::enter()?;
        let retry_after = |error: &IdError| match error {
            IdError::NotReady(not_ready) => not_ready.retry_after,
            _ => Duration::MAX,
        };
        let home = self.home_number();
        let (before, from_home) = self.slots.split_at(home);
        let mut refusal = None;
        for (passed, slot) in from_home.iter().chain(before).enumerate() {
            let lease = slot.leases.current();
            match attempt(lease) {
                Ok(taken) => {
                    if passed > 0 {
                        self.settle((home + passed) % self.slots.len());
                    }
                    return Ok(taken);
                }
                // Keeps the refusal with the shortest delay.
                Err(error) => {
                    let error = unless_followed(slot, lease, error);
                    refusal = refusal.into_iter().chain([error]).min_by_key(retry_after);
                }
            }
        }
        Err(refusal.unwrap_or(IdError::TimeExhausted)) // there is at least one slot
    }

    /// Renews what is due, if no thread does it. Returns the time until more is due.
    pub(crate) fn maintain(&self) -> Option<Duration> {
        if is_forked(self.first()) {
            return None;
        }
        self.end.keeper.as_ref()?.maintain()
    }

    /// Seals every slot and releases the records, as far as the store answers in time.
    pub(crate) fn close(&self) {
        self.end.close();
    }
}

impl End {
    fn close(&self) {
        let keeper = self.keeper.as_ref();
        if is_forked(&self.slots[0]) {
            keeper.inspect(|keeper| keeper.forget());
            return;
        }
        // All slots are asked to stop before the keeper is waited for: it releases their records
        // together.
        for slot in &*self.slots {
            slot.request_stop();
            slot.leases.current().seal("it was shut down");
        }
        keeper.inspect(|keeper| keeper.close());
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.close();
    }
}

/// True in the child of a fork: machine IDs, files and connections belong to the parent.
fn is_forked(slot: &MachineSlot) -> bool {
    slot.leases.current().ticks.is_forked()
}

/// Replaces a lease's error by a retry, if a successor or another window will follow. A lease that
/// was sealed because its machine ID was lost will have a successor.
#[cold]
fn unless_followed(slot: &MachineSlot, lease: &HeldLease, error: IdError) -> IdError {
    if lease.ticks.is_forked() {
        return error;
    }
    let again = || slot.not_ready(lease.ticks.monotonic()).into();
    if matches!(
        error.kind(),
        ErrorKind::ClockBehind | ErrorKind::AwaitingLease
    ) {
        // After a step of the clock, another machine ID or another window ends the wait.
        slot.wake_keeper();
    }
    match error {
        IdError::Sealed { .. } if !std::ptr::eq(lease, slot.leases.current()) => again(),
        IdError::Sealed { .. } if slot.will_follow() => again(),
        error if error.kind() == ErrorKind::AwaitingLease => again(),
        error => error,
    }
}
