//! Which tags there are, and how a call finds its tag without a lock.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, atomic};
use std::time::Duration;

use vesta_intf::{IdError, NotReady, NotReadyReason};

use super::key::{Key, closed, not_found};
use super::notify::Notify;
use crate::StoreError;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Every tag that was ever in the table. Replaced as a whole when one is added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    list: Vec<Arc<Key>>,
    /// Where each stands in the list.
    places: HashMap<String, usize>,
}

impl Keys {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Key>> {
        self.list.get(*self.places.get(name)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.list.iter()
    }
}

/// Which tags there are.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Tells this registry from all others of the process.
    number: u64,
    /// Version of `known.keys`.
    version: AtomicU64,
    known: Mutex<Known>,
    /// Rung when tags were read, and at the end.
    pub(crate) notify: Notify,
}

#[derive(Debug, Default)]
struct Known {
    keys: Arc<Keys>,
    /// When the tags were read last, and why that failed since.
    read_at: Option<Duration>,
    failure: Option<StoreError>,
    closed: bool,
}

/// One count for the process, so not of the primitives of a checker, which belong to one model.
static LAST_REGISTRY: atomic::AtomicU64 = atomic::AtomicU64::new(0);

crate::sync::thread_local! {
    /// Last look-up of this thread: most threads stay with one service, and many with one tag.
    static SEEN: RefCell<Seen> = RefCell::default();
}

#[derive(Default)]
struct Seen {
    registry: u64,
    version: u64,
    keys: Arc<Keys>,
    /// A place in the list; a number and not the tag itself, whose reference count all threads would
    /// fight over.
    last: usize,
}

impl Seen {
    #[inline]
    fn last(&self) -> Option<&Arc<Key>> {
        self.keys.list.get(self.last)
    }
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            number: LAST_REGISTRY.fetch_add(1, Ordering::Relaxed) + 1,
            version: AtomicU64::new(1),
            known: Mutex::default(),
            notify: Notify::default(),
        }
    }

    /// Calls `f`, which must be brief and call nothing back, with the tag of this name. `None` if
    /// there is none yet.
    #[inline]
    pub(crate) fn with<T>(&self, name: &str, f: impl FnOnce(&Arc<Key>) -> T) -> Option<T> {
        let mut f = Some(f);
        let seen = SEEN.try_with(|seen| {
            let mut seen = seen.borrow_mut();
            if seen.registry != self.number || seen.last().is_none_or(|key| key.name() != name) {
                self.look_up(name, &mut seen);
            }
            Some((f.take()?)(seen.last()?))
        });
        match seen {
            Ok(result) => result,
            // The thread is ending and remembers nothing any more.
            Err(_) => Some((f.take()?)(self.keys().get(name)?)),
        }
    }

    #[inline(never)]
    fn look_up(&self, name: &str, seen: &mut Seen) {
        // Acquire, with the release in `add`: at least the tags of this version are there to be read.
        let version = self.version.load(Ordering::Acquire);
        if (seen.registry, seen.version) != (self.number, version) {
            *seen = Seen { registry: self.number, version, keys: self.keys(), last: 0 };
        }
        seen.last = seen.keys.places.get(name).copied().unwrap_or(usize::MAX);
    }

    /// Every tag that was ever in the table.
    pub(crate) fn keys(&self) -> Arc<Keys> {
        self.known.lock().keys.clone()
    }

    /// Adds tags, unless the service is closed: then they are closed as well.
    pub(crate) fn add(&self, new: Vec<Arc<Key>>, now: Duration) {
        if new.is_empty() {
            return;
        }
        let mut known = self.known.lock();
        if known.closed {
            new.iter().for_each(|key| key.close(now));
        }
        let mut keys = Keys::clone(&known.keys);
        for key in new {
            keys.places.insert(key.name().to_owned(), keys.list.len());
            keys.list.push(key);
        }
        known.keys = Arc::new(keys);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Notes that the tags were read, or why not. Returns whether that went otherwise the last time.
    pub(crate) fn on_read(&self, now: Duration, failure: Option<StoreError>) -> bool {
        let mut known = self.known.lock();
        if failure.is_none() {
            known.read_at = Some(now);
        }
        let changed = known.failure.is_some() != failure.is_some();
        known.failure = failure;
        drop(known);
        self.notify.notify();
        changed
    }

    /// No more tags. Returns all there are.
    pub(crate) fn close(&self) -> Arc<Keys> {
        let mut known = self.known.lock();
        known.closed = true;
        let keys = known.keys.clone();
        drop(known);
        self.notify.notify();
        keys
    }

    /// The tag of this name, or why there is none. Both are decided under one lock: whether a tag is
    /// missing and whether the tags were read are one question.
    #[cold]
    pub(crate) fn find(&self, name: &str, retry_after: Duration) -> Result<Arc<Key>, IdError> {
        let known = self.known.lock();
        if let Some(key) = known.keys.get(name) {
            return Ok(key.clone());
        }
        if known.closed {
            return Err(closed());
        }
        Err(match (known.read_at, &known.failure) {
            (Some(_), _) => not_found(name),
            (None, None) => NotReady { retry_after, why: NotReadyReason::AwaitingLease }.into(),
            (None, Some(error)) => IdError::Unavailable {
                reason: "the store does not say which segment tags there are".into(),
                retry_after: (!error.is_permanent()).then_some(retry_after),
                source: Some(Arc::new(error.clone())),
            },
        })
    }

    /// When the tags were read last, and why they could not be read since.
    pub(crate) fn last_read(&self) -> (Option<Duration>, Option<String>) {
        let known = self.known.lock();
        (known.read_at, known.failure.as_ref().map(ToString::to_string))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.known.lock().closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SegmentMode;
    use crate::segment::store::SegmentTag;

    #[test]
    fn a_tag_that_is_read_after_the_first_look_is_not_called_missing() {
        let registry = Registry::new();
        assert!(registry.with("orders", Arc::clone).is_none());
        let tag = SegmentTag {
            key: "orders".into(),
            max_id: 1,
            step: 10,
            description: None,
            update_time: None,
        };
        registry.add(vec![Arc::new(Key::new(&tag, SegmentMode::Strict, 1000))], Duration::ZERO);
        registry.on_read(Duration::ZERO, None);
        assert_eq!(registry.find("orders", Duration::ZERO).unwrap().name(), "orders");
        assert!(matches!(registry.find("users", Duration::ZERO), Err(IdError::NotFound { .. })));
    }
}
