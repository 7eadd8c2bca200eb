//! The port to the stores that hold the records.

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use vesta_intf::UnixMillis;

use super::{Expect, Record, Timing};

/// A store of records: linearizable, and it keeps what it acknowledged.
///
/// The calls block. They come from the keeper's thread and from start-up, never from the path that
/// makes IDs, and end within the store's request time-out. An implementation over an asynchronous
/// client keeps its runtime to itself, so that embedding needs none.
pub trait LeaseStore: Send + Sync + fmt::Debug {
    /// What a person would call this store, without secrets: `SQLite vesta-data/vesta.db`.
    fn describe(&self) -> String;

    /// The durations that fit this store.
    fn timing(&self) -> Timing;

    /// Opens a namespace; on first use it is created with this fingerprint. Returns what is stored,
    /// which the caller compares.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, or is not a store of Vesta.
    fn open_namespace(&self, namespace: &str, fingerprint: &str) -> Result<Namespace, StoreError>;

    /// Every record of the namespace that was ever claimed, with its machine ID.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn list(&self, namespace: &str) -> Result<Vec<(u64, Record)>, StoreError>;

    /// The record of one machine ID; `None` if it was never claimed.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn read(&self, namespace: &str, machine: u64) -> Result<Option<Record>, StoreError>;

    /// Replaces a record, in one atomic step, if it still is as expected. An absent record counts as
    /// [`Record::unclaimed`] with the namespace's floor.
    ///
    /// # Errors
    /// [`StoreError`] if it is not known whether the change happened.
    fn cas(
        &self,
        namespace: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError>;

    /// Raises the floor of a namespace to `floor`, in one atomic step; a floor that is higher stays.
    /// Returns the floor as it then is. For operators, after a store has forgotten something.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, the namespace was never opened, or the store has
    /// no floor.
    fn raise_floor(&self, namespace: &str, floor: u64) -> Result<u64, StoreError> {
        let _ = (namespace, floor);
        Err(StoreError::permanent("this store has no floor to raise"))
    }

    /// Whether the store, as it is set up, may lose a change that it acknowledged: when it crashes,
    /// or when a copy that lags takes over. Claims then keep a distance of one window. Asked after
    /// [`open_namespace`](Self::open_namespace).
    fn may_forget(&self) -> bool {
        false
    }

    /// The store's own wall clock, where it has one to compare with.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        Ok(None)
    }
}

/// The outcome of a compare-and-set whose reply arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cas {
    /// The record is now the new one.
    Done,
    /// The record was not as expected; it is this one.
    Conflict(Record),
}

/// What a store keeps of a namespace: machine IDs whose outputs must never meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Made once, at creation; tells a namespace from another of the same name.
    pub uuid: u128,
    /// [`IdMeta::fingerprint`](vesta_intf::IdMeta::fingerprint) of the one layout it is for.
    pub fingerprint: String,
    /// No claim starts below this position.
    pub floor: u64,
}

/// A request to a store that was not answered, or whose answer makes no sense.
#[derive(Debug, Clone)]
pub struct StoreError {
    message: Box<str>,
    permanent: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// The store did not answer, or not in time: trying again can help. For a change it is not known
    /// whether it happened.
    pub fn unavailable(
        message: impl Into<Box<str>>,
        source: impl Error + Send + Sync + 'static,
    ) -> Self {
        Self { message: message.into(), permanent: false, source: Some(Arc::new(source)) }
    }

    /// Trying again cannot help: the store is damaged, foreign, or refuses for good.
    pub fn permanent(message: impl Into<Box<str>>) -> Self {
        Self { message: message.into(), permanent: true, source: None }
    }

    /// Whether trying again is pointless.
    pub const fn is_permanent(&self) -> bool {
        self.permanent
    }
}

/// Asks a store. A panic of it counts as a request without an answer: the thread that keeps a lease,
/// or fetches for a tag, must not end with it.
pub(crate) fn ask_store<T>(
    question: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(question)).unwrap_or_else(|_| {
        Err(StoreError::unavailable("the store panicked", std::io::Error::other("see above")))
    })
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|e| e as &(dyn Error + 'static))
    }
}
