//! State and operations of a segment service.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::IdError;

use super::jobs::{Job, Jobs};
use super::key::{Key, Then};
use super::notify::Notify;
use super::registry::Registry;
use super::store::{NewSegmentTag, SegmentStore};
use super::{Segment, SegmentMode};
use crate::StoreError;
use crate::builder::Drive;
use crate::clock::{AnyClock, Clock as _};
use crate::lease::ask_store;
use crate::sync::{Mutex, thread};

/// After the tags could not be read.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// State of a segment service.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) store: Arc<dyn SegmentStore>,
    pub(crate) clock: AnyClock,
    pub(crate) drive: Drive,
    pub(crate) mode: SegmentMode,
    pub(crate) max_wait: Duration,
    pub(crate) step_cap: u64,
    pub(crate) refresh_every: Duration,
    pub(crate) registry: Registry,
    pub(crate) jobs: Jobs,
    /// Held while tags are read or added, so that an old list never replaces a newer one.
    pub(crate) reading: Mutex<()>,
}

impl Core {
    pub(crate) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// `true` if only callers do what is due.
    pub(crate) fn by_hand(&self) -> bool {
        self.drive == Drive::ByHand
    }

    /// The tag of this name, without waiting.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Key>, IdError> {
        match self.registry.with(name, Arc::clone) {
            Some(key) => Ok(key),
            None => self.registry.find(name, READ_AGAIN),
        }
    }

    /// The next 1 to `want` numbers, without waiting.
    #[inline]
    pub(crate) fn take(self: &Arc<Self>, key: &Arc<Key>, want: u64) -> Result<Range<u64>, IdError> {
        match key.take(want) {
            Some(numbers) => Ok(numbers),
            None => self.take_slowly(key, want),
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn take_slowly(
        self: &Arc<Self>,
        key: &Arc<Key>,
        want: u64,
    ) -> Result<Range<u64>, IdError> {
        let (taken, due) = key.take_slowly(want, self.now());
        if due {
            self.add(Job::Fetch(key.clone()));
        }
        taken
    }

    /// Has a job done, by one more thread if need be.
    pub(crate) fn add(self: &Arc<Self>, job: Job) {
        let more = self.jobs.add(job);
        if more && !self.by_hand() {
            // If it does not start, the others will do it.
            if let Err(error) = self.start_thread() {
                tracing::warn!(%error, "cannot start one more thread for segments");
            }
        }
    }

    /// Starts a thread that does jobs, unless there are enough.
    pub(crate) fn start_thread(self: &Arc<Self>) -> std::io::Result<()> {
        if !self.jobs.admit() {
            return Ok(());
        }
        let core = self.clone();
        let work = move || {
            while let Some(job) = core.jobs.wait(|| core.now()) {
                core.perform(job);
            }
            core.jobs.leave();
        };
        let started = thread::Builder::new().name("vesta-segments".into()).spawn(work);
        started.map(drop).inspect_err(|_| self.jobs.leave())
    }

    /// Does what is due, if no thread does it. Returns how long there is nothing more to do.
    pub(crate) fn maintain(self: &Arc<Self>) -> Option<Duration> {
        if !self.by_hand() {
            return None;
        }
        loop {
            match self.jobs.take(self.now()) {
                Ok(job) => self.perform(job),
                Err(pause) => return pause,
            }
        }
    }

    fn perform(self: &Arc<Self>, job: Job) {
        match job {
            Job::Fetch(key) => self.fetch(&key),
            Job::Look(key) => {
                if key.ask(self.now()) {
                    self.fetch(&key);
                }
            }
            Job::Refresh => {
                let again = match self.read_tags() {
                    Ok(()) => self.refresh_every,
                    Err(_) => READ_AGAIN.min(self.refresh_every),
                };
                self.jobs.add_at(self.now().saturating_add(again), Job::Refresh);
            }
        }
    }

    fn fetch(self: &Arc<Self>, key: &Arc<Key>) {
        let Some(size) = key.begin(self.now()) else { return };
        let reply = ask_store(|| self.store.next_range(key.name(), size));
        let tag = key.name();
        match &reply {
            Err(error) if !key.is_failing() => {
                let store = self.store.describe();
                tracing::warn!(store, tag, %error, "no numbers fetched; trying again");
            }
            Ok(_) if key.is_failing() => tracing::info!(tag, "numbers are fetched again"),
            _ => {}
        }
        let now = self.now();
        match key.on_reply(now, reply) {
            Then::Nothing => {}
            Then::Fetch => self.add(Job::Fetch(key.clone())),
            Then::Pause(pause) => {
                self.jobs.add_at(now.saturating_add(pause), Job::Look(key.clone()));
            }
        }
    }

    /// Reads which tags there are, and acts upon it.
    pub(crate) fn read_tags(self: &Arc<Self>) -> Result<(), StoreError> {
        let _reading = self.reading.lock();
        let tags = match ask_store(|| self.store.tags()) {
            Ok(tags) => tags,
            Err(error) => {
                if self.registry.on_read(self.now(), Some(error.clone())) {
                    let store = self.store.describe();
                    tracing::warn!(store, %error, "cannot read the segment tags; trying again");
                }
                return Err(error);
            }
        };
        let now = self.now();
        let known = self.registry.keys();
        let mut new = Vec::new();
        for tag in &tags {
            match known.get(&tag.key) {
                Some(key) => {
                    if key.on_listed(tag, now) {
                        self.add(Job::Fetch(key.clone()));
                    }
                }
                None => new.push(Arc::new(Key::new(tag, self.mode, self.step_cap))),
            }
        }
        let listed: HashSet<&str> = tags.iter().map(|tag| tag.key.as_str()).collect();
        known.iter().filter(|key| !listed.contains(key.name())).for_each(|key| key.on_missing(now));
        self.registry.add(new, now);
        if self.registry.on_read(now, None) {
            tracing::info!("the segment tags can be read again");
        }
        Ok(())
    }

    /// Adds a tag to the store, and to what is known.
    pub(crate) fn create(self: &Arc<Self>, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        let created = ask_store(|| self.store.create(tag))?;
        self.read_tags()?;
        Ok(created)
    }

    /// No more numbers.
    pub(crate) fn close(&self) {
        self.jobs.stop();
        let now = self.now();
        self.registry.close().iter().for_each(|key| key.close(now));
    }

    /// Repeats an attempt until it succeeds, fails for good, or can no longer succeed in time. What it
    /// waits for rings `notify`. `deadline` is set by the first of several waits of one call.
    pub(crate) fn wait_for<T>(
        self: &Arc<Self>,
        notify: &Notify,
        deadline: &mut Option<Duration>,
        mut attempt: impl FnMut() -> Result<T, IdError>,
    ) -> Result<T, IdError> {
        loop {
            let seen = notify.changes();
            let error = match attempt() {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let Some(left) = self.time_left(&error, deadline) else { return Err(error) };
            if !self.by_hand() {
                notify.wait(seen, left);
                continue;
            }
            let pause = self.maintain();
            if notify.changes() == seen {
                let pause = pause.unwrap_or(left).min(left).max(Duration::from_millis(1));
                self.clock.park(pause);
            }
        }
    }

    /// The longest useful wait after this error.
    pub(crate) fn time_left(
        &self,
        error: &IdError,
        deadline: &mut Option<Duration>,
    ) -> Option<Duration> {
        let retry_after = error.retry_after()?;
        let now = self.now();
        let deadline = *deadline.get_or_insert(now.saturating_add(self.max_wait));
        let left = deadline.saturating_sub(now);
        // While the store works, nobody knows; when it is given a rest, nothing comes before its end.
        let hopeless = matches!(error, IdError::Unavailable { .. }) && retry_after > left;
        (!left.is_zero() && !hopeless).then_some(left)
    }

    /// A tag for repeated use, once it is known.
    pub(crate) fn segment(
        self: &Arc<Self>,
        name: &str,
        deadline: &mut Option<Duration>,
    ) -> Result<Segment, IdError> {
        let key = match self.find(name) {
            Ok(key) => key,
            Err(_) => self.wait_for(&self.registry.notify, deadline, || self.find(name))?,
        };
        Ok(Segment { core: self.clone(), key })
    }
}
