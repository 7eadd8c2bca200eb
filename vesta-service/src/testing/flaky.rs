//! A store with a connection that fails on command.

use std::fmt;
use std::io;
use std::sync::{Arc, Barrier};

use parking_lot::Mutex;
use vesta_intf::UnixMillis;

use super::ManualClock;
use crate::clock::Clock as _;
use crate::error::StoreError;
use crate::lease::{Doubt, KvStore, Put, Secret, Timing, Writer};

/// Passes requests on to a store, unless told to lose them. For tests of how a program behaves
/// during outages; it hides the store's own clock, so that tests can script the time, and shows
/// [another one](Self::show_clock) on request.
///
/// ```
/// use std::sync::Arc;
/// use vesta_service::lease::KvStore as _;
/// use vesta_service::testing::{FlakyStore, MemoryStore};
///
/// let store = FlakyStore::new(Arc::new(MemoryStore::new()));
/// store.lose_replies(1);
/// assert!(store.put_if("area", "key", None, "value").is_err());
/// assert_eq!(store.get("area", "key")?.as_deref(), Some("value"));
/// # Ok::<(), vesta_service::lease::StoreError>(())
/// ```
#[derive(Debug)]
pub struct FlakyStore {
    inner: Arc<dyn KvStore>,
    weather: Mutex<Weather>,
}

#[derive(Debug, Default)]
struct Weather {
    away: bool,
    refuses: bool,
    panics: bool,
    doubted: bool,
    writer: Option<Writer>,
    fail_next: u32,
    lose_replies: u32,
    hold_back: u32,
    held: Vec<(String, Put)>,
    asked: u64,
    changes: u64,
    meeting: Option<Arc<Barrier>>,
    clock: Option<ManualClock>,
    events: Vec<Event>,
}

/// An action to run before the request with this number.
struct Event(u64, Box<dyn FnOnce() + Send>);

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Event")
            .field(&self.0)
            .finish_non_exhaustive()
    }
}

fn timed_out() -> StoreError {
    StoreError::unavailable("no reply", io::Error::from(io::ErrorKind::TimedOut))
}

impl FlakyStore {
    /// A working connection, for now.
    pub fn new(inner: Arc<dyn KvStore>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            weather: Mutex::default(),
        })
    }

    /// From now on, no request reaches the store.
    pub fn go_away(&self) {
        self.weather.lock().away = true;
    }

    /// From now on, requests reach the store again.
    pub fn come_back(&self) {
        self.weather.lock().away = false;
    }

    /// Sets whether the store refuses every request from now on, like a store that an operator has to repair.
    pub fn set_refuses(&self, refuses: bool) {
        self.weather.lock().refuses = refuses;
    }

    /// Sets whether requests panic from now on.
    pub fn set_panics(&self, panics: bool) {
        self.weather.lock().panics = panics;
    }

    /// Reports from now on that the store may forget, unless the store itself does.
    pub fn set_doubt(&self) {
        self.weather.lock().doubted = true;
    }

    /// Answers from now on as this server.
    pub fn show_writer(&self, writer: Writer) {
        self.weather.lock().writer = Some(writer);
    }

    /// Shows this clock as the store's own from now on.
    pub fn show_clock(&self, clock: &ManualClock) {
        self.weather.lock().clock = Some(clock.clone());
    }

    /// The next `count` requests do not reach the store.
    pub fn fail_next(&self, count: u32) {
        self.weather.lock().fail_next = count;
    }

    /// The next `count` changes reach the store; their replies are lost.
    pub fn lose_replies(&self, count: u32) {
        self.weather.lock().lose_replies = count;
    }

    /// The next `count` changes are delayed until [`deliver`](Self::deliver).
    pub fn hold_back(&self, count: u32) {
        self.weather.lock().hold_back = count;
    }

    /// Lets the delayed changes reach the store.
    pub fn deliver(&self) -> Vec<Result<bool, StoreError>> {
        let held = std::mem::take(&mut self.weather.lock().held);
        held.into_iter()
            .map(|(area, Put { key, old, new, .. })| {
                self.inner.put_if(&area, &key, old.as_deref(), &new)
            })
            .collect()
    }

    /// Runs this after the next `count` requests, before the one that follows.
    pub fn after(&self, count: u64, event: impl FnOnce() + Send + 'static) {
        let mut weather = self.weather.lock();
        let at = weather.asked + count;
        weather.events.push(Event(at, Box::new(event)));
    }

    /// Once an area that is not empty has been listed, waits once for the other participants: all of
    /// them then act on the same state.
    pub fn meet_after_list(&self, others: Arc<Barrier>) {
        self.weather.lock().meeting = Some(others);
    }

    fn met(&self, entries: Vec<(String, String)>) -> Vec<(String, String)> {
        if !entries.is_empty() {
            self.meet();
        }
        entries
    }

    /// Waits for the other participants, if that has not happened yet.
    pub fn meet(&self) {
        let meeting = self.weather.lock().meeting.take();
        meeting.map(|others| others.wait());
    }

    /// The number of requests.
    pub fn asked(&self) -> u64 {
        self.weather.lock().asked
    }

    /// The number of record changes that took effect, acknowledged or not; the creation of a record
    /// and its mark do not count.
    pub fn changes(&self) -> u64 {
        self.weather.lock().changes
    }

    fn reach(&self) -> Result<(), StoreError> {
        let due: Vec<Event> = {
            let mut weather = self.weather.lock();
            let number = weather.asked;
            weather.asked += 1;
            weather
                .events
                .extract_if(.., |event| event.0 <= number)
                .collect()
        };
        due.into_iter().for_each(|Event(_, happen)| happen());
        let mut weather = self.weather.lock();
        assert!(!weather.panics, "a planted panic");
        if weather.away {
            return Err(timed_out());
        }
        if weather.refuses {
            return Err(StoreError::permanent("UPDATE command denied to user"));
        }
        if weather.fail_next > 0 {
            weather.fail_next -= 1;
            return Err(timed_out());
        }
        Ok(())
    }
}

impl KvStore for FlakyStore {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn place(&self) -> String {
        self.inner.place()
    }

    fn timing(&self) -> Timing {
        self.inner.timing()
    }

    fn doubt(&self) -> Result<Option<Doubt>, StoreError> {
        let doubted = self.weather.lock().doubted;
        let why = || Doubt::of("it said so", false);
        Ok(if doubted {
            Some(why())
        } else {
            self.inner.doubt()?
        })
    }

    fn writer(&self) -> Option<Writer> {
        let shown = self.weather.lock().writer.clone();
        shown.or_else(|| self.inner.writer())
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.reach()?;
        Ok(self.met(self.inner.list(area)?))
    }

    fn get_all(&self, area: &str, keys: &[String]) -> Result<Vec<(String, String)>, StoreError> {
        self.reach()?;
        Ok(self.met(self.inner.get_all(area, keys)?))
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        self.reach()?;
        self.inner.get(area, key)
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        let put = Put {
            key: key.into(),
            old: old.map(str::to_owned),
            new: new.into(),
            secret: Secret::default(),
        };
        self.put_all(area, &[put]).map(|done| done[0])
    }

    /// One request, with one outcome for all its changes.
    fn put_all(&self, area: &str, puts: &[Put]) -> Result<Vec<bool>, StoreError> {
        self.reach()?;
        let changes_record = |put: &Put| put.old.is_some() && put.key.parse::<u64>().is_ok();
        {
            let mut weather = self.weather.lock();
            if weather.hold_back > 0 && puts.iter().any(changes_record) {
                weather.hold_back -= 1;
                weather
                    .held
                    .extend(puts.iter().map(|put| (area.to_owned(), put.clone())));
                return Err(timed_out());
            }
        }
        let done = self.inner.put_all(area, puts)?;
        let mut weather = self.weather.lock();
        let changed = puts
            .iter()
            .zip(&done)
            .filter(|(put, done)| **done && changes_record(put));
        weather.changes += changed.map(|_| 1).sum::<u64>();
        if weather.lose_replies > 0 {
            weather.lose_replies -= 1;
            return Err(timed_out());
        }
        Ok(done)
    }

    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        let Some(clock) = self.weather.lock().clock.clone() else {
            return Ok(None);
        };
        self.reach()?;
        Ok(Some(clock.wall()))
    }
}
