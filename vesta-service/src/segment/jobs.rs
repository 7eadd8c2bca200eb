//! Jobs of the fetch workers: a small thread pool, or the caller of `maintain`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::key::Key;
use crate::sync::{Condvar, Mutex};

/// The most fetches under way at once: a store that is slow for one tag does not hold up the others.
pub(super) const THREADS: usize = 4;

/// Work at the store.
#[derive(Debug, Clone)]
pub(super) enum Job {
    /// The fetch of a tag, if it is due then.
    Fetch(Arc<Key>),
    /// Reading which tags there are.
    Refresh,
}

/// The jobs that are due, and those that will be.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct List {
    /// By moment, and in the order in which they came.
    jobs: BTreeMap<(Duration, u64), Job>,
    count: u64,
    stop: bool,
}

impl Jobs {
    /// Adds a job for a moment.
    pub(super) fn add(&self, at: Duration, job: Job) {
        let mut list = self.list.lock();
        list.count += 1;
        let number = list.count;
        list.jobs.insert((at, number), job);
        self.changed.notify_one();
    }

    /// The next job that is due; without one, how long there is none, as far as is known.
    pub(super) fn take(&self, now: Duration) -> Result<Job, Option<Duration>> {
        self.list.lock().take(now)
    }

    /// The next job, for a thread that has nothing else to do. `None` at the end.
    pub(super) fn wait(&self, now: impl Fn() -> Duration) -> Option<Job> {
        let mut list = self.list.lock();
        while !list.stop {
            let pause = match list.take(now()) {
                Ok(job) => {
                    self.changed.notify_one(); // another thread waits for the next one
                    return Some(job);
                }
                Err(pause) => pause.unwrap_or(Duration::MAX),
            };
            self.changed.wait_for(&mut list, pause);
        }
        None
    }

    /// Ends the threads: each after what it is doing.
    pub(super) fn stop(&self) {
        let mut list = self.list.lock();
        list.jobs.clear();
        list.stop = true;
        self.changed.notify_all();
    }
}

impl List {
    fn take(&mut self, now: Duration) -> Result<Job, Option<Duration>> {
        match self.jobs.first_entry() {
            Some(first) if first.key().0 <= now => Ok(first.remove()),
            Some(first) => Err(Some(first.key().0.saturating_sub(now))),
            None => Err(None),
        }
    }
}
