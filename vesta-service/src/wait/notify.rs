//! Change notification for threads and tasks, without polling.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};

/// Counts changes and wakes the waiters for the next one.
///
/// A waiter reads the count first, then checks its condition, and then waits for the count to
/// differ: so it misses no change.
#[derive(Debug, Default)]
pub struct Notify {
    changes: AtomicU64,
    /// The waiting tasks, each with a unique number.
    pub(super) tasks: Mutex<BTreeMap<u64, Waker>>,
    changed: Condvar,
}

impl Notify {
    /// The number of changes so far.
    pub fn changes(&self) -> u64 {
        // Acquire: pairs with the release in `notify`; a caller that sees the count sees the change.
        self.changes.load(Ordering::Acquire)
    }

    /// Reports a change that has already been made.
    pub fn notify(&self) {
        let tasks = {
            // Under the lock, no change can occur between a waiter's check of the count and its sleep.
            let mut tasks = self.tasks.lock();
            self.changes.fetch_add(1, Ordering::Release);
            std::mem::take(&mut *tasks)
        };
        self.changed.notify_all();
        tasks.into_values().for_each(Waker::wake);
    }

    /// Blocks the calling thread until the count differs from `seen`, or until `limit` has passed.
    pub fn wait(&self, seen: u64, limit: Duration) {
        let mut tasks = self.tasks.lock();
        self.changed
            .wait_while_for(&mut tasks, |_| self.changes() == seen, limit);
    }
}
