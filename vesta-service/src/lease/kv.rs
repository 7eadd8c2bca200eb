//! The port to the stores that hold machine IDs and tags: entries of text, changed by compare-and-set.

use std::any::Any;
use std::fmt;

use vesta_intf::UnixMillis;

use super::{StoreError, Timing};

/// Why a store may lose a change that it acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspicion {
    /// The reason, for people.
    pub why: String,
    /// True if it took over from another server at some time, and may lack what that had acknowledged
    /// to processes that did not doubt it.
    pub took_over: bool,
}

/// A change of one entry, as in [`KvStore::put_if`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The key of the entry.
    pub key: String,
    /// The value that it must still have; `None` stands for no entry.
    pub old: Option<String>,
    /// The value to put.
    pub new: String,
}

/// A store of small texts: linearizable, and it keeps what it acknowledged.
///
/// Entries lie in **areas** (`lease/orders`, `segment/tags`) under **keys** (`17`, `namespace`). Both
/// are ASCII letters, digits and `.`, `_`, `-`, `%`; areas also have `/` between their parts, and at
/// most 400 characters, keys at most 1,600. Values are at most 16 KiB of UTF-8 and compared as bytes. Nothing is ever deleted, and no
/// entry has a time to live.
///
/// The calls block. They come from a keeper's thread and from start-up, never from the path that
/// makes IDs, and end within the store's request time-out. After an error the next call connects
/// anew. An implementation over an asynchronous client keeps its runtime to itself, so that embedding
/// needs none.
pub trait KvStore: Send + Sync + fmt::Debug {
    /// The name of this store for people, without secrets: `SQLite vesta-data/vesta.db`.
    fn describe(&self) -> String;

    /// The durations that fit this store.
    fn timing(&self) -> Timing;

    /// Every entry of an area as key and value, in any order; none if there is no such area. Entries
    /// that change meanwhile may be shown as they were before or after.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError>;

    /// The value of one entry; `None` if there is no such entry.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError>;

    /// Puts a value, in one atomic and durable step, if the entry still has the value `old`; `None`
    /// stands for no entry. `false`, and nothing is changed, if it has another.
    ///
    /// A client that repeats a request by itself may report `false` although the first one took
    /// effect: callers tell by reading the entry, since no two requests put the same value.
    ///
    /// # Errors
    /// [`StoreError`] if it is not known whether the change happened.
    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError>;

    /// [`put_if`](Self::put_if) for many entries of an area, at most 128 in ascending order of their
    /// keys, with as few requests as the store allows. Each takes effect or not by itself, and is
    /// answered by itself; other changes may come between them. One whose value is there already, from
    /// an earlier copy of the request, may be reported as done.
    ///
    /// # Errors
    /// [`StoreError`] if it is not known which of the changes happened.
    fn put_all(&self, area: &str, puts: &[Put]) -> Result<Vec<bool>, StoreError> {
        let put_if = |put: &Put| self.put_if(area, &put.key, put.old.as_deref(), &put.new);
        puts.iter().map(put_if).collect()
    }

    /// Why the store, as it is set up now, may lose a change that it acknowledged: when it crashes, or
    /// when a copy that lags takes over. `None` if it keeps what it acknowledged. Asked at each claim
    /// and about once a minute; may ask the server.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn doubt(&self) -> Result<Option<Suspicion>, StoreError> {
        Ok(None)
    }

    /// Locks an entry against the other processes of this machine, until what is returned is dropped;
    /// `None` if one of them has it. For a store in a file, which may be reached by several names: the
    /// lock is on the file itself. Others need none.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached.
    fn lock(&self, _area: &str, _key: &str) -> Result<Option<Box<dyn Any + Send>>, StoreError> {
        Ok(Some(Box::new(())))
    }

    /// False for a store with room for one record alone, and none for the claims that there were.
    fn keeps_history(&self) -> bool {
        true
    }

    /// The store's own wall clock, where it has one to compare with.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        Ok(None)
    }
}
