//! The position behind a mutex of parking_lot.

use super::IdPopulator;
use crate::sequence::{Claim, Refusal, Rules};
use crate::sync::{Mutex, MutexGuard};
use crate::wait::BackOff;

/// Guards the position by a parking_lot mutex: one byte, and waiters sleep. The default, as the
/// `ReentrantLock` was in the original; unlike there, nobody waits for time with the lock held.
#[derive(Debug)]
pub struct LockIdPopulator {
    cursor: Mutex<super::Cursor>,
}

impl LockIdPopulator {
    /// Starts at a position.
    pub const fn new(position: u64) -> Self {
        Self { cursor: Mutex::new(super::Cursor::new(position)) }
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, super::Cursor> {
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
