//! Jobs of the fetch workers: a small thread pool, or the caller of `maintain`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::key::Key;
use vesta_service::inside::sync::{Condvar, Mutex};

/// Maximum number of fetches in flight: a store that is slow for one tag does not delay the others.
pub(super) const THREADS: usize = 4;

/// Work at the store.
#[derive(Debug, Clone)]
pub(super) enum Job {
    /// Fetch numbers of a tag, if a fetch is still due.
    Fetch(Arc<Key>),
    /// Read the tags.
    Refresh,
    /// The same, for an unknown tag.
    Look,
    /// Record the ends that this host was given.
    Remember,
    /// Give back the unused numbers of a tag, at the end.
    GiveBack(Arc<Key>),
}

/// The jobs that are due, and future ones.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct List {
    /// Jobs by moment, then in the order of arrival.
    jobs: BTreeMap<(Duration, u64), Job>,
    count: u64,
    /// Set at the end: no more jobs come.
    over: bool,
    /// Number of threads that have not ended.
    threads: usize,
}

impl Jobs {
    /// Adds a job for a moment; ignored after the end.
    pub(super) fn add(&self, at: Duration, job: Job) {
        let mut list = self.list.lock();
        if !list.over {
            list.add(at, job);
            self.changed.notify_one();
        }
    }

    /// Counts a thread that is about to start. It ends by [`wait`](Self::wait).
    pub(super) fn add_thread(&self) {
        self.list.lock().threads += 1;
    }

    /// The next due job; without one, the time until the next, as far as known.
    pub(super) fn take(&self, now: Duration) -> Result<Job, Option<Duration>> {
        self.list.lock().take(now)
    }

    /// The next job, for an idle thread. `None` at the end.
    pub(super) fn wait(&self, now: impl Fn() -> Duration) -> Option<Job> {
        let mut list = self.list.lock();
        loop {
            let pause = match list.take(now()) {
                Ok(job) => {
                    self.changed.notify_one(); // another thread waits for the next job
                    return Some(job);
                }
                Err(_) if list.over => break,
                Err(pause) => pause.unwrap_or(Duration::MAX),
            };
            self.changed.wait_for(&mut list, pause);
        }
        list.threads -= 1;
        self.changed.notify_all();
        None
    }

    /// Replaces all jobs by the last ones: the threads end after them.
    pub(super) fn end_with(&self, last: impl IntoIterator<Item = Job>) {
        let mut list = self.list.lock();
        list.jobs.clear();
        list.over = true;
        last.into_iter()
            .for_each(|job| list.add(Duration::ZERO, job));
        self.changed.notify_all();
    }

    /// Returns when the threads have ended, or after the limit.
    pub(super) fn wait_for_end(&self, limit: Duration) {
        let mut list = self.list.lock();
        self.changed
            .wait_while_for(&mut list, |list| list.threads > 0, limit);
    }
}

impl List {
    fn add(&mut self, at: Duration, job: Job) {
        self.count += 1;
        self.jobs.insert((at, self.count), job);
    }

    fn take(&mut self, now: Duration) -> Result<Job, Option<Duration>> {
        match self.jobs.first_entry() {
            Some(first) if first.key().0 <= now => Ok(first.remove()),
            Some(first) => Err(Some(first.key().0.saturating_sub(now))),
            None => Err(None),
        }
    }
}
