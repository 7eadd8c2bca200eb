//! The position behind a mutex of the standard library.

use std::sync::{PoisonError, TryLockError};

use super::IdPopulator;
use crate::sequence::{Claim, Refusal, Rules};
use crate::sync::standard::{Mutex, MutexGuard};
use crate::wait::BackOff;

/// Guards the position by a standard mutex, as the original's `synchronized` method did.
#[derive(Debug)]
pub struct SyncIdPopulator {
    cursor: Mutex<super::Cursor>,
}

impl SyncIdPopulator {
    /// Starts at a position.
    pub const fn new(position: u64) -> Self {
        Self { cursor: Mutex::new(super::Cursor::new(position)) }
    }

    /// The cursor is changed by one assignment, so a panic elsewhere cannot leave it half changed.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, super::Cursor> {
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
