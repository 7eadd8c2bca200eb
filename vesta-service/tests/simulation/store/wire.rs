//! The connection of one process to the store, which fails in every possible way.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Doubt, KvStore, StoreError, Timing};

use super::{Late, Shared, Weather};
use crate::planted::Planted;
use crate::time::{HOUR, MILLI, SECOND};

/// The sender of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(super) host: usize,
    /// A number unique to the process.
    pub(super) process: u64,
}

impl Sender {
    /// A sender outside the simulation.
    pub(super) const STRANGER: Self = Self {
        host: usize::MAX,
        process: u64::MAX,
    };
}

/// The connection of one process to the store.
#[derive(Debug)]
pub(crate) struct Wire {
    shared: Arc<Shared>,
    pub(crate) sender: Sender,
    timing: Timing,
    cut_off: AtomicBool,
    dead: AtomicBool,
    refused_for_good: AtomicBool,
    failed: AtomicBool,
    slow_left: AtomicU64,
}

impl Wire {
    pub(crate) fn new(shared: &Arc<Shared>, host: usize, timing: Timing) -> Arc<Self> {
        Arc::new(Self {
            shared: shared.clone(),
            sender: Sender {
                host,
                process: shared.processes.fetch_add(1, Relaxed),
            },
            timing,
            cut_off: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            refused_for_good: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            slow_left: AtomicU64::new(0),
        })
    }

    pub(crate) fn cut_off(&self, is: bool) {
        self.cut_off.store(is, Relaxed);
    }

    /// The store refuses this process from now on; a retry does not help.
    pub(crate) fn refuse_for_good(&self) {
        self.refused_for_good.store(true, Relaxed);
    }

    pub(crate) fn is_refused_for_good(&self) -> bool {
        self.refused_for_good.load(Relaxed)
    }

    /// True if requests arrive, and replies come back.
    pub(crate) fn is_sound(&self) -> bool {
        let state = self.shared.state.lock();
        let weather = Weather {
            down_until: 0,
            slow: 0,
            stale: 0,
            twice: 0,
            ..state.weather
        };
        weather == Weather::default()
            && state.weather.down_until <= self.shared.time.now()
            && !self.cut_off.load(Relaxed)
            && !self.is_refused_for_good()
    }

    /// The process has ended: nothing of it reaches the store any more.
    pub(crate) fn kill(&self) {
        self.dead.store(true, Relaxed);
    }

    /// Called before each call of the service: the number of its requests that may be slow, and none
    /// has failed.
    pub(crate) fn begin(&self, slow: u64) {
        self.slow_left.store(slow, Relaxed);
        self.failed.store(false, Relaxed);
    }

    /// True if a request has failed since.
    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    fn error(&self, why: &'static str) -> StoreError {
        self.failed.store(true, Relaxed);
        self.shared
            .time
            .note(|| format!("        the store: {why}"));
        StoreError::unavailable("no answer from the store", io::Error::other(why))
    }

    /// Reaches the store, if it is reachable.
    fn reach(&self) -> Result<(), StoreError> {
        if self.is_refused_for_good() {
            return Err(StoreError::permanent("the store is damaged"));
        }
        if self.dead.load(Relaxed) {
            return Err(StoreError::permanent("the process is gone"));
        }
        let mut state = self.shared.state.lock();
        let weather = state.weather;
        if weather.slow > 0 && state.rng.percent(weather.slow) && self.slow_left.load(Relaxed) > 0 {
            self.slow_left.fetch_sub(1, Relaxed);
            let takes = state.rng.span(3 * SECOND);
            state.counts.add("slow requests", 1);
            self.shared.time.advance(takes);
        }
        let now = self.shared.time.now();
        state.deliver(now, &self.shared);
        if self.cut_off.load(Relaxed) || weather.down_until > now {
            state.counts.add("requests to a store that was away", 1);
            return Err(self.error("cannot be reached"));
        }
        if weather.refused > 0 && state.rng.percent(weather.refused) {
            state.counts.add("requests lost", 1);
            return Err(self.error("request lost"));
        }
        Ok(())
    }
}

impl KvStore for Wire {
    fn describe(&self) -> String {
        "the simulated store".into()
    }

    fn timing(&self) -> Timing {
        self.timing
    }

    fn doubt(&self) -> Result<Option<Doubt>, StoreError> {
        Ok(self
            .shared
            .doubted
            .then(|| Doubt::of("it is simulated", false)))
    }

    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        self.reach()?;
        let hidden = self.shared.planted == Some(Planted::CountsByItsOwnClock);
        Ok((self.shared.doubted && !hidden).then(|| self.shared.time.millis()))
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.reach()?;
        let mut state = self.shared.state.lock();
        let stale = state.weather.stale;
        let stale = stale > 0 && state.rng.percent(stale);
        let back = if stale { 1 + state.rng.index(6) } else { 0 };
        let Some(space) = state.spaces.get(namespace(area)) else {
            return Ok(Vec::new());
        };
        let mut entries = space.entries.clone();
        // As if this process had paused between reading and writing. Never so far back that its
        // host would not find its own writes.
        let undone = space.changes[space.settled..].iter().rev().take(back);
        let mut stale = false;
        for change in undone.take_while(|change| change.by.host != self.sender.host) {
            stale = true;
            match &change.before {
                Some(text) => entries.insert(change.key.clone(), text.clone()),
                None => entries.remove(&change.key),
            };
        }
        if stale {
            state.counts.add("stale reads", 1);
        }
        Ok(entries.into_iter().collect())
    }

    /// A survey is as stale as a list; a look at the records of refused changes is as fresh as [`get`](Self::get), and
    /// tells the process what it holds.
    fn get_all(&self, area: &str, keys: &[String]) -> Result<Vec<(String, String)>, StoreError> {
        if keys.len() <= 8 {
            let get = |key: &String| Ok(self.get(area, key)?.map(|value| (key.clone(), value)));
            return keys.iter().filter_map(|key| get(key).transpose()).collect();
        }
        let mut entries = self.list(area)?;
        entries.retain(|(key, _)| keys.contains(key));
        Ok(entries)
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        self.reach()?;
        if is_history(area) {
            return self.shared.past.get(area, key);
        }
        let mut state = self.shared.state.lock();
        let Some(space) = state.spaces.get_mut(namespace(area)) else {
            return Ok(None);
        };
        if let Ok(machine) = key.parse()
            && let Some(record) = space.records.get(&machine)
        {
            space.windows.tell(self.sender, machine, record);
        }
        Ok(space.entries.get(key).cloned())
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        self.reach()?;
        if is_history(area) {
            return self.shared.past.put_if(area, key, old, new);
        }
        let (by, namespace) = (self.sender, namespace(area));
        let mut state = self.shared.state.lock();
        let state = &mut *state;
        let weather = state.weather;
        let late = weather.late > 0 && state.rng.percent(weather.late);
        let twice = weather.twice > 0 && state.rng.percent(weather.twice);
        // The creation of an entry is never sent twice.
        if late || twice && old.is_some() {
            let due = self.shared.time.now() + MILLI + state.rng.span(HOUR);
            let (namespace, key) = (namespace.to_owned(), key.to_owned());
            let (old, new) = (old.map(str::to_owned), new.to_owned());
            state.late.push(Late {
                due,
                by,
                namespace,
                key,
                old,
                new,
            });
            state.counts.add(
                if late {
                    "changes done late"
                } else {
                    "changes done twice"
                },
                1,
            );
        }
        if late {
            return Err(self.error("timed out, and does it later"));
        }
        let done = state.apply(by, namespace, key, old, new, &self.shared);
        if weather.reply_lost > 0 && state.rng.percent(weather.reply_lost) {
            state.counts.add("replies lost", 1);
            return Err(self.error("does it, and the reply is lost"));
        }
        if let (true, Ok(machine)) = (done, key.parse())
            && let Some(space) = state.spaces.get_mut(namespace)
        {
            space.windows.tell(by, machine, &state.decoded.record(new));
        }
        Ok(done)
    }
}

fn is_history(area: &str) -> bool {
    area.starts_with("history/")
}

fn namespace(area: &str) -> &str {
    area.strip_prefix("lease/")
        .expect("the area of a namespace")
}
