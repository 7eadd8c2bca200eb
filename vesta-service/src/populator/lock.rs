//! The position behind a mutex of parking_lot.

use parking_lot::Mutex;

use super::IdPopulator;
use crate::sequence::{Claim, Refusal, Rules};

/// Guards the position by a parking_lot mutex: one byte, and waiters sleep. The default, as the
/// `ReentrantLock` was in the original; unlike there, nobody waits for time with the lock held.
#[derive(Debug)]
pub struct LockIdPopulator {
    line: Mutex<super::Line>,
}

impl LockIdPopulator {
    /// Starts at a position.
    pub const fn new(position: u64) -> Self {
        Self { line: Mutex::new(super::Line::new(position)) }
    }
}

impl IdPopulator for LockIdPopulator {
    #[inline]
    fn claim(&self, now_tick: u64, want: u32, rules: &Rules, limit: u64) -> Result<Claim, Refusal> {
        self.line.lock().claim(now_tick, want, rules, limit)
    }

    fn seal(&self) -> u64 {
        self.line.lock().seal()
    }

    fn position(&self) -> u64 {
        self.line.lock().position()
    }
}
