//! Populators: store and guard the position of a machine ID.
//! [`sequence::advance`](crate::sequence::advance) alone decides what may be taken; a
//! populator only makes it atomic.

#[cfg(all(test, loom))]
mod races;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod word;

use std::sync::{PoisonError, TryLockError};

use crate::reentry::Inside;
use crate::sequence::{Claim, Refusal, Rules, advance, within};
use crate::sync::{Mutex, MutexGuard, standard};
use crate::wait::pause_at_lock;
use word::Word;

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

/// The word with the position, or another one and its guard.
///
/// ```text
///  bit 63   sealed
///  62 … 0   first position not yet issued
/// ```
#[derive(Debug)]
pub(crate) struct Populator {
    /// Sealed from the beginning if the position is guarded: the fastest path looks at this word only.
    word: Word,
    guarded: Guarded,
}

#[derive(Debug)]
enum Guarded {
    No,
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
        let guarded = match kind {
            PopulatorKind::Lock => Guarded::Lock(Mutex::new(position)),
            PopulatorKind::Sync => Guarded::Sync(standard::Mutex::new(position)),
            PopulatorKind::Atomic => Guarded::No,
        };
        let word = match guarded {
            Guarded::No => Word::new(position),
            _ => Word::shared(SEALED),
        };
        Self { word, guarded }
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
        })?
    }

    /// Fastest path: takes one position below `end`, if the next position is below it and the populator is
    /// not sealed. The caller must know that every position below `end` is valid.
    #[inline(always)] // on the path of every ID: a call would be measurable
    pub(crate) fn take_one(&self, end: u64, make: impl Fn(u64) -> u64) -> Option<u64> {
        match self.word.take_one(end) {
            Ok(position) => Some(make(position)),
            Err(found) => self.take_one_again(found, end).map(make),
        }
    }

    /// Tries again after the word alone had this position, or none.
    #[cold]
    #[inline(never)] // or its code would slow down the others
    fn take_one_again(&self, found: u64, end: u64) -> Option<u64> {
        let below = |word: &mut u64| {
            let next = *word;
            (next < end).then(|| *word += 1)?;
            Some(next)
        };
        match &self.guarded {
            Guarded::No => self.word.take_one_again(found, end),
            guarded => {
                let _inside = Inside::enter().ok()?;
                match guarded {
                    Guarded::Sync(word) => below(&mut lock_standard(word)),
                    Guarded::Lock(word) => below(&mut lock(word)),
                    Guarded::No => None,
                }
            }
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
        .ok()?
        .ok()
    }

    /// Advances the position to the end of a claim, or explains why that is impossible now.
    #[inline(always)]
    fn update<E>(
        &self,
        claim: impl Fn(u64) -> Result<Claim, E>,
    ) -> Result<Result<Claim, E>, Refusal> {
        let change = |word: &mut u64| Ok(claim(*word).inspect(|claim| *word = claim.end));
        match &self.guarded {
            Guarded::No => self.word.update(claim),
            Guarded::Lock(word) => change(&mut lock(word)),
            Guarded::Sync(word) => change(&mut lock_standard(word)),
        }
    }

    /// Takes a claim back that no caller received, if it is still the last one and the populator is not
    /// sealed. Nothing above its start was ever issued then: later claims would be above its end, which is
    /// still the next position.
    pub(crate) fn give_back(&self, Claim { start, end }: Claim) -> bool {
        let change = |word: &mut u64| *word == end && std::mem::replace(word, start) == end;
        match &self.guarded {
            Guarded::No => self.word.give_back(start, end),
            Guarded::Lock(word) => change(&mut lock(word)),
            Guarded::Sync(word) => change(&mut lock_standard(word)),
        }
    }

    /// Seals the populator for good (SAFETY.md, rule 2) and returns the first position that was never
    /// issued; without it, if it cannot be known. From then on every claim is refused. Sealing again returns the same
    /// position.
    pub(crate) fn seal(&self) -> Option<u64> {
        let seal = |word: &mut u64| std::mem::replace(word, *word | SEALED);
        let before = match &self.guarded {
            Guarded::No => self.word.seal().ok()?,
            Guarded::Lock(word) => seal(&mut lock(word)),
            Guarded::Sync(word) => seal(&mut lock_standard(word)),
        };
        Some(before & !SEALED)
    }

    /// In the child of a fork, which issues nothing: its calls wait for no thread of the parent.
    pub(crate) fn close_in_child(&self) {
        self.word.share_in_child();
    }
}

#[inline]
fn lock(word: &Mutex<u64>) -> MutexGuard<'_, u64> {
    let attempt = || word.try_lock();
    attempt()
        .or_else(|| pause_at_lock(attempt))
        .unwrap_or_else(|| word.lock())
}

/// The word changes in a single assignment, so a panic elsewhere cannot leave it half changed.
#[inline]
fn lock_standard(word: &standard::Mutex<u64>) -> standard::MutexGuard<'_, u64> {
    let attempt = || match word.try_lock() {
        Ok(word) => Some(word),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    attempt()
        .or_else(|| pause_at_lock(attempt))
        .unwrap_or_else(|| word.lock().unwrap_or_else(PoisonError::into_inner))
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
            self.seal().expect("it can be taken away")
        }

        fn give_back(&self, claim: Claim) -> bool {
            self.give_back(claim)
        }

        fn position(&self) -> u64 {
            #[cfg(loom)]
            self.word.touch();
            let word = match &self.guarded {
                Guarded::Lock(word) => *lock(word),
                Guarded::Sync(word) => *lock_standard(word),
                Guarded::No => self.word.position(),
            };
            word & !SEALED
        }
    }
}
