//! State and work of a segment service: the tags, and what is fetched for them.

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
use crate::error::{BuildError, StoreError, ask_store};
use crate::fork::{self, AtFork, Process};
use crate::sync::{AtomicBool, Mutex, Ordering, thread};
use crate::wait::Drive;
use crate::wait::{Notify, Wait};

/// After the tags could not be read, and between two looks for tags that are missing.
pub(super) const READ_AGAIN: Duration = Duration::from_secs(1);
/// From a range that comes until this host remembers it, with all others that came meanwhile.
const REMEMBER_AFTER: Duration = Duration::from_millis(500);
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
    /// The memory of this host.
    ends: Option<Ends>,
    /// Set while it is about to.
    remembering: AtomicBool,
    process: Process,
    /// As in `known`: a child of a fork reads them without a lock.
    in_child: Arc<boxcar::Vec<Arc<Key>>>,
    _at_fork: AtFork,
}

/// The tags, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Every tag that was ever in the table.
    pub(super) keys: BTreeMap<String, Arc<Key>>,
    /// When the tags were read last, and why that failed since.
    pub(super) read_at: Option<Duration>,
    pub(super) failure: Option<StoreError>,
    /// When the last look at them began, successful or not, and whether the next one is due before
    /// its time.
    looked_at: Option<Duration>,
    look: bool,
    /// When the last look for a missing tag began.
    missed_at: Option<Duration>,
    /// Why the store may forget what it acknowledged.
    pub(super) doubt: Option<String>,
    pub(super) closed: bool,
}

impl Core {
    /// A service whose tags are read as its first job.
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

    /// The tag of this name, without waiting. It is missing if a look that began at `since` or later
    /// did not find it, or one for another missing tag within the last second: so a flood of them costs
    /// one look a second, and nobody waits for the next. Whether a tag is missing and when that was seen
    /// is one question, answered under one lock.
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
                reason: "the store does not say which segment tags there are".into(),
                retry_after: Some(retry_after),
                source: Some(Arc::new(error)),
            },
        })
    }

    /// Refuses in the child of a fork. Called before locking: a thread that exists only in the parent may hold
    /// the lock.
    pub(super) fn check_process(&self) -> Result<(), IdError> {
        if self.process.is_parent() {
            Err(fork::refusal())
        } else {
            Ok(())
        }
    }

    /// Every tag that was ever in the table, by name.
    pub(super) fn keys(&self) -> Vec<Arc<Key>> {
        self.known.lock().keys.values().cloned().collect()
    }

    /// The next 1 to `want` numbers, when none are at hand for this thread.
    #[cold]
    #[inline(never)]
    pub(super) fn take_slowly(&self, key: &Arc<Key>, want: u64) -> Result<Range<u64>, IdError> {
        self.check_process()?;
        let (taken, due) = key.take_slowly(want, self.now());
        if due {
            self.fetch_soon(key);
        }
        taken
    }

    /// Has the fetch done that became due.
    pub(super) fn fetch_soon(&self, key: &Arc<Key>) {
        self.add(Duration::ZERO, Job::Fetch(key.clone()));
    }

    /// The wait of one call for what `notify` reports.
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

    /// Has a job done after a pause.
    fn add(&self, pause: Duration, job: Job) {
        self.jobs.add(self.now().saturating_add(pause), job);
    }

    /// Does what is due, if no thread does it. Returns how long there is nothing more to do.
    pub(super) fn maintain(&self) -> Option<Duration> {
        if self.settings.drive == Drive::Thread || self.process.is_parent() {
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
            // Whoever looks for a tag, or is given a range, asks for them again.
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
                drop(self.read_tags()); // its failure is noted there
                self.known.lock().missed_at = Some(began);
            }
            Job::Remember => {
                self.remembering.swap(false, Ordering::Relaxed); // a range that comes now counts anew
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
        self.give_back(key); // if the end came meanwhile
    }

    /// Takes a range from the store.
    pub(super) fn ask(&self, key: &Key, step: u64) -> Result<NextRange, StoreError> {
        match self.refused() {
            Some(refused) => Err(refused),
            None => ask_store(|| self.settings.store.next_range(&key.name, step)),
        }
    }

    /// Why nothing is taken from a store that may forget it.
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
        // Relaxed: whoever sets it has the job added.
        if self.ends.is_some() && !self.remembering.swap(true, Ordering::Relaxed) {
            self.add(REMEMBER_AFTER, Job::Remember);
        }
    }

    /// Has this host remember what it was given; `false` if it cannot.
    fn remember(&self) -> bool {
        let given = |key: &Arc<Key>| (key.name.clone(), key.state.lock().remembered());
        self.ends
            .as_ref()
            .is_none_or(|ends| ends.write(self.keys().iter().map(given)))
    }

    /// Ends every tag, and gives back what is left of them. Waits for that a moment, and not for a
    /// store that is away.
    pub(super) fn close(&self) {
        // In a child the numbers and the store are the parent's.
        if self.process.is_parent() || std::mem::replace(&mut self.known.lock().closed, true) {
            return;
        }
        self.listed.notify();
        let (now, keys) = (self.now(), self.keys());
        keys.iter().for_each(|key| key.end(now, Health::Closed));
        // A host that remembers more than the table says takes that for one that went back; and what
        // goes back to a store that forgets may be others' already.
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

    /// Notes whether the store may forget, and says so when that changes. One that does not tell goes
    /// on as before, unless it has to, or refuses.
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
            None if before.is_some() => tracing::info!(store, "the store forgets nothing any more"),
            _ => {}
        }
        self.refused().map_or(Ok(()), Err)
    }

    /// Reads which tags there are, and acts upon it.
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
