//! The word of the populator `atomic`. While one thread alone asks, that thread changes it by plain loads and
//! stores, which cost a fraction of a locked instruction. Another thread takes the word away first; after a
//! few such changes of hands it stays shared, and every thread changes it by compare-and-swap.
//!
//! ```text
//!  FREE ──► sole(thread, turn 0) ──► taking ──► sole(thread, turn 1) ──► … ──► taking ──► SHARED
//! ```
//!
//! A sole user changes the position between two stores of its turn's `busy`:
//!
//! ```text
//!  the sole user                             another thread takes the word away
//!  1  busy = its number                      a  hands: sole → taking, by compare-and-swap
//!  2  light barrier                          b  barrier in all threads of the process
//!  3  hands: still its own? otherwise 6      c  wait until busy is 0 (acquire)
//!  4  read the position                      d  hands = the next turn, or SHARED (release)
//!  5  write the next one
//!  6  busy = 0 (release)
//! ```
//!
//! *No other thread changes the position meanwhile.* The barrier b falls between two steps of the sole user. If it falls
//! before 3, then 3 reads `taking`, and the position stays as it is. If it falls after 3, it also falls after 1, so c
//! finds `busy` set until 6, and reads with it what 5 wrote. The light barrier keeps the compiler from exchanging 1
//! and 3; b does so for the processor. So turns never overlap, each begins with all that the one before it wrote, and
//! from SHARED on, which is never left, a compare-and-swap finds the last of it (d, read by acquire).
//!
//! The same holds on a weakly ordered processor. After b, the other thread sees all that comes before b in the sole
//! user's program, in whatever order it was written.
//!
//! Each turn has its own `busy`. A thread that was paused before 1 while its word was taken away comes back and
//! sets it, which must not disturb the users of later turns. A thread that ends has left every change; a new thread has
//! another number.
//!
//! *A signal handler* that interrupts the sole user between 1 and 6 finds its own number in `busy`, and is refused: the
//! interrupted call would undo what the handler took. Nor could it wait for itself.

#[cfg(all(test, loom))]
mod races;
#[cfg(all(test, shuttle))]
mod schedules;

use std::cell::Cell;

use super::SEALED;
use crate::sequence::{Claim, Refusal};
use crate::sync::{Buffered, Ordering, barrier, per_thread};
use crate::wait::{back_off, give_way};

/// Number of turns. Each change of hands costs microseconds: a service that is handed from thread to thread keeps
/// the fast way for a while, and one that several threads use at once soon shares its word.
const TURNS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 8 };

/// Values of the word's hands: the number of a thread, [`TAKING`] while it takes the word away, and the turn, which
/// [`TAKING`] ends.
const TURN: u64 = TAKING - 1;
const TAKING: u64 = 8;
const ONE_THREAD: u64 = 16;
/// No thread has used the word yet.
const FREE: u64 = TAKING;
/// Every thread changes the position by compare-and-swap.
const SHARED: u64 = TAKING | 1;
/// No thread changes the position any more: it was to be sealed, and could not be taken away.
const STOPPED: u64 = TAKING | 2;

/// A position, and who may change it how.
#[derive(Debug)]
#[repr(align(128))] // its own cache line (pair): the data read next to it rarely changes
pub(crate) struct Word {
    position: Buffered,
    /// For each turn, the number of its sole user while that changes the position, otherwise 0.
    busy: [Buffered; TURNS],
    hands: Hands,
}

#[derive(Debug)]
#[repr(align(128))] // read by all threads, rarely written
struct Hands(Buffered);

per_thread! {
    /// The number of this thread; 0 until it needs one.
    static THREAD: Cell<u64> = Cell::new(0);
}

/// A number that no other thread has, not even after the end of this one.
fn numbered() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(ONE_THREAD);
    THREAD.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(ONE_THREAD, Ordering::Relaxed));
        }
        number.get()
    })
}

/// The right of a sole user to change the position, until it is dropped.
struct Sole<'a>(&'a Buffered);

impl Drop for Sole<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release); // step 6
    }
}

impl Word {
    pub(super) fn new(position: u64) -> Self {
        Self::starting(position, if barrier::exists() { FREE } else { SHARED })
    }

    /// A word that all threads change by compare-and-swap from the beginning.
    pub(super) fn shared(position: u64) -> Self {
        Self::starting(position, SHARED)
    }

    fn starting(position: u64, hands: u64) -> Self {
        Self {
            position: Buffered::new(position),
            busy: std::array::from_fn(|_| Buffered::new(0)),
            hands: Hands(Buffered::new(hands)),
        }
    }

    /// Takes one position below `end`. Otherwise the position found, which may be below `end`: then another try may
    /// succeed.
    #[inline(always)]
    pub(super) fn take_one(&self, end: u64) -> Result<u64, u64> {
        // Acquire: step d.
        let hands = self.hands.0.load(Ordering::Acquire);
        let sole = self.sole(hands, THREAD.with(Cell::get));
        // Relaxed here and below: the position is the whole state, and nothing else is published with it. Its
        // modification order, on which uniqueness relies, holds for relaxed changes too.
        let next = self.position.load(Ordering::Relaxed);
        if sole.is_some() && next < end {
            self.position.store(next + 1, Ordering::Relaxed);
            return Ok(next);
        }
        if hands != SHARED || next >= end {
            return Err(next);
        }
        self.position
            .compare_exchange(next, next + 1, Ordering::Relaxed, Ordering::Relaxed)
    }

    /// Tries again after [`take_one`](Self::take_one) found this position.
    #[cold]
    pub(super) fn take_one_again(&self, mut found: u64, end: u64) -> Option<u64> {
        if found >= end {
            return None;
        }
        let one = |next| match next < end {
            true => Ok(Claim {
                start: next,
                end: next + 1,
            }),
            false => Err(()),
        };
        if let Some(sole) = self.enter().ok()? {
            return Some(self.change_alone(sole, one).ok()?.start);
        }
        while found < end {
            let word = back_off(found, 1, || self.position.load(Ordering::Relaxed));
            if word >= end {
                return None;
            }
            match self.position.compare_exchange(
                word,
                word + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(position) => return Some(position),
                Err(changed) => found = changed,
            }
        }
        None
    }

    /// Takes what `claim` makes of the position.
    #[inline(always)]
    pub(super) fn update<E>(
        &self,
        claim: impl Fn(u64) -> Result<Claim, E>,
    ) -> Result<Result<Claim, E>, Refusal> {
        if let Some(sole) = self.enter()? {
            return Ok(self.change_alone(sole, claim));
        }
        let mut word = self.position.load(Ordering::Relaxed);
        loop {
            let claim = match claim(word) {
                Ok(claim) => claim,
                refused => return Ok(refused),
            };
            match self.position.compare_exchange(
                word,
                claim.end,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(Ok(claim)),
                Err(found) => {
                    let size = claim.end - claim.start;
                    word = back_off(found, size, || self.position.load(Ordering::Relaxed));
                }
            }
        }
    }

    /// Steps 4 and 5.
    #[inline(always)]
    fn change_alone<E>(
        &self,
        _: Sole<'_>,
        claim: impl Fn(u64) -> Result<Claim, E>,
    ) -> Result<Claim, E> {
        let claim = claim(self.position.load(Ordering::Relaxed))?;
        self.position.store(claim.end, Ordering::Relaxed);
        Ok(claim)
    }

    /// Sets the position to `start` if it is `end`.
    pub(super) fn give_back(&self, start: u64, end: u64) -> bool {
        match self.enter() {
            Ok(Some(_sole)) => {
                let is_last = self.position.load(Ordering::Relaxed) == end;
                if is_last {
                    self.position.store(start, Ordering::Relaxed);
                }
                is_last
            }
            Ok(None) => self
                .position
                .compare_exchange(end, start, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok(),
            Err(_) => false,
        }
    }

    /// Marks the position as sealed; returns it as it was, exactly, because both are one atomic change.
    pub(super) fn seal(&self) -> Result<u64, Refusal> {
        while self.hands.0.load(Ordering::Acquire) != SHARED {
            self.hand_over(true)?;
        }
        Ok(self.position.fetch_or(SEALED, Ordering::Relaxed))
    }

    /// In the child of a fork, whose only thread waits for no thread of the parent. Nothing is issued there.
    pub(super) fn share_in_child(&self) {
        self.hands.0.store(SHARED, Ordering::Relaxed);
    }

    /// Makes the primitives of a checker, which are made lazily.
    #[cfg(all(test, loom))]
    pub(super) fn touch(&self) {
        self.position.load(Ordering::Relaxed);
        self.hands.0.load(Ordering::Relaxed);
        self.busy
            .iter()
            .for_each(|busy| drop(busy.load(Ordering::Relaxed)));
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn is_shared(&self) -> bool {
        self.hands.0.load(Ordering::Relaxed) == SHARED
    }

    #[cfg(test)]
    pub(super) fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Steps 1 to 3; `None` if the thread is not the sole user, or already in the middle of a change.
    #[inline(always)]
    fn sole(&self, hands: u64, thread: u64) -> Option<Sole<'_>> {
        let turn = usize::try_from(hands ^ thread).ok()?;
        let busy = self.busy.get(turn)?;
        if busy.load(Ordering::Relaxed) != 0 {
            return None;
        }
        busy.store(thread, Ordering::Relaxed);
        barrier::light();
        let sole = Sole(busy);
        (self.hands.0.load(Ordering::Relaxed) == hands).then_some(sole)
    }

    /// Gives the calling thread the right to change the position: as its sole user, or, if `None`, by
    /// compare-and-swap. Takes the word away from another sole user.
    fn enter(&self) -> Result<Option<Sole<'_>>, Refusal> {
        let thread = numbered();
        loop {
            let hands = self.hands.0.load(Ordering::Acquire);
            if hands == SHARED {
                return Ok(None);
            }
            if let Some(sole) = self.sole(hands, thread) {
                return Ok(Some(sole));
            }
            self.hand_over(false)?;
        }
    }

    /// Steps a to d: makes the calling thread the next sole user, or shares the word among all. One attempt, which
    /// fails if another thread was quicker.
    #[cold]
    fn hand_over(&self, to_all: bool) -> Result<(), Refusal> {
        let (hands, thread) = (self.hands.0.load(Ordering::Acquire), numbered());
        let turn = hands & TURN;
        let next = |turn| match usize::try_from(turn) {
            Ok(0..TURNS) if !to_all => thread | turn,
            _ => SHARED,
        };
        let change = |to| {
            let done =
                self.hands
                    .0
                    .compare_exchange(hands, to, Ordering::AcqRel, Ordering::Relaxed);
            done.is_ok()
        };
        match hands {
            SHARED => return Ok(()),
            STOPPED => return Err(Refusal::Sealed),
            FREE => {
                change(next(0));
                return Ok(());
            }
            _ => {}
        }
        let busy = &self.busy[usize::try_from(turn).unwrap_or(0)];
        if busy.load(Ordering::Relaxed) == thread || hands == thread | TAKING | turn {
            return Err(Refusal::Reentered);
        }
        if hands & TAKING != 0 {
            give_way(0);
            return Ok(());
        }
        if change(thread | TAKING | turn) {
            let is_own = hands == thread | turn;
            if !is_own && !barrier::in_all_threads() {
                let back = if to_all { STOPPED } else { hands };
                self.hands.0.store(back, Ordering::Release);
                return Err(Refusal::NoBarrier);
            }
            for attempt in 0.. {
                if busy.load(Ordering::Acquire) == 0 {
                    break;
                }
                give_way(attempt);
            }
            self.hands.0.store(next(turn + 1), Ordering::Release);
        }
        Ok(())
    }
}
