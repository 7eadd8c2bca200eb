//! Store of machine IDs that measures the time of its requests and the offset of its clock.

use std::any::Any;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use vesta_intf::UnixMillis;
use vesta_service::clock::{Clock, ClockPair, SystemClock};
use vesta_service::lease::{Doubt, FilePlace, KvStore, Put, StoreError, Timing, Writer};

use crate::metrics::{Latency, Series};

/// Kinds of requests to a store.
#[derive(Debug, Clone, Copy)]
enum Op {
    Read,
    Write,
}

impl Op {
    const NAMES: [&str; 2] = ["read", "write"];
}

/// A metered store.
pub(crate) struct Metered {
    store: Arc<dyn KvStore>,
    clock: Arc<dyn Clock>,
    requests: [Series; Op::NAMES.len()],
    /// This host's clock minus the store's, in milliseconds, once compared.
    offset: OnceLock<AtomicI64>,
    /// Answers every request, once set.
    refused: OnceLock<StoreError>,
}

impl std::fmt::Debug for Metered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.store.fmt(f)
    }
}

impl Metered {
    pub(crate) fn new(store: Arc<dyn KvStore>, clock: Option<Arc<dyn Clock>>) -> Arc<Self> {
        let clock = clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        Arc::new(Self {
            store,
            clock,
            requests: Default::default(),
            offset: OnceLock::new(),
            refused: OnceLock::new(),
        })
    }

    /// Answers every request with this error from now on.
    pub(crate) fn refuse(&self, error: StoreError) {
        let _ = self.refused.set(error); // the first one stays
    }

    /// The requests so far, by kind.
    pub(crate) fn requests(&self) -> impl Iterator<Item = (&'static str, Latency)> {
        Op::NAMES
            .into_iter()
            .zip(self.requests.iter().map(Series::read))
    }

    /// This host's clock minus the store's in milliseconds, when last compared.
    pub(crate) fn offset(&self) -> Option<i64> {
        self.offset.get().map(|offset| offset.load(Relaxed))
    }

    fn timed<T>(
        &self,
        op: Op,
        ask: impl FnOnce(&dyn KvStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(error) = self.refused.get() {
            return Err(error.clone());
        }
        let began = self.clock.monotonic();
        let answer = ask(&*self.store);
        self.requests[op as usize].observe(self.clock.monotonic().saturating_sub(began));
        answer
    }
}

impl KvStore for Metered {
    fn describe(&self) -> String {
        self.store.describe()
    }

    fn timing(&self) -> Timing {
        self.store.timing()
    }

    fn usual_window(&self) -> Duration {
        self.store.usual_window()
    }

    fn via(&self) -> Option<String> {
        self.store.via()
    }

    fn keeps_owners(&self) -> bool {
        self.store.keeps_owners()
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.timed(Op::Read, |store| store.list(area))
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        self.timed(Op::Read, |store| store.get(area, key))
    }

    fn get_all(&self, area: &str, keys: &[String]) -> Result<Vec<(String, String)>, StoreError> {
        self.timed(Op::Read, |store| store.get_all(area, keys))
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        self.timed(Op::Write, |store| store.put_if(area, key, old, new))
    }

    fn put_all(&self, area: &str, puts: &[Put]) -> Result<Vec<bool>, StoreError> {
        self.timed(Op::Write, |store| store.put_all(area, puts))
    }

    fn doubt(&self) -> Result<Option<Doubt>, StoreError> {
        self.timed(Op::Read, |store| store.doubt())
    }

    fn writer(&self) -> Option<Writer> {
        self.store.writer()
    }

    fn lock(&self, area: &str, key: &str) -> Result<Option<Box<dyn Any + Send>>, StoreError> {
        self.store.lock(area, key)
    }

    fn place(&self) -> String {
        self.store.place()
    }

    fn keeps_history(&self) -> bool {
        self.store.keeps_history()
    }

    fn file_place(&self) -> Result<Option<FilePlace>, StoreError> {
        self.store.file_place()
    }

    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        let asked = || self.timed(Op::Read, |store| store.now());
        let pair = ClockPair::read(&*self.clock, asked)?;
        if let Some(pair) = pair {
            let offset = pair.ours().0.cast_signed() - pair.theirs.0.cast_signed();
            self.offset
                .get_or_init(AtomicI64::default)
                .store(offset, Relaxed);
        }
        Ok(pair.map(|pair| pair.theirs))
    }
}

#[cfg(test)]
mod tests {
    use vesta_service::testing::{ManualClock, MemoryStore};

    use crate::commands::store::testing::World;

    use super::*;

    #[test]
    fn clocks_are_compared_when_the_store_reports_its_clock() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(UnixMillis(1_000_000)));
        let without = Metered::new(Arc::new(MemoryStore::new()), Some(Arc::clone(&clock)));
        assert_eq!(
            (without.now().expect("it answers"), without.offset()),
            (None, None)
        );
        let behind = World::new().with_store_clock(UnixMillis(997_500)).store;
        let store = Metered::new(behind, Some(clock));
        assert_eq!(store.offset(), None, "not yet");
        store.now().expect("it answers");
        assert_eq!(store.offset(), Some(2_500));
    }

    #[test]
    fn requests_are_timed_by_kind_and_change_nothing() {
        let clock = ManualClock::at(UnixMillis(1_000_000));
        let store = Metered::new(Arc::new(MemoryStore::new()), Some(Arc::new(clock)));
        assert!(store.put_if("a", "1", None, "x").expect("it answers"));
        assert_eq!(
            store.get("a", "1").expect("it answers").as_deref(),
            Some("x")
        );
        assert!(!store.put_if("a", "1", None, "y").expect("it answers"));
        assert_eq!(store.list("a").expect("it answers").len(), 1);
        let counts: Vec<_> = store.requests().map(|(op, it)| (op, it.count())).collect();
        assert_eq!(counts, [("read", 2), ("write", 2)]);
    }
}
