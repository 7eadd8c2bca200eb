//! The position on the line, stored and guarded. What may be taken is decided by
//! [`sequence::advance`](crate::sequence::advance) alone; a populator only makes it atomic.

#[cfg(all(test, loom))]
mod races;

use std::fmt;
use std::str::FromStr;
use std::sync::{PoisonError, TryLockError};

use vesta_intf::IdError;

use crate::sequence::{Claim, Refusal, Rules, advance};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, standard};
use crate::wait::BackOff;

/// Stores the first position not yet issued. The three implementations differ in cost only and pass
/// one test suite.
pub trait IdPopulator: Send + Sync + fmt::Debug {
    /// Takes up to `want` positions, atomically, without waiting for anything but another claim.
    ///
    /// # Errors
    /// A [`Refusal`]; then the position has not moved.
    fn claim(&self, now_tick: u64, want: u32, rules: &Rules, limit: u64) -> Result<Claim, Refusal>;

    /// Ends the line for good and returns the first position that was never issued. From then on
    /// every claim is refused. Sealing again returns the same position.
    fn seal(&self) -> u64;

    /// The first position not yet issued.
    fn position(&self) -> u64;
}

/// The populators, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum PopulatorKind {
    /// [`LockIdPopulator`]: the default, as in the original.
    #[default]
    Lock,
    /// [`SyncIdPopulator`].
    Sync,
    /// [`AtomicIdPopulator`]: the fastest.
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

impl fmt::Display for PopulatorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PopulatorKind {
    type Err = IdError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            IdError::invalid("populator", format!("`{name}` is not one of lock, sync, atomic"))
        })
    }
}

/// Position state guarded by a mutex: the first position not yet issued, and the seal.
#[derive(Debug)]
struct Cursor {
    next: u64,
    sealed: bool,
}

impl Cursor {
    const fn new(position: u64) -> Self {
        Self { next: position, sealed: false }
    }

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

    const fn position(&self) -> u64 {
        self.next
    }
}

/// Guards the position by a parking_lot mutex: one byte, and waiters sleep. The default, as the
/// `ReentrantLock` was in the original; unlike there, nobody waits for time with the lock held.
#[derive(Debug)]
pub struct LockIdPopulator {
    cursor: Mutex<Cursor>,
}

impl LockIdPopulator {
    /// Starts at a position.
    pub const fn new(position: u64) -> Self {
        Self { cursor: Mutex::new(Cursor::new(position)) }
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Cursor> {
        self.cursor.try_lock().unwrap_or_else(|| {
            BackOff::new().spin();
            self.cursor.lock()
        })
    }
}

impl IdPopulator for LockIdPopulator {
    #[inline]
    fn claim(&self, now_tick: u64, want: u32, rules: &Rules, limit: u64) -> Result<Claim, Refusal> {
        self.lock().claim(now_tick, want, rules, limit)
    }

    fn seal(&self) -> u64 {
        self.lock().seal()
    }

    fn position(&self) -> u64 {
        self.lock().position()
    }
}

/// Guards the position by a standard mutex, as the original's `synchronized` method did.
#[derive(Debug)]
pub struct SyncIdPopulator {
    cursor: standard::Mutex<Cursor>,
}

impl SyncIdPopulator {
    /// Starts at a position.
    pub const fn new(position: u64) -> Self {
        Self { cursor: standard::Mutex::new(Cursor::new(position)) }
    }

    /// The cursor is changed by one assignment, so a panic elsewhere cannot leave it half changed.
    #[inline]
    fn lock(&self) -> standard::MutexGuard<'_, Cursor> {
        match self.cursor.try_lock() {
            Ok(cursor) => cursor,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => {
                BackOff::new().spin();
                self.cursor.lock().unwrap_or_else(PoisonError::into_inner)
            }
        }
    }
}

impl IdPopulator for SyncIdPopulator {
    #[inline]
    fn claim(&self, now_tick: u64, want: u32, rules: &Rules, limit: u64) -> Result<Claim, Refusal> {
        self.lock().claim(now_tick, want, rules, limit)
    }

    fn seal(&self) -> u64 {
        self.lock().seal()
    }

    fn position(&self) -> u64 {
        self.lock().position()
    }
}

/// Set in a word whose line is sealed. Positions have at most 63 bits (62 and one past the end), so
/// the bits never meet.
const SEALED: u64 = 1 << 63;

/// Guards the position by compare-and-swap.
///
/// ```text
///  bit 63   sealed
///  62 … 0   first position not yet issued
/// ```
#[derive(Debug)]
#[repr(align(128))] // a cache line (pair) of its own: what is read beside it changes rarely
pub struct AtomicIdPopulator {
    word: AtomicU64,
}

impl AtomicIdPopulator {
    /// Starts at a position.
    pub const fn new(position: u64) -> Self {
        assert!(position < SEALED);
        Self { word: AtomicU64::new(position) }
    }
}

impl IdPopulator for AtomicIdPopulator {
    #[inline]
    fn claim(&self, now_tick: u64, want: u32, rules: &Rules, limit: u64) -> Result<Claim, Refusal> {
        // Relaxed throughout: the word is the whole state, and nothing else is published with it.
        // The order of all its changes, which is what uniqueness needs, holds for relaxed ones too.
        let mut word = self.word.load(Ordering::Relaxed);
        let mut back_off = BackOff::new();
        loop {
            if word & SEALED != 0 {
                return Err(Refusal::Sealed);
            }
            let claim = advance(word, now_tick, want, rules, limit)?;
            match self.word.compare_exchange(word, claim.end, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Ok(claim),
                Err(_) => {
                    back_off.spin();
                    word = self.word.load(Ordering::Relaxed);
                }
            }
        }
    }

    fn seal(&self) -> u64 {
        // Relaxed: as above. What is returned is exact because it is the same atomic change.
        self.word.fetch_or(SEALED, Ordering::Relaxed) & !SEALED
    }

    fn position(&self) -> u64 {
        self.word.load(Ordering::Relaxed) & !SEALED
    }
}

/// A populator chosen at run time. An enum and not a box: the call can then be inlined.
#[derive(Debug)]
pub(crate) enum AnyPopulator {
    Lock(LockIdPopulator),
    Sync(SyncIdPopulator),
    Atomic(AtomicIdPopulator),
}

impl AnyPopulator {
    pub(crate) fn new(kind: PopulatorKind, position: u64) -> Self {
        match kind {
            PopulatorKind::Lock => Self::Lock(LockIdPopulator::new(position)),
            PopulatorKind::Sync => Self::Sync(SyncIdPopulator::new(position)),
            PopulatorKind::Atomic => Self::Atomic(AtomicIdPopulator::new(position)),
        }
    }

    fn as_dyn(&self) -> &dyn IdPopulator {
        match self {
            Self::Lock(populator) => populator,
            Self::Sync(populator) => populator,
            Self::Atomic(populator) => populator,
        }
    }
}

impl IdPopulator for AnyPopulator {
    #[inline]
    fn claim(&self, now_tick: u64, want: u32, rules: &Rules, limit: u64) -> Result<Claim, Refusal> {
        match self {
            Self::Lock(populator) => populator.claim(now_tick, want, rules, limit),
            Self::Sync(populator) => populator.claim(now_tick, want, rules, limit),
            Self::Atomic(populator) => populator.claim(now_tick, want, rules, limit),
        }
    }

    fn seal(&self) -> u64 {
        self.as_dyn().seal()
    }

    fn position(&self) -> u64 {
        self.as_dyn().position()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn each_is_chosen_by_its_name_and_goes_by_the_same_rule() {
        let rules = Rules::new(3, 2, 0);
        for kind in PopulatorKind::ALL {
            assert_eq!(kind.to_string().parse::<PopulatorKind>().unwrap(), kind);
            let chosen = AnyPopulator::new(kind, 5);
            assert_eq!(chosen.position(), 5);
            assert_eq!(chosen.claim(2, 2, &rules, u64::MAX), Ok(Claim { start: 8, end: 10 }));
            assert_eq!((chosen.position(), chosen.seal()), (10, 10));
            assert_eq!(chosen.claim(3, 1, &rules, u64::MAX), Err(Refusal::Sealed));
        }
        let names: Vec<_> = PopulatorKind::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["lock", "sync", "atomic"]);
        assert!("mutex".parse::<PopulatorKind>().is_err());
    }
}
