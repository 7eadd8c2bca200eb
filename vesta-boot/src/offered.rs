//! The store that a pool server gives to others.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use vesta_intf::UnixMillis;
use vesta_service::clock::{Clock as _, ClockPair, SystemClock};
use vesta_service::lease::{
    KvStore, StoreError, StoreIdentity, TWO_STORES, identity, note_older, refusal,
};

use crate::stores::metered::Metered;

/// Age at which a reading of the store's clock is renewed.
const CLOCK_AGE: Duration = Duration::from_secs(60);

/// A store that others may use.
#[derive(Debug, Clone)]
pub struct Offered {
    /// The store.
    pub store: Arc<dyn KvStore>,
    /// True if only changes are made that an owner of machine IDs would make; false for tests of the store itself.
    pub checked: bool,
    /// The same store, as used by this server itself.
    own: Option<Arc<Metered>>,
    /// Outcome of the last look.
    seen: Arc<Mutex<Option<Seen>>>,
    /// Last reading of the store's clock.
    clock: Arc<Mutex<Option<ClockPair>>>,
}

/// Findings of a look at an offered store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Identity of the data.
    pub identity: StoreIdentity,
    /// Reason why no member may use it.
    pub refused: Option<String>,
}

impl Offered {
    /// Offers a store.
    pub fn new(store: Arc<dyn KvStore>) -> Self {
        Self {
            store,
            checked: true,
            own: None,
            seen: Arc::default(),
            clock: Arc::default(),
        }
    }

    /// Offers the store of this server, which stops using it once it is refused.
    pub(crate) fn of(own: Arc<Metered>) -> Self {
        Self {
            own: Some(Arc::clone(&own)),
            ..Self::new(own)
        }
    }

    /// The store's clock; this host's, if the store has none.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub fn read_now(&self) -> Result<UnixMillis, StoreError> {
        let clock = SystemClock::new();
        let pair = ClockPair::read(&clock, || self.store.now())?;
        *self.clock.lock() = pair;
        Ok(pair.map_or_else(|| clock.wall(), |pair| pair.theirs))
    }

    /// The same, by a reading of the store's clock that is at most a minute old.
    ///
    /// # Errors
    /// As [`read_now`](Self::read_now).
    pub fn now(&self) -> Result<UnixMillis, StoreError> {
        let (monotonic, known) = (SystemClock::new().monotonic(), *self.clock.lock());
        match known.filter(|pair| monotonic.saturating_sub(pair.asked) < CLOCK_AGE) {
            Some(pair) => Ok(pair.latest(monotonic)),
            None => self.read_now(),
        }
    }

    /// Looks at the identity of the store, and whether it may be used. A refusal lasts until the server is started
    /// again.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer, or an entry is damaged.
    pub fn look(&self) -> Result<Seen, StoreError> {
        if let Some(seen) = self.seen.lock().clone().filter(|it| it.refused.is_some()) {
            return Ok(seen);
        }
        let seen = Seen {
            identity: identity(&*self.store)?,
            refused: refusal(&*self.store)?,
        };
        if let Some(why) = &seen.refused {
            let store = self.store.describe();
            tracing::error!(store, reason = TWO_STORES, "members are refused: {why}");
            if let Some(own) = &self.own {
                own.refuse(StoreError::two_stores(why));
            }
        }
        *self.seen.lock() = Some(seen.clone());
        Ok(seen)
    }

    /// Outcome of the last look, or the first one.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn seen(&self) -> Result<Seen, StoreError> {
        let last = self.seen.lock().clone();
        last.map_or_else(|| self.look(), Ok)
    }

    /// Notes that a member saw an older store behind the same URL.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn note_older(&self, older: StoreIdentity) -> Result<(), StoreError> {
        if self.seen()?.refused.is_some() {
            return Ok(());
        }
        note_older(&*self.store, older)
    }
}
