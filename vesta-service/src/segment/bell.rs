//! Waiting until something changes, for threads and for tasks, without polling.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};

/// Counts changes and wakes those who wait for the next one.
///
/// Who waits reads the count first, then looks whether there is something for it, and then waits for
/// the count to be another one: so it misses no change.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    changes: AtomicU64,
    /// The tasks that wait, each under a number of its own.
    pub(super) tasks: Mutex<BTreeMap<u64, Waker>>,
    rung: Condvar,
}

impl Bell {
    /// How many changes there were.
    pub(crate) fn changes(&self) -> u64 {
        // Acquire, with the release in `ring`: who sees the count sees what changed.
        self.changes.load(Ordering::Acquire)
    }

    /// Something changed; the change itself is made before.
    pub(crate) fn ring(&self) {
        let tasks = {
            // Under the lock: between a waiter's look at the count and its sleep there is no ring.
            let mut tasks = self.tasks.lock();
            self.changes.fetch_add(1, Ordering::Release);
            std::mem::take(&mut *tasks)
        };
        self.rung.notify_all();
        tasks.into_values().for_each(Waker::wake);
    }

    /// Puts the calling thread to sleep until the count is another one than `seen`, for `limit` at
    /// most.
    pub(crate) fn wait(&self, seen: u64, limit: Duration) {
        let mut tasks = self.tasks.lock();
        self.rung.wait_while_for(&mut tasks, |_| self.changes() == seen, limit);
    }
}
