//! Jobs of the fetch workers: a small thread pool, or the caller of `maintain`.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::key::Key;
use crate::sync::{Condvar, Mutex};

/// The most fetches under way at once: a store that is slow for one tag does not hold up the
/// others. Threads are started when that many jobs are due at once for the first time.
const MAX_THREADS: usize = 4;

/// Something that talks to the store.
#[derive(Debug, Clone)]
pub(crate) enum Job {
    /// The fetch of a tag, which is queued.
    Fetch(Arc<Key>),
    /// A look whether the fetch of a tag is due.
    Look(Arc<Key>),
    /// Reading which tags there are.
    Refresh,
}

/// The jobs that are due, and those that will be.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct List {
    due: VecDeque<Job>,
    later: BinaryHeap<Reverse<Later>>,
    /// Breaks ties between jobs of the same moment.
    count: u64,
    threads: usize,
    idle: usize,
    stop: bool,
}

#[derive(Debug)]
struct Later {
    at: Duration,
    number: u64,
    job: Job,
}

impl Jobs {
    /// Adds a job that is due. Returns whether one more thread should be started.
    pub(crate) fn add(&self, job: Job) -> bool {
        let mut list = self.list.lock();
        list.due.push_back(job);
        self.changed.notify_one();
        !list.stop && list.due.len() > list.idle && list.threads < MAX_THREADS
    }

    /// Adds a job for later.
    pub(crate) fn add_at(&self, at: Duration, job: Job) {
        let mut list = self.list.lock();
        list.count += 1;
        let number = list.count;
        list.later.push(Reverse(Later { at, number, job }));
        self.changed.notify_one();
    }

    /// The next job that is due; without one, how long there is none, as far as is known.
    pub(crate) fn take(&self, now: Duration) -> Result<Job, Option<Duration>> {
        self.list.lock().take(now)
    }

    /// The next job, for a thread that has nothing else to do. `None` at the end.
    pub(crate) fn wait(&self, now: impl Fn() -> Duration) -> Option<Job> {
        let mut list = self.list.lock();
        loop {
            if list.stop {
                return None;
            }
            let pause = match list.take(now()) {
                Ok(job) => return Some(job),
                Err(pause) => pause,
            };
            list.idle += 1;
            match pause {
                Some(pause) => drop(self.changed.wait_for(&mut list, pause)),
                None => self.changed.wait(&mut list),
            }
            list.idle -= 1;
        }
    }

    /// Counts one more thread, if there may be one.
    pub(crate) fn admit(&self) -> bool {
        let mut list = self.list.lock();
        let admitted = !list.stop && list.threads < MAX_THREADS;
        list.threads += usize::from(admitted);
        admitted
    }

    /// A thread has ended, or could not be started.
    pub(crate) fn leave(&self) {
        self.list.lock().threads -= 1;
    }

    /// Ends the threads: each after what it is doing.
    pub(crate) fn stop(&self) {
        let mut list = self.list.lock();
        *list = List { stop: true, threads: list.threads, idle: list.idle, ..List::default() };
        self.changed.notify_all();
    }
}

impl List {
    fn take(&mut self, now: Duration) -> Result<Job, Option<Duration>> {
        // What has waited for its time comes first: there is never much of it.
        if let Some(first) = self.later.peek_mut()
            && first.0.at <= now
        {
            return Ok(PeekMut::pop(first).0.job);
        }
        let pause = self.later.peek().map(|Reverse(later)| later.at.saturating_sub(now));
        self.due.pop_front().ok_or(pause)
    }
}

impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Later {}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Later {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
