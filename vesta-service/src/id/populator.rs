//! The position on the line, stored and guarded. What may be taken is decided by
//! [`sequence::advance`](crate::sequence::advance) alone; a populator only makes it atomic.

#[cfg(all(test, loom))]
mod races;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::sync::{PoisonError, TryLockError};

use crate::sequence::{Claim, Refusal, Rules, advance};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, standard};
use crate::wait::BackOff;

/// The populators, by name. They differ in cost only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PopulatorKind {
    /// Guards the position by a parking_lot mutex: one byte, and waiters sleep. The default, as the
    /// `ReentrantLock` was in the original; unlike there, nobody waits for time with the lock held.
    #[default]
    Lock,
    /// Guards the position by a standard mutex, as the original's `synchronized` method did.
    Sync,
    /// Guards the position by compare-and-swap: the fastest under contention.
    Atomic,
}

impl PopulatorKind {
    /// Every populator there is.
    pub const ALL: [PopulatorKind; 3] = [Self::Lock, Self::Sync, Self::Atomic];

    /// The name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            PopulatorKind::Lock => "lock",
            PopulatorKind::Sync => "sync",
            PopulatorKind::Atomic => "atomic",
        }
    }
}

/// The first position not yet issued, and its guard. An enum and not a box: the call can then be
/// inlined.
#[derive(Debug)]
pub(crate) enum Populator {
    Lock(Mutex<Cursor>),
    Sync(standard::Mutex<Cursor>),
    Atomic(Word),
}

impl Populator {
    /// Starts at a position.
    pub(crate) fn new(kind: PopulatorKind, position: u64) -> Self {
        let cursor = Cursor { next: position, sealed: false };
        match kind {
            PopulatorKind::Lock => Self::Lock(Mutex::new(cursor)),
            PopulatorKind::Sync => Self::Sync(standard::Mutex::new(cursor)),
            PopulatorKind::Atomic => Self::Atomic(Word::new(position)),
        }
    }

    /// Takes up to `want` positions, atomically, without waiting for anything but another claim.
    ///
    /// # Errors
    /// A [`Refusal`]; then the position has not moved.
    #[inline]
    pub(crate) fn claim(
        &self,
        now_tick: u64,
        want: u32,
        rules: &Rules,
        limit: u64,
    ) -> Result<Claim, Refusal> {
        match self {
            Self::Lock(cursor) => lock(cursor).claim(now_tick, want, rules, limit),
            Self::Sync(cursor) => lock_standard(cursor).claim(now_tick, want, rules, limit),
            Self::Atomic(word) => word.claim(now_tick, want, rules, limit),
        }
    }

    /// Ends the line for good and returns the first position that was never issued. From then on
    /// every claim is refused. Sealing again returns the same position.
    pub(crate) fn seal(&self) -> u64 {
        match self {
            Self::Lock(cursor) => lock(cursor).seal(),
            Self::Sync(cursor) => lock_standard(cursor).seal(),
            Self::Atomic(word) => word.seal(),
        }
    }
}

#[inline]
fn lock(cursor: &Mutex<Cursor>) -> MutexGuard<'_, Cursor> {
    cursor.try_lock().unwrap_or_else(|| {
        BackOff::new().spin();
        cursor.lock()
    })
}

/// The cursor is changed by one assignment, so a panic elsewhere cannot leave it half changed.
#[inline]
fn lock_standard(cursor: &standard::Mutex<Cursor>) -> standard::MutexGuard<'_, Cursor> {
    match cursor.try_lock() {
        Ok(cursor) => cursor,
        Err(TryLockError::Poisoned(error)) => error.into_inner(),
        Err(TryLockError::WouldBlock) => {
            BackOff::new().spin();
            cursor.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

/// Position state guarded by a mutex: the first position not yet issued, and the seal.
#[derive(Debug)]
pub(crate) struct Cursor {
    next: u64,
    sealed: bool,
}

impl Cursor {
    #[inline]
    fn claim(
        &mut self,
        now_tick: u64,
        want: u32,
        rules: &Rules,
        limit: u64,
    ) -> Result<Claim, Refusal> {
        if self.sealed {
            return Err(Refusal::Sealed);
        }
        let claim = advance(self.next, now_tick, want, rules, limit)?;
        self.next = claim.end;
        Ok(claim)
    }

    fn seal(&mut self) -> u64 {
        self.sealed = true;
        self.next
    }
}

/// Set in a word whose line is sealed. Positions have at most 63 bits (62 and one past the end), so
/// the bits never meet.
const SEALED: u64 = 1 << 63;

/// Position state in one word, changed by compare-and-swap.
///
/// ```text
///  bit 63   sealed
///  62 … 0   first position not yet issued
/// ```
#[derive(Debug)]
#[repr(align(128))] // a cache line (pair) of its own: what is read beside it changes rarely
pub(crate) struct Word(AtomicU64);

impl Word {
    const fn new(position: u64) -> Self {
        assert!(position < SEALED);
        Self(AtomicU64::new(position))
    }

    #[inline]
    fn claim(&self, now_tick: u64, want: u32, rules: &Rules, limit: u64) -> Result<Claim, Refusal> {
        // Relaxed throughout: the word is the whole state, and nothing else is published with it.
        // The order of all its changes, which is what uniqueness needs, holds for relaxed ones too.
        let mut word = self.0.load(Ordering::Relaxed);
        let mut back_off = BackOff::new();
        loop {
            if word & SEALED != 0 {
                return Err(Refusal::Sealed);
            }
            let claim = advance(word, now_tick, want, rules, limit)?;
            match self.0.compare_exchange(word, claim.end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(claim),
                Err(_) => {
                    back_off.spin();
                    word = self.0.load(Ordering::Relaxed);
                }
            }
        }
    }

    fn seal(&self) -> u64 {
        // Relaxed: as above. What is returned is exact because it is the same atomic change.
        self.0.fetch_or(SEALED, Ordering::Relaxed) & !SEALED
    }
}

/// Populators as tests see them: the real ones, and some with planted faults.
#[cfg(test)]
pub(crate) mod subject {
    use super::*;

    pub(crate) trait IdPopulator: Send + Sync + std::fmt::Debug {
        fn claim(
            &self,
            now_tick: u64,
            want: u32,
            rules: &Rules,
            limit: u64,
        ) -> Result<Claim, Refusal>;
        fn seal(&self) -> u64;
        /// The first position not yet issued.
        fn position(&self) -> u64;
    }

    impl IdPopulator for Populator {
        fn claim(
            &self,
            now_tick: u64,
            want: u32,
            rules: &Rules,
            limit: u64,
        ) -> Result<Claim, Refusal> {
            self.claim(now_tick, want, rules, limit)
        }

        fn seal(&self) -> u64 {
            self.seal()
        }

        fn position(&self) -> u64 {
            match self {
                Self::Lock(cursor) => lock(cursor).next,
                Self::Sync(cursor) => lock_standard(cursor).next,
                Self::Atomic(word) => word.0.load(Ordering::Relaxed) & !SEALED,
            }
        }
    }
}
