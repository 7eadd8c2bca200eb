//! Change notification for threads and tasks, without polling.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};

/// Counts changes and wakes those who wait for the next one.
///
/// A waiter reads the count first, then looks for what it needs, and then waits for the count to
/// differ: so it misses no change.
#[derive(Debug, Default)]
pub(crate) struct Notify {
    changes: AtomicU64,
    /// The tasks that wait, each under a number of its own.
    pub(super) tasks: Mutex<BTreeMap<u64, Waker>>,
    changed: Condvar,
}

impl Notify {
    /// The number of changes so far.
    pub(crate) fn changes(&self) -> u64 {
        // Acquire, with the release in `notify`: whoever sees the count sees what changed.
        self.changes.load(Ordering::Acquire)
    }

    /// Reports a change, which was made before.
    pub(crate) fn notify(&self) {
        let tasks = {
            // Under the lock: between a waiter's look at the count and its sleep there is no change.
            let mut tasks = self.tasks.lock();
            self.changes.fetch_add(1, Ordering::Release);
            std::mem::take(&mut *tasks)
        };
        self.changed.notify_all();
        tasks.into_values().for_each(Waker::wake);
    }

    /// Puts the calling thread to sleep until the count is another one than `seen`, for `limit` at
    /// most.
    pub(crate) fn wait(&self, seen: u64, limit: Duration) {
        let mut tasks = self.tasks.lock();
        self.changed
            .wait_while_for(&mut tasks, |_| self.changes() == seen, limit);
    }
}
