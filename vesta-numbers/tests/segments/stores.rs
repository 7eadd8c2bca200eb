//! Stores that misbehave on request, and services on them.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use vesta_numbers::segment::{
    NewSegmentTag, NextRange, SegmentBuilder, SegmentService, SegmentStore, SegmentTag,
};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_service::IdError;
use vesta_service::contract::{IdRun, UnixMillis};
use vesta_service::lease::StoreError;
use vesta_service::options::Drive;
use vesta_service::testing::ManualClock;

/// Behaviour of the store for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mood {
    #[default]
    Good,
    /// Does nothing and does not answer.
    Away,
    /// Executes the request and does not answer.
    LosesReplies,
    /// Refuses permanently.
    Refuses,
    Panics,
    /// Panics even when asked for its name.
    PanicsWhenNamed,
}

/// An in-memory store with scripted behaviour, which can block fetches.
#[derive(Debug, Default)]
pub(crate) struct TestStore {
    pub(crate) rows: MemorySegmentStore,
    mood: Mutex<Mood>,
    gate: Mutex<Gate>,
    changed: Condvar,
    pub(crate) fetches: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) backs: AtomicU64,
    pub(crate) doubt: Mutex<Option<String>>,
    /// Notified when the store is no longer used.
    pub(crate) gone: Mutex<Option<Sender<()>>>,
}

impl Drop for TestStore {
    fn drop(&mut self) {
        if let Some(gone) = self.gone.lock().take() {
            let _ = gone.send(());
        }
    }
}

#[derive(Debug, Default)]
struct Gate {
    /// Tags whose fetches are blocked.
    closed: HashSet<String>,
    waiting: usize,
}

impl TestStore {
    /// A store with these tags, each with its step; their numbers start at 1.
    pub(crate) fn with(tags: &[(&str, u64)]) -> Arc<Self> {
        let store = Self::default();
        for (key, step) in tags {
            assert!(
                store
                    .rows
                    .create(&NewSegmentTag::new(*key, *step).unwrap())
                    .unwrap()
            );
        }
        Arc::new(store)
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock() = mood;
    }

    pub(crate) fn close_gate(&self, key: &str) {
        self.gate.lock().closed.insert(key.into());
    }

    pub(crate) fn open_gate(&self, key: &str) {
        self.gate.lock().closed.remove(key);
        self.changed.notify_all();
    }

    /// Returns when this many fetches are blocked.
    pub(crate) fn wait_for_waiting(&self, count: usize) {
        let mut gate = self.gate.lock();
        let limit = Duration::from_secs(300);
        let wait = self
            .changed
            .wait_while_for(&mut gate, |gate| gate.waiting < count, limit);
        assert!(
            !wait.timed_out(),
            "{} of {count} fetches arrived",
            gate.waiting
        );
    }

    fn pass_gate(&self, key: &str) {
        let mut gate = self.gate.lock();
        gate.waiting += 1;
        self.changed.notify_all();
        self.changed
            .wait_while(&mut gate, |gate| gate.closed.contains(key));
        gate.waiting -= 1;
    }

    fn answer<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let away = || {
            let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
            Err(StoreError::unavailable("secret-host did not answer", error))
        };
        let mood = *self.mood.lock();
        match mood {
            Mood::Good => work(),
            Mood::Away => away(),
            Mood::LosesReplies => work().and_then(|_| away()),
            Mood::Refuses => Err(StoreError::permanent("table leaf_alloc does not exist")),
            Mood::PanicsWhenNamed => work(),
            Mood::Panics => panic!("as the test wants it"),
        }
    }
}

impl SegmentStore for TestStore {
    fn describe(&self) -> String {
        assert!(
            *self.mood.lock() != Mood::PanicsWhenNamed,
            "as the test wants it"
        );
        "test store".into()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.answer(|| self.rows.tags())
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        self.fetches.fetch_add(1, Ordering::Relaxed);
        self.pass_gate(key);
        self.answer(|| self.rows.next_range(key, step))
    }

    fn give_back(&self, key: &str, numbers: Range<u64>) -> Result<bool, StoreError> {
        self.backs.fetch_add(1, Ordering::Relaxed);
        self.answer(|| self.rows.give_back(key, numbers))
    }

    fn doubt(&self) -> Result<Option<String>, StoreError> {
        self.answer(|| Ok(self.doubt.lock().clone()))
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        self.answer(|| self.rows.create(tag))
    }
}

/// A service with threads, and a timeout long enough for any machine.
pub(crate) fn patient(store: &Arc<TestStore>) -> SegmentBuilder {
    SegmentService::builder(store.clone()).max_wait(Duration::from_secs(300))
}

/// A service without threads, whose time advances on request.
pub(crate) fn by_hand(store: &Arc<TestStore>) -> (SegmentService, ManualClock) {
    let clock = ManualClock::at(UnixMillis(1_700_000_000_000));
    let builder = SegmentService::builder(store.clone())
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand);
    (builder.build().unwrap(), clock)
}

/// Looks a tag up and takes a number.
pub(crate) fn next(service: &SegmentService, key: &str) -> Result<u64, IdError> {
    service.segment(key)?.next()
}

pub(crate) fn try_next(service: &SegmentService, key: &str) -> Result<u64, IdError> {
    service.try_segment(key)?.try_next()
}

pub(crate) fn run(service: &SegmentService, key: &str, want: u32) -> Result<IdRun, IdError> {
    service.segment(key)?.next_run(want)
}

pub(crate) fn batch(service: &SegmentService, key: &str, count: u32) -> Result<Vec<u64>, IdError> {
    Ok(ids(&service.segment(key)?.next_runs(count)?))
}

pub(crate) fn ids(runs: &[IdRun]) -> Vec<u64> {
    runs.iter().flat_map(IdRun::iter).collect()
}

pub(crate) fn row(key: &str, max_id: i64, step: i64) -> SegmentTag {
    SegmentTag::new(key, max_id, step)
}

/// Records which numbers were seen, one bit each.
pub(crate) struct Seen {
    bits: Vec<AtomicU64>,
}

impl Seen {
    pub(crate) fn below(end: usize) -> Self {
        Self {
            bits: (0..end.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// `true` if the number is seen for the first time.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        let word = &self.bits[usize::try_from(number / 64).unwrap()];
        let bit = 1 << (number % 64);
        word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    pub(crate) fn count(&self) -> u64 {
        self.bits
            .iter()
            .map(|word| u64::from(word.load(Ordering::Relaxed).count_ones()))
            .sum()
    }
}
