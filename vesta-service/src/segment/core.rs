//! State and work of a segment service: the tags, and what is fetched for them.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, NotReady, NotReadyReason};

use super::buffer::{Buffer, Health, SHUT_DOWN, not_found};
use super::builder::SegmentBuilder;
use super::jobs::{Job, Jobs, THREADS};
use super::key::Key;
use crate::error::{BuildError, StoreError, ask_store};
use crate::sync::{Mutex, thread};
use crate::wait::Drive;
use crate::wait::{Notify, Wait};

/// After the tags could not be read.
const READ_AGAIN: Duration = Duration::from_secs(1);
/// The longest wait for the store at the end.
const LONGEST_END: Duration = Duration::from_secs(2);

/// State of a segment service.
#[derive(Debug)]
pub(crate) struct Core {
    pub(super) settings: SegmentBuilder,
    pub(super) known: Mutex<Known>,
    /// Notified when the tags were read, and at the end.
    pub(super) listed: Notify,
    pub(super) jobs: Jobs,
    /// Held while tags are read or added, so that an old list never replaces a newer one.
    reading: Mutex<()>,
}

/// The tags, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Every tag that was ever in the table.
    pub(super) keys: BTreeMap<String, Arc<Key>>,
    /// When the tags were read last, and why that failed since.
    pub(super) read_at: Option<Duration>,
    pub(super) failure: Option<StoreError>,
    pub(super) closed: bool,
}

impl Core {
    /// A service whose tags are read as its first job.
    pub(super) fn start(settings: SegmentBuilder) -> Result<Arc<Self>, BuildError> {
        let threads = if settings.drive == Drive::Thread { THREADS } else { 0 };
        let core = Arc::new(Self {
            settings,
            known: Mutex::default(),
            listed: Notify::default(),
            jobs: Jobs::default(),
            reading: Mutex::default(),
        });
        core.add(Duration::ZERO, Job::Refresh);
        for _ in 0..threads {
            let worker = core.clone();
            core.jobs.add_thread();
            let work = move || {
                while let Some(job) = worker.jobs.wait(|| worker.now()) {
                    worker.perform(job);
                }
            };
            let started = thread::Builder::new().name("vesta-segments".into()).spawn(work);
            started
                .inspect_err(|_| core.jobs.end_with([]))
                .map_err(|e| BuildError::io("start a thread for segments", e))?;
        }
        Ok(core)
    }

    pub(super) fn now(&self) -> Duration {
        self.settings.clock.monotonic()
    }

    /// The tag of this name, without waiting. Whether a tag is missing and whether the tags were read
    /// is one question, answered under one lock.
    pub(super) fn find(&self, name: &str) -> Result<Arc<Key>, IdError> {
        let known = self.known.lock();
        if let Some(key) = known.keys.get(name) {
            return Ok(key.clone());
        }
        let retry_after = READ_AGAIN;
        Err(match (known.read_at, &known.failure) {
            _ if known.closed => IdError::Sealed { reason: SHUT_DOWN.into() },
            (Some(_), _) => not_found(name),
            (None, None) => NotReady { retry_after, why: NotReadyReason::AwaitingLease }.into(),
            (None, Some(error)) => IdError::Unavailable {
                reason: "the store does not say which segment tags there are".into(),
                retry_after: (!error.is_permanent()).then_some(retry_after),
                source: Some(Arc::new(error.clone())),
            },
        })
    }

    /// Every tag that was ever in the table, by name.
    pub(super) fn keys(&self) -> Vec<Arc<Key>> {
        self.known.lock().keys.values().cloned().collect()
    }

    /// The next 1 to `want` numbers, when none are at hand for this thread.
    #[cold]
    #[inline(never)]
    pub(super) fn take_slowly(&self, key: &Arc<Key>, want: u64) -> Result<Range<u64>, IdError> {
        let (taken, due) = key.take_slowly(want, self.now());
        if due {
            self.add(Duration::ZERO, Job::Fetch(key.clone()));
        }
        taken
    }

    /// The wait of one call for what `notify` reports.
    pub(super) fn wait<'a>(
        &'a self,
        notify: &'a Notify,
    ) -> Wait<'a, impl Fn() -> Option<Duration>> {
        let SegmentBuilder { clock, drive, max_wait, .. } = &self.settings;
        let maintain = || self.maintain();
        Wait { clock, drive: *drive, max_wait: *max_wait, notify: Some(notify), maintain }
    }

    /// Has a job done after a pause.
    fn add(&self, pause: Duration, job: Job) {
        self.jobs.add(self.now().saturating_add(pause), job);
    }

    /// Does what is due, if no thread does it. Returns how long there is nothing more to do.
    pub(super) fn maintain(&self) -> Option<Duration> {
        if self.settings.drive == Drive::Thread {
            return None;
        }
        loop {
            match self.jobs.take(self.now()) {
                Ok(job) => self.perform(job),
                Err(pause) => return pause,
            }
        }
    }

    /// Does a job. A panic must neither end the thread nor leave behind what waits for the job.
    fn perform(&self, job: Job) {
        let this = AssertUnwindSafe(|| self.carry_out(&job));
        if catch_unwind(this).is_ok() {
            return;
        }
        let now = self.now();
        match &job {
            Job::Fetch(key) => {
                if let Some(pause) = key.change(now, |buffer| buffer.on_panic(now)) {
                    self.add(pause, job);
                }
            }
            Job::Refresh => self.add(READ_AGAIN, job),
            Job::GiveBack(_) => {}
        }
    }

    fn carry_out(&self, job: &Job) {
        match job {
            Job::Fetch(key) => self.fetch(key),
            Job::GiveBack(key) => self.give_back(key),
            Job::Refresh => {
                let every = self.settings.refresh_every;
                let again = self.read_tags().map_or(READ_AGAIN.min(every), |()| every);
                self.add(again, Job::Refresh);
            }
        }
    }

    fn fetch(&self, key: &Arc<Key>) {
        let Some(size) = key.begin(self.now()) else { return };
        let store = &self.settings.store;
        let reply = ask_store(|| store.next_range(&key.name, size));
        let failed_before = key.state.lock().failing_because().is_some();
        self.log(failed_before, &reply, Some(&key.name));
        let now = self.now();
        if let Some(pause) = key.change(now, |buffer| buffer.on_reply(now, reply)) {
            self.add(pause, Job::Fetch(key.clone()));
        }
        self.give_back(key); // if the end came meanwhile
    }

    /// Ends every tag, and gives back what is left of them. Waits for that a moment, and not for a
    /// store that is away.
    pub(super) fn close(&self) {
        if std::mem::replace(&mut self.known.lock().closed, true) {
            return;
        }
        self.listed.notify();
        let (now, keys) = (self.now(), self.keys());
        keys.iter().for_each(|key| key.end(now, Health::Closed));
        self.jobs.end_with(keys.into_iter().map(Job::GiveBack));
        match self.settings.drive {
            Drive::Thread => self.jobs.wait_for_end(LONGEST_END),
            Drive::ByHand => drop(self.maintain()),
        }
    }

    fn give_back(&self, key: &Key) {
        let Some(numbers) = key.state.lock().give_back() else { return };
        let store = &self.settings.store;
        if let Err(error) = ask_store(|| store.give_back(&key.name, numbers)) {
            self.jobs.end_with([]); // it is away: the others would not get through either
            let (store, tag) = (store.describe(), &key.name);
            tracing::warn!(store, tag, %error, "numbers were not given back; they are lost");
        }
    }

    /// Logs the first of several failures, and their end: of a fetch, or of reading the tags.
    fn log<T>(&self, failed_before: bool, reply: &Result<T, StoreError>, tag: Option<&str>) {
        let store = self.settings.store.describe();
        match reply {
            Err(error) if !failed_before => {
                tracing::warn!(store, tag, %error, "the store does not serve segments; trying again");
            }
            Ok(_) if failed_before => tracing::info!(store, tag, "the store serves segments again"),
            _ => {}
        }
    }

    /// Reads which tags there are, and acts upon it.
    pub(super) fn read_tags(&self) -> Result<(), StoreError> {
        let _reading = self.reading.lock();
        let SegmentBuilder { store, mode, step_cap, .. } = &self.settings;
        let tags = ask_store(|| store.tags());
        let now = self.now();
        if let Ok(tags) = &tags {
            let listed: HashSet<&str> = tags.iter().map(|tag| tag.key.as_str()).collect();
            for key in self.keys().iter().filter(|key| !listed.contains(key.name.as_str())) {
                key.end(now, Health::NoTag);
            }
            for tag in tags {
                let mut known = self.known.lock();
                let closed = known.closed;
                let key = known.keys.entry(tag.key.clone());
                let key = key.or_insert_with(|| Key::new(tag, *mode, *step_cap).into()).clone();
                drop(known);
                let listed = |buffer: &mut Buffer| {
                    buffer.on_listed(tag);
                    None
                };
                if closed {
                    key.end(now, Health::Closed);
                } else if let Some(pause) = key.change(now, listed) {
                    self.add(pause, Job::Fetch(key));
                }
            }
        }
        let mut known = self.known.lock();
        let failed_before = known.failure.is_some();
        known.failure = tags.as_ref().err().cloned();
        if tags.is_ok() {
            known.read_at = Some(now);
        }
        drop(known);
        self.listed.notify();
        self.log(failed_before, &tags, None);
        tags.map(drop)
    }
}
