//! Jobs of the fetch workers: a small thread pool, or the caller of `maintain`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::key::Key;
use crate::sync::{Condvar, Mutex};

/// The most fetches under way at once: a store that is slow for one tag does not hold up the others.
/// Threads are started when that many jobs are due at once for the first time.
pub(super) const MAX_THREADS: usize = 4;

/// Work at the store.
#[derive(Debug, Clone)]
pub(super) enum Job {
    /// The fetch of a tag, if it is due then.
    Fetch(Arc<Key>),
    /// Reading which tags there are.
    Refresh,
}

/// The jobs that are due, and those that will be.
#[derive(Debug)]
pub(super) struct Jobs {
    list: Mutex<List>,
    changed: Condvar,
    max_threads: usize,
}

#[derive(Debug, Default)]
struct List {
    /// By moment, and in the order in which they came.
    jobs: BTreeMap<(Duration, u64), Job>,
    count: u64,
    threads: usize,
    idle: usize,
    stop: bool,
}

impl Jobs {
    pub(super) fn new(max_threads: usize) -> Self {
        Self { list: Mutex::default(), changed: Condvar::default(), max_threads }
    }

    /// Adds a job for a moment. Returns `true` if one more thread has to be started.
    pub(super) fn add(&self, now: Duration, at: Duration, job: Job) -> bool {
        let mut list = self.list.lock();
        list.count += 1;
        let number = list.count;
        list.jobs.insert((at, number), job);
        self.changed.notify_one();
        let due = list.jobs.range(..=(now, u64::MAX)).take(MAX_THREADS + 1).count();
        let more = !list.stop && due > list.idle && list.threads < self.max_threads;
        list.threads += usize::from(more);
        more
    }

    /// A thread could not be started.
    pub(super) fn not_started(&self) {
        self.list.lock().threads -= 1;
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
                Ok(job) => return Some(job),
                Err(pause) => pause.unwrap_or(Duration::MAX),
            };
            list.idle += 1;
            self.changed.wait_for(&mut list, pause);
            list.idle -= 1;
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
