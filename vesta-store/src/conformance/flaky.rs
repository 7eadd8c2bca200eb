//! A store whose connection is bad, on command.

use std::io;
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};

use vesta_service::{KvStore, StoreError, Timing, UnixMillis};

/// Passes requests on to a store, as long as it is not told to lose them. Hides the store's clock,
/// so that tests can script the time.
#[derive(Debug)]
pub struct FlakyStore {
    inner: Arc<dyn KvStore>,
    weather: Mutex<Weather>,
}

#[derive(Debug, Default)]
struct Weather {
    away: bool,
    fail_next: u32,
    lose_replies: u32,
    hold_back: u32,
    held: Vec<Change>,
    asked: u64,
    changes: u64,
    meeting: Option<Arc<Barrier>>,
}

#[derive(Debug)]
struct Change {
    area: String,
    key: String,
    old: Option<String>,
    new: String,
}

fn timed_out() -> StoreError {
    StoreError::unavailable("no reply", io::Error::from(io::ErrorKind::TimedOut))
}

impl FlakyStore {
    /// A good connection, for now.
    pub fn new(inner: Arc<dyn KvStore>) -> Arc<Self> {
        Arc::new(Self { inner, weather: Mutex::default() })
    }

    fn weather(&self) -> MutexGuard<'_, Weather> {
        self.weather.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on no request reaches the store.
    pub fn go_away(&self) {
        self.weather().away = true;
    }

    /// From now on requests reach the store again.
    pub fn come_back(&self) {
        self.weather().away = false;
    }

    /// The next `count` requests do not reach the store.
    pub fn fail_next(&self, count: u32) {
        self.weather().fail_next = count;
    }

    /// The next `count` changes reach the store; the replies do not come back.
    pub fn lose_replies(&self, count: u32) {
        self.weather().lose_replies = count;
    }

    /// The next `count` changes are kept on the way, until [`deliver`](Self::deliver).
    pub fn hold_back(&self, count: u32) {
        self.weather().hold_back = count;
    }

    /// Lets the changes that were kept on the way reach the store, late.
    pub fn deliver(&self) -> Vec<Result<bool, StoreError>> {
        let held = std::mem::take(&mut self.weather().held);
        held.into_iter()
            .map(|Change { area, key, old, new }| {
                self.inner.put_if(&area, &key, old.as_deref(), &new)
            })
            .collect()
    }

    /// Once an area that is not empty has been listed, wait for the others once: all of them then act
    /// on the same state.
    pub fn meet_after_list(&self, others: Arc<Barrier>) {
        self.weather().meeting = Some(others);
    }

    /// Waits for the others, if that did not happen yet.
    pub fn meet(&self) {
        let meeting = self.weather().meeting.take();
        meeting.map(|others| others.wait());
    }

    /// The number of requests.
    pub fn asked(&self) -> u64 {
        self.weather().asked
    }

    /// The number of changes of records that took effect, known to the caller or not; the creation of
    /// a record and its mark do not count.
    pub fn changes(&self) -> u64 {
        self.weather().changes
    }

    fn reach(&self) -> Result<(), StoreError> {
        let mut weather = self.weather();
        weather.asked += 1;
        if weather.away {
            return Err(timed_out());
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

    fn timing(&self) -> Timing {
        self.inner.timing()
    }

    fn may_forget(&self) -> bool {
        self.inner.may_forget()
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.reach()?;
        let entries = self.inner.list(area)?;
        if !entries.is_empty() {
            self.meet();
        }
        Ok(entries)
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
        self.reach()?;
        let changes_record = old.is_some() && key.parse::<u64>().is_ok();
        {
            let mut weather = self.weather();
            if weather.hold_back > 0 && changes_record {
                weather.hold_back -= 1;
                let [area, key, new] = [area, key, new].map(str::to_owned);
                weather.held.push(Change { area, key, old: old.map(str::to_owned), new });
                return Err(timed_out());
            }
        }
        let done = self.inner.put_if(area, key, old, new)?;
        let mut weather = self.weather();
        weather.changes += u64::from(done && changes_record);
        if weather.lose_replies > 0 {
            weather.lose_replies -= 1;
            return Err(timed_out());
        }
        Ok(done)
    }

    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        Ok(None)
    }
}
