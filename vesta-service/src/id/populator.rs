//! Populators: store and guard the position of a machine ID.
//! [`sequence::advance`](crate::sequence::advance) alone decides what may be taken; a
//! populator only makes it atomic.

#[cfg(all(test, loom))]
mod races;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::sync::{PoisonError, TryLockError};

use crate::hint::unlikely;
use crate::sequence::{Claim, Refusal, Rules, advance, within};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, standard};
use crate::wait::{back_off, pause_at_lock};

/// The populators by name. They differ only in cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PopulatorKind {
    /// Guards the position by a parking_lot mutex: one byte, and waiters sleep. Corresponds to the
    /// `ReentrantLock` of the original, which was its default; unlike there, no caller waits for time
    /// while holding the lock.
    Lock,
    /// Guards the position by a standard mutex, as the original's `synchronized` method did.
    Sync,
    /// Guards the position by compare-and-swap. The default.
    #[default]
    Atomic,
}

impl PopulatorKind {
    /// All populators.
    pub const ALL: [PopulatorKind; 3] = [Self::Lock, Self::Sync, Self::Atomic];

    /// Name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            PopulatorKind::Lock => "lock",
            PopulatorKind::Sync => "sync",
            PopulatorKind::Atomic => "atomic",
        }
    }
}

/// The word with the position, and its guard. An enum and not a box, so that the call can be inlined.
///
/// ```text
///  bit 63   sealed
///  62 … 0   first position not yet issued
/// ```
#[derive(Debug)]
pub(crate) enum Populator {
    Atomic(Word),
    Lock(Mutex<u64>),
    Sync(standard::Mutex<u64>),
}

/// Set in the word of a sealed populator. Positions have at most 63 bits (62 and one past the end), so
/// the bits never overlap, and a sealed word is above every position.
const SEALED: u64 = 1 << 63;

impl Populator {
    /// Starts at a position.
    pub(crate) fn new(kind: PopulatorKind, position: u64) -> Self {
        assert!(position < SEALED);
        match kind {
            PopulatorKind::Lock => Self::Lock(Mutex::new(position)),
            PopulatorKind::Sync => Self::Sync(standard::Mutex::new(position)),
            PopulatorKind::Atomic => Self::Atomic(Word::new(position)),
        }
    }

    /// Takes up to `want` positions atomically; waits for nothing but other claims.
    ///
    /// # Errors
    /// A [`Refusal`]; the position is then unchanged.
    pub(crate) fn claim(
        &self,
        now: u64,
        want: u32,
        rules: &Rules,
        bound: u64,
    ) -> Result<Claim, Refusal> {
        self.update(|word| match word {
            SEALED.. => Err(Refusal::Sealed),
            next => advance(next, now, want, rules, bound),
        })
    }

    /// Fastest path: takes one position below `end`, if the next position is below it and the populator is
    /// not sealed. The caller must know that every position below `end` is valid.
    #[inline(always)] // on the path of every ID: a call would be measurable
    pub(crate) fn take_one(&self, end: u64, make: impl Fn(u64) -> u64) -> Option<u64> {
        match self {
            Self::Atomic(word) => match word.take_one(end) {
                Ok(position) => Some(make(position)),
                Err(found) => word.take_one_again(found, end).map(make),
            },
            _ => {
                unlikely();
                self.take_one_locked(end).map(make)
            }
        }
    }

    #[inline(never)] // or its code would slow down the others
    fn take_one_locked(&self, end: u64) -> Option<u64> {
        let below = |word: &mut u64| {
            let next = *word;
            (next < end).then(|| *word += 1)?;
            Some(next)
        };
        match self {
            Self::Lock(word) => below(&mut lock(word)),
            Self::Sync(word) => below(&mut lock_standard(word)),
            Self::Atomic(word) => word.take_one(end).ok(),
        }
    }

    /// As [`take_one`](Self::take_one), up to `want` positions.
    #[inline]
    pub(crate) fn take(&self, want: u32, end: u64) -> Option<Claim> {
        self.update(|next| {
            if next < end {
                Ok(within(next, want, end))
            } else {
                Err(())
            }
        })
        .ok()
    }

    /// Advances the position to the end of a claim.
    #[inline(always)]
    fn update<E>(&self, claim: impl Fn(u64) -> Result<Claim, E>) -> Result<Claim, E> {
        let change = |word: &mut u64| claim(*word).inspect(|claim| *word = claim.end);
        match self {
            Self::Atomic(word) => word.update(claim),
            Self::Lock(word) => change(&mut lock(word)),
            Self::Sync(word) => change(&mut lock_standard(word)),
        }
    }

    /// Takes a claim back that no caller received, if it is still the last one and the populator is not
    /// sealed. Nothing above its start was ever issued then: later claims would be above its end, which is
    /// still the next position.
    pub(crate) fn give_back(&self, Claim { start, end }: Claim) -> bool {
        let change = |word: &mut u64| *word == end && std::mem::replace(word, start) == end;
        match self {
            Self::Atomic(word) => word.give_back(start, end),
            Self::Lock(word) => change(&mut lock(word)),
            Self::Sync(word) => change(&mut lock_standard(word)),
        }
    }

    /// Seals the populator for good (SAFETY.md, rule 2) and returns the first position that was never
    /// issued. From then on every claim is refused. Sealing again returns the same position.
    pub(crate) fn seal(&self) -> u64 {
        let seal = |word: &mut u64| std::mem::replace(word, *word | SEALED);
        let before = match self {
            Self::Atomic(word) => word.seal(),
            Self::Lock(word) => seal(&mut lock(word)),
            Self::Sync(word) => seal(&mut lock_standard(word)),
        };
        before & !SEALED
    }
}

#[inline]
fn lock(word: &Mutex<u64>) -> MutexGuard<'_, u64> {
    word.try_lock().unwrap_or_else(|| {
        pause_at_lock();
        word.lock()
    })
}

/// The word changes in a single assignment, so a panic elsewhere cannot leave it half changed.
#[inline]
fn lock_standard(word: &standard::Mutex<u64>) -> standard::MutexGuard<'_, u64> {
    match word.try_lock() {
        Ok(word) => word,
        Err(TryLockError::Poisoned(error)) => error.into_inner(),
        Err(TryLockError::WouldBlock) => {
            pause_at_lock();
            word.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

/// A word changed by compare-and-swap.
#[derive(Debug)]
#[repr(align(128))] // its own cache line (pair): the data read next to it rarely changes
pub(crate) struct Word(AtomicU64);

impl Word {
    const fn new(position: u64) -> Self {
        Self(AtomicU64::new(position))
    }

    /// A position below `end`; otherwise the current word, which is too large or was changed by
    /// another caller.
    #[inline(always)]
    fn take_one(&self, end: u64) -> Result<u64, u64> {
        // Relaxed: as in `update`.
        let next = self.0.load(Ordering::Relaxed);
        if next >= end {
            return Err(next);
        }
        self.0
            .compare_exchange(next, next + 1, Ordering::Relaxed, Ordering::Relaxed)
    }

    /// Retries after `take_one` failed with the word `found`.
    #[cold]
    #[inline(never)]
    fn take_one_again(&self, mut found: u64, end: u64) -> Option<u64> {
        while found < end {
            let word = back_off(found, 1, || self.0.load(Ordering::Relaxed));
            if word >= end {
                return None;
            }
            match self
                .0
                .compare_exchange(word, word + 1, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(position) => return Some(position),
                Err(changed) => found = changed,
            }
        }
        None
    }

    #[inline(always)]
    fn update<E>(&self, claim: impl Fn(u64) -> Result<Claim, E>) -> Result<Claim, E> {
        // Relaxed throughout: the word is the whole state, and nothing else is published with it. The
        // modification order of the word, on which uniqueness relies, holds for relaxed changes too.
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let claim = claim(word)?;
            match self
                .0
                .compare_exchange(word, claim.end, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Ok(claim),
                Err(found) => {
                    let size = claim.end - claim.start;
                    word = back_off(found, size, || self.0.load(Ordering::Relaxed));
                }
            }
        }
    }

    fn give_back(&self, start: u64, end: u64) -> bool {
        // Relaxed: as above.
        self.0
            .compare_exchange(end, start, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    fn seal(&self) -> u64 {
        // Relaxed: as above. The returned value is exact because it comes from the same atomic change.
        self.0.fetch_or(SEALED, Ordering::Relaxed)
    }
}

/// Populators as seen by tests: the real ones, and some with planted faults.
#[cfg(all(test, not(shuttle)))]
pub(crate) mod subject {
    use super::*;

    pub(crate) trait IdPopulator: Send + Sync + std::fmt::Debug {
        fn claim(
            &self,
            now_tick: u64,
            want: u32,
            rules: &Rules,
            bound: u64,
        ) -> Result<Claim, Refusal>;
        fn seal(&self) -> u64;
        fn give_back(&self, claim: Claim) -> bool;
        /// The first position not yet issued.
        fn position(&self) -> u64;
    }

    impl IdPopulator for Populator {
        fn claim(
            &self,
            now_tick: u64,
            want: u32,
            rules: &Rules,
            bound: u64,
        ) -> Result<Claim, Refusal> {
            self.claim(now_tick, want, rules, bound)
        }

        fn seal(&self) -> u64 {
            self.seal()
        }

        fn give_back(&self, claim: Claim) -> bool {
            self.give_back(claim)
        }

        fn position(&self) -> u64 {
            let word = match self {
                Self::Lock(word) => *lock(word),
                Self::Sync(word) => *lock_standard(word),
                Self::Atomic(word) => word.0.load(Ordering::Relaxed),
            };
            word & !SEALED
        }
    }
}
