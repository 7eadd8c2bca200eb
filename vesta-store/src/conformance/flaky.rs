//! A store whose connection is bad, on command.

use std::io;
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};

use vesta_service::{Cas, Expect, LeaseStore, Namespace, Record, StoreError, Timing, UnixMillis};

/// Passes requests on to a store, as long as it is not told to lose them. Hides the store's clock,
/// so that tests can script the time.
#[derive(Debug)]
pub struct FlakyStore {
    inner: Arc<dyn LeaseStore>,
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
    namespace: String,
    machine: u64,
    expect: Expect,
    new: Record,
}

fn timed_out() -> StoreError {
    StoreError::unavailable("no reply", io::Error::from(io::ErrorKind::TimedOut))
}

impl FlakyStore {
    /// A good connection, for now.
    pub fn new(inner: Arc<dyn LeaseStore>) -> Arc<Self> {
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
    pub fn deliver(&self) -> Vec<Result<Cas, StoreError>> {
        let held = std::mem::take(&mut self.weather().held);
        held.into_iter()
            .map(|Change { namespace, machine, expect, new }| {
                self.inner.cas(&namespace, machine, &expect, &new)
            })
            .collect()
    }

    /// When the records have been listed, wait for the others once: all of them then act on the same
    /// state.
    pub fn meet_after_list(&self, others: Arc<Barrier>) {
        self.weather().meeting = Some(others);
    }

    /// Waits for the others, if that did not happen yet.
    pub fn meet(&self) {
        let meeting = self.weather().meeting.take();
        meeting.map(|others| others.wait());
    }

    /// How many requests were made.
    pub fn asked(&self) -> u64 {
        self.weather().asked
    }

    /// How many changes took effect, known to the caller or not.
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

impl LeaseStore for FlakyStore {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn timing(&self) -> Timing {
        self.inner.timing()
    }

    fn open_namespace(&self, namespace: &str, fingerprint: &str) -> Result<Namespace, StoreError> {
        self.reach()?;
        self.inner.open_namespace(namespace, fingerprint)
    }

    fn raise_floor(&self, namespace: &str, floor: u64) -> Result<u64, StoreError> {
        self.reach()?;
        self.inner.raise_floor(namespace, floor)
    }

    fn may_forget(&self) -> bool {
        self.inner.may_forget()
    }

    fn list(&self, namespace: &str) -> Result<Vec<(u64, Record)>, StoreError> {
        self.reach()?;
        let records = self.inner.list(namespace);
        self.meet();
        records
    }

    fn read(&self, namespace: &str, machine: u64) -> Result<Option<Record>, StoreError> {
        self.reach()?;
        self.inner.read(namespace, machine)
    }

    fn cas(
        &self,
        namespace: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        self.reach()?;
        {
            let mut weather = self.weather();
            if weather.hold_back > 0 {
                weather.hold_back -= 1;
                let (namespace, new) = (namespace.to_owned(), new.clone());
                weather.held.push(Change { namespace, machine, expect: *expect, new });
                return Err(timed_out());
            }
        }
        let reply = self.inner.cas(namespace, machine, expect, new)?;
        let mut weather = self.weather();
        weather.changes += u64::from(reply == Cas::Done);
        if weather.lose_replies > 0 {
            weather.lose_replies -= 1;
            return Err(timed_out());
        }
        Ok(reply)
    }

    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        Ok(None)
    }
}
