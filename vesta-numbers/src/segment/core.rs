//! State and work of a segment service: the tags, and the fetches for them.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, NotReady, NotReadyReason};

use super::buffer::{Buffer, Health, SHUT_DOWN, not_found};
use super::builder::SegmentBuilder;
use super::ends::Ends;
use super::jobs::{Job, Jobs, THREADS};
use super::key::Key;
use super::store::NextRange;
use vesta_service::BuildError;
use vesta_service::inside::ask_store;
use vesta_service::inside::fork::{self, AtFork, Process};
use vesta_service::inside::sync::{AtomicBool, Mutex, Ordering, thread};
use vesta_service::inside::{Notify, Wait};
use vesta_service::lease::StoreError;
use vesta_service::options::Drive;

/// Pause after the tags could not be read, and between two lookups of missing tags.
pub(super) const READ_AGAIN: Duration = Duration::from_secs(1);
/// Delay between receiving a range and recording it on this host, together with all others received
/// meanwhile.
const REMEMBER_AFTER: Duration = Duration::from_millis(500);
/// Maximum wait for the store at the end.
const LONGEST_END: Duration = Duration::from_secs(2);

/// State of a segment service.
#[derive(Debug)]
pub(crate) struct Core {
    pub(super) settings: SegmentBuilder,
    pub(super) known: Mutex<Known>,
    /// Notified when the tags have been read, and at the end.
    pub(super) listed: Notify,
    pub(super) jobs: Jobs,
    /// Held while tags are read or added, so that an old list never replaces a newer one.
    reading: Mutex<()>,
    /// The local record of this host.
    ends: Option<Ends>,
    /// Set while a write of the record is scheduled.
    remembering: AtomicBool,
    process: Process,
    /// Same keys as in `known`: a child of a fork reads them without a lock.
    in_child: Arc<boxcar::Vec<Arc<Key>>>,
    _at_fork: AtFork,
}

/// The known tags.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Every tag that was ever in the table.
    pub(super) keys: BTreeMap<String, Arc<Key>>,
    /// When the tags were last read, and why reading has failed since.
    pub(super) read_at: Option<Duration>,
    pub(super) failure: Option<StoreError>,
    /// When the last read of them began, successful or not, and whether the next one is due early.
    looked_at: Option<Duration>,
    look: bool,
    /// When the last lookup of a missing tag began.
    missed_at: Option<Duration>,
    /// Reason why the store may forget acknowledged writes.
    pub(super) doubt: Option<String>,
    pub(super) closed: bool,
}

impl Core {
    /// A service that reads its tags as its first job.
    pub(super) fn start(settings: SegmentBuilder) -> Result<Arc<Self>, BuildError> {
        let folder = settings.state_dir.as_deref();
        let ends = folder.map(|folder| Ends::open(folder, &settings.store.describe()));
        let ends = ends.transpose()?.flatten();
        let threads = if settings.drive == Drive::Thread {
            THREADS
        } else {
            0
        };
        let in_child = Arc::<boxcar::Vec<Arc<Key>>>::default();
        let closed = Arc::clone(&in_child);
        let close = move || {
            closed
                .iter()
                .for_each(|(_, key)| key.cursor.close_in_child())
        };
        let core = Arc::new(Self {
            settings,
            known: Mutex::default(),
            listed: Notify::default(),
            jobs: Jobs::default(),
            reading: Mutex::default(),
            ends,
            remembering: AtomicBool::default(),
            process: Process::this(),
            in_child,
            _at_fork: AtFork::call(close),
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
            let started = thread::Builder::new()
                .name("vesta-segments".into())
                .spawn(work);
            started
                .inspect_err(|_| core.jobs.end_with([]))
                .map_err(|e| BuildError::io("start a thread for segments", e))?;
        }
        Ok(core)
    }

    pub(super) fn now(&self) -> Duration {
        self.settings.clock.monotonic()
    }

    /// The tag of this name, without waiting. It is missing if a read that began at `since` or later did
    /// not find it, or if a lookup of another missing tag did not within the last second. So a flood of
    /// missing tags costs one lookup a second, and no caller waits for the next. Whether a tag is
    /// missing and when that was seen is a single decision, made under one lock.
    pub(super) fn find(&self, name: &str, since: Duration) -> Result<Arc<Key>, IdError> {
        self.check_process()?;
        let mut known = self.known.lock();
        if let Some(key) = known.keys.get(name) {
            return Ok(key.clone());
        }
        let retry_after = READ_AGAIN;
        let recent = known
            .missed_at
            .is_some_and(|at| at.saturating_add(READ_AGAIN) > self.now());
        let looked = recent || known.looked_at.is_some_and(|at| at >= since);
        Err(match known.failure.clone() {
            _ if known.closed => IdError::Sealed {
                reason: SHUT_DOWN.into(),
            },
            None if looked => not_found(name),
            None => {
                if known.looked_at.is_some() && !std::mem::replace(&mut known.look, true) {
                    self.jobs.add(self.now(), Job::Look);
                }
                NotReady {
                    retry_after,
                    why: NotReadyReason::AwaitingLease,
                }
                .into()
            }
            Some(error) => IdError::Unavailable {
                reason: "the segment tags cannot be read from the store".into(),
                retry_after: Some(retry_after),
                source: Some(Arc::new(error)),
            },
        })
    }

    /// Refuses in the child of a fork. Called before locking: the lock may be held by a thread that exists
    /// only in the parent.
    pub(super) fn check_process(&self) -> Result<(), IdError> {
        if self.process.is_another() {
            Err(fork::refusal())
        } else {
            Ok(())
        }
    }

    /// All tags that were ever in the table, by name.
    pub(super) fn keys(&self) -> Vec<Arc<Key>> {
        self.known.lock().keys.values().cloned().collect()
    }

    /// Slow path: refills, then takes 1 to `want` numbers.
    #[cold]
    #[inline(never)]
    pub(super) fn take_slowly(&self, key: &Arc<Key>, want: u64) -> Result<Range<u64>, IdError> {
        self.check_process()?;
        let (taken, due) = key.take_slowly(want, self.now());
        if due {
            self.fetch_soon(key);
        }
        if matches!(
            taken,
            Err(IdError::Unavailable { .. } | IdError::UsedUp { .. })
        ) {
            self.look_soon();
        }
        taken
    }

    /// Schedules the fetch that became due.
    pub(super) fn fetch_soon(&self, key: &Arc<Key>) {
        self.add(Duration::ZERO, Job::Fetch(key.clone()));
    }

    /// Reads the tags, at most once a second: an operator may have set the row of a tag right.
    fn look_soon(&self) {
        let mut known = self.known.lock();
        let recent = |at: Duration| at.saturating_add(READ_AGAIN) > self.now();
        let due = known.looked_at.is_some_and(|at| !recent(at));
        if due && !std::mem::replace(&mut known.look, true) {
            self.jobs.add(self.now(), Job::Look);
        }
    }

    /// The wait of one call for a change reported by `notify`.
    pub(super) fn wait<'a>(
        &'a self,
        notify: &'a Notify,
    ) -> Wait<'a, impl Fn() -> Option<Duration>> {
        let SegmentBuilder {
            clock,
            drive,
            max_wait,
            ..
        } = &self.settings;
        let maintain = || self.maintain();
        Wait {
            clock,
            drive: *drive,
            max_wait: *max_wait,
            notify: Some(notify),
            maintain,
        }
    }

    /// Schedules a job after a pause.
    fn add(&self, pause: Duration, job: Job) {
        self.jobs.add(self.now().saturating_add(pause), job);
    }

    /// Performs the due jobs, if no thread does. Returns the time until the next job.
    pub(super) fn maintain(&self) -> Option<Duration> {
        if self.settings.drive == Drive::Thread || self.process.is_another() {
            return None;
        }
        loop {
            match self.jobs.take(self.now()) {
                Ok(job) => self.perform(job),
                Err(pause) => return pause,
            }
        }
    }

    /// Performs a job. A panic must neither end the thread nor leave waiters of the job behind.
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
            // The next caller that looks for a tag, or gets a range, schedules them again.
            Job::Look => self.known.lock().look = false,
            Job::Remember => drop(self.remembering.swap(false, Ordering::Relaxed)),
            Job::GiveBack(_) => {}
        }
    }

    fn carry_out(&self, job: &Job) {
        match job {
            Job::Fetch(key) => self.fetch(key),
            Job::GiveBack(key) => self.give_back(key),
            Job::Look => {
                let began = self.now();
                drop(self.read_tags()); // a failure is recorded there
                self.known.lock().missed_at = Some(began);
            }
            Job::Remember => {
                self.remembering.swap(false, Ordering::Relaxed); // a range that comes from now on counts again
                if !self.remember() {
                    self.remember_soon();
                }
            }
            Job::Refresh => {
                let every = self.settings.refresh_every;
                let again = self.read_tags().map_or(READ_AGAIN.min(every), |()| every);
                self.add(again, Job::Refresh);
            }
        }
    }

    fn fetch(&self, key: &Arc<Key>) {
        let Some(size) = key.begin(self.now()) else {
            return;
        };
        let reply = self.ask(key, size);
        let failed_before = key.state.lock().failing_because().is_some();
        self.log(failed_before, &reply, Some(&key.name));
        let now = self.now();
        if let Some(pause) = key.change(now, |buffer| buffer.on_reply(now, reply)) {
            self.add(pause, Job::Fetch(key.clone()));
        }
        self.remember_soon();
        self.give_back(key); // in case the end came meanwhile
    }

    /// Takes a range from the store.
    pub(super) fn ask(&self, key: &Key, step: u64) -> Result<NextRange, StoreError> {
        match self.refused() {
            Some(refused) => Err(refused),
            None => ask_store(|| self.settings.store.next_range(&key.name, step)),
        }
    }

    /// The reason why nothing is taken from a store that may forget it.
    fn refused(&self) -> Option<StoreError> {
        let doubt = self
            .known
            .lock()
            .doubt
            .clone()
            .filter(|_| self.settings.require_durable)?;
        Some(StoreError::permanent(format!(
            "{doubt}; require_durable refuses such a store, as it could hand out numbers again"
        )))
    }

    pub(super) fn remember_soon(&self) {
        // Relaxed: the caller that sets it schedules the job.
        if self.ends.is_some() && !self.remembering.swap(true, Ordering::Relaxed) {
            self.add(REMEMBER_AFTER, Job::Remember);
        }
    }

    /// Records the ranges that this host was given; returns `false` if that fails.
    fn remember(&self) -> bool {
        let given = |key: &Arc<Key>| (key.name.clone(), key.state.lock().remembered());
        self.ends
            .as_ref()
            .is_none_or(|ends| ends.write(self.keys().iter().map(given)))
    }

    /// Ends every tag, and gives back the unused numbers. Waits briefly for that, but not for an
    /// unreachable store.
    pub(super) fn close(&self) {
        // In a forked child the numbers and the store belong to the parent.
        if self.process.is_another() || std::mem::replace(&mut self.known.lock().closed, true) {
            return;
        }
        self.listed.notify();
        let (now, keys) = (self.now(), self.keys());
        keys.iter().for_each(|key| key.end(now, Health::Closed));
        // If the local record is ahead of the table, the next start would take the table for a
        // rolled-back one. And numbers given back to a store that forgets may belong to others already.
        if !self.remember() || self.known.lock().doubt.is_some() {
            keys.iter().for_each(|key| key.state.lock().forget_unused());
        }
        self.jobs.end_with(keys.into_iter().map(Job::GiveBack));
        match self.settings.drive {
            Drive::Thread => self.jobs.wait_for_end(LONGEST_END),
            Drive::ByHand => drop(self.maintain()),
        }
    }

    fn give_back(&self, key: &Key) {
        let Some(numbers) = key.state.lock().give_back() else {
            return;
        };
        let store = &self.settings.store;
        if let Err(error) = ask_store(|| store.give_back(&key.name, numbers)) {
            self.jobs.end_with([]); // the store is unreachable: the others would fail too
            let (store, tag) = (store.describe(), &key.name);
            tracing::warn!(store, tag, %error, "unused numbers could not be given back; they are lost");
        }
    }

    /// Logs the first of several failures of a fetch or of reading the tags, and their end.
    fn log<T>(&self, failed_before: bool, reply: &Result<T, StoreError>, tag: Option<&str>) {
        let store = self.settings.store.describe();
        match reply {
            Err(error) if !failed_before => {
                tracing::warn!(store, tag, %error, "the store does not serve segments; retrying");
            }
            Ok(_) if failed_before => tracing::info!(store, tag, "the store serves segments again"),
            _ => {}
        }
    }

    /// Records whether the store may forget, and logs changes. If the store cannot tell, the service
    /// continues as before, unless it requires durability or the error is permanent.
    fn note_doubt(&self, answer: Result<Option<String>, StoreError>) -> Result<(), StoreError> {
        let doubt = match answer {
            Ok(doubt) => doubt,
            Err(error) if self.settings.require_durable || error.is_permanent() => {
                return Err(error);
            }
            Err(_) => return Ok(()),
        };
        let before = std::mem::replace(&mut self.known.lock().doubt, doubt.clone());
        let store = self.settings.store.describe();
        match doubt {
            Some(doubt) if before.as_ref() != Some(&doubt) => {
                tracing::warn!(store, "segment numbers could repeat: {doubt}");
            }
            None if before.is_some() => tracing::info!(store, "the store is durable again"),
            _ => {}
        }
        self.refused().map_or(Ok(()), Err)
    }

    /// Reads the tags from the store, and applies changes.
    pub(super) fn read_tags(&self) -> Result<(), StoreError> {
        let _reading = self.reading.lock();
        let SegmentBuilder {
            store, step_cap, ..
        } = &self.settings;
        let began = self.now();
        let tags = ask_store(|| store.tags()).and_then(|tags| {
            self.note_doubt(ask_store(|| store.doubt()))?;
            Ok(tags)
        });
        let now = self.now();
        if tags.as_ref().is_err_and(StoreError::is_two_stores) {
            self.keys()
                .iter()
                .for_each(|key| key.end(now, Health::TwoStores));
        }
        if let Ok(tags) = &tags {
            let listed: HashSet<&str> = tags.iter().map(|tag| tag.key.as_str()).collect();
            for key in self
                .keys()
                .iter()
                .filter(|key| !listed.contains(key.name.as_str()))
            {
                key.end(now, Health::NoTag);
            }
            for tag in tags {
                let mut known = self.known.lock();
                let closed = known.closed;
                let key = known.keys.entry(tag.key.clone());
                let new = || {
                    let key = Key::new(tag, *step_cap);
                    let before = self.ends.as_ref().map_or(0, |it| it.before(&key.name));
                    key.state.lock().remember(before);
                    let key = Arc::new(key);
                    self.in_child.push(key.clone());
                    key
                };
                let key = key.or_insert_with(new).clone();
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
        (known.looked_at, known.look) = (Some(began), false);
        if tags.is_ok() {
            known.read_at = Some(now);
        }
        drop(known);
        self.listed.notify();
        self.log(failed_before, &tags, None);
        tags.map(drop)
    }
}
