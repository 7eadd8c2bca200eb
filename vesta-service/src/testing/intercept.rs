//! A store whose requests pass through a function provided by the test.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use vesta_intf::UnixMillis;

use crate::error::StoreError;
use crate::lease::{Doubt, FilePlace, KvStore, Put, Secret, Timing, Writer};

/// A request to a store; a single change is that of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the parameters of the methods of KvStore")]
pub enum Request<'a> {
    /// [`KvStore::list`]
    List { area: &'a str },
    /// [`KvStore::get`]
    Get { area: &'a str, key: &'a str },
    /// [`KvStore::get_all`]
    GetAll { area: &'a str, keys: &'a [String] },
    /// [`KvStore::put_if`] and [`KvStore::put_all`]
    Put { area: &'a str, puts: &'a [Put] },
    /// [`KvStore::doubt`]
    Doubt,
    /// [`KvStore::now`]
    Now,
}

/// The reply to a [`Request`], in the same order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the results of the methods of KvStore")]
pub enum Answer {
    Entries(Vec<(String, String)>),
    Value(Option<String>),
    Done(Vec<bool>),
    Doubt(Option<Doubt>),
    Now(Option<UnixMillis>),
}

impl Request<'_> {
    /// Sends the request to a store.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn send(self, store: &dyn KvStore) -> Result<Answer, StoreError> {
        Ok(match self {
            Self::List { area } => Answer::Entries(store.list(area)?),
            Self::Get { area, key } => Answer::Value(store.get(area, key)?),
            Self::GetAll { area, keys } => Answer::Entries(store.get_all(area, keys)?),
            Self::Put {
                area,
                puts: [Put { key, old, new, .. }],
            } => Answer::Done(vec![store.put_if(area, key, old.as_deref(), new)?]),
            Self::Put { area, puts } => Answer::Done(store.put_all(area, puts)?),
            Self::Doubt => Answer::Doubt(store.doubt()?),
            Self::Now => Answer::Now(store.now()?),
        })
    }
}

type Around = dyn Fn(Request<'_>, &dyn KvStore) -> Result<Answer, StoreError> + Send + Sync;

/// A store behind a function that sees every request before the store and every reply after it, and may change,
/// delay, refuse or answer it. For custom faults; [`FlakyStore`](super::FlakyStore) has the usual ones.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use vesta_service::lease::KvStore as _;
/// use vesta_service::testing::{Intercept, MemoryStore};
///
/// let asked = Arc::new(AtomicU64::new(0));
/// let count = asked.clone();
/// let store = Intercept::new(Arc::new(MemoryStore::new()), move |request, store| {
///     count.fetch_add(1, Ordering::Relaxed);
///     request.send(store)
/// });
/// assert_eq!(store.get("area", "key")?, None);
/// assert_eq!(asked.load(Ordering::Relaxed), 1);
/// # Ok::<(), vesta_service::lease::StoreError>(())
/// ```
pub struct Intercept {
    store: Arc<dyn KvStore>,
    timing: Timing,
    around: Box<Around>,
}

impl Intercept {
    /// A store whose requests pass through `around`.
    pub fn new(
        store: Arc<dyn KvStore>,
        around: impl Fn(Request<'_>, &dyn KvStore) -> Result<Answer, StoreError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            timing: store.timing(),
            store,
            around: Box::new(around),
        }
    }

    /// Sets durations other than the store's.
    #[must_use]
    pub fn timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    fn ask<T>(
        &self,
        request: Request<'_>,
        expected: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<T, StoreError> {
        let answer = (self.around)(request, &*self.store)?;
        Ok(expected(answer).expect("an answer to the request"))
    }
}

impl fmt::Debug for Intercept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Intercept").field(&self.store).finish()
    }
}

macro_rules! only {
    ($kind:ident) => {
        |answer| {
            if let Answer::$kind(it) = answer {
                Some(it)
            } else {
                None
            }
        }
    };
}

impl KvStore for Intercept {
    fn describe(&self) -> String {
        self.store.describe()
    }

    fn timing(&self) -> Timing {
        self.timing
    }

    fn keeps_owners(&self) -> bool {
        self.store.keeps_owners()
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

    fn lock(&self, area: &str, key: &str) -> Result<Option<Box<dyn Any + Send>>, StoreError> {
        self.store.lock(area, key)
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.ask(Request::List { area }, only!(Entries))
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        self.ask(Request::Get { area, key }, only!(Value))
    }

    fn get_all(&self, area: &str, keys: &[String]) -> Result<Vec<(String, String)>, StoreError> {
        self.ask(Request::GetAll { area, keys }, only!(Entries))
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

    fn put_all(&self, area: &str, puts: &[Put]) -> Result<Vec<bool>, StoreError> {
        self.ask(Request::Put { area, puts }, only!(Done))
    }

    fn writer(&self) -> Option<Writer> {
        self.store.writer()
    }

    fn doubt(&self) -> Result<Option<Doubt>, StoreError> {
        self.ask(Request::Doubt, only!(Doubt))
    }

    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        self.ask(Request::Now, only!(Now))
    }
}
