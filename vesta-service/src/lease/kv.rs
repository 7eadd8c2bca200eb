//! Port to the stores of machine IDs and tags: text entries, changed by compare-and-set.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use vesta_intf::UnixMillis;

use super::{Doubt, FilePlace, Secret, StoreError, Timing, Writer};

/// Maximum number of entries per request, so that a request stays short.
pub const AT_ONCE: usize = 128;

/// Change of one entry, as in [`KvStore::put_if`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// Key of the entry.
    pub key: String,
    /// Value that the entry must still have; `None` stands for no entry.
    pub old: Option<String>,
    /// Value to put.
    pub new: String,
    /// Proof of the writer of the old value, for a pool server; other stores ignore it.
    pub secret: Secret,
}

/// Store of small texts. It is linearizable and keeps what it acknowledged.
///
/// Entries lie in **areas** (`lease/orders`, `segment/tags`) under **keys** (`17`, `namespace`). Both consist
/// of ASCII letters, digits and `.`, `_`, `-`, `%`; areas also have `/` between their parts. Areas have at
/// most 400 characters, keys at most 1,600. Values are at most 16 KiB of UTF-8 and compared as bytes. Entries
/// are never deleted and have no time to live.
///
/// The calls block and end within the store's request timeout. They come from a keeper's thread and from
/// start-up, never from the path that makes IDs. After an error the next call reconnects. An implementation
/// over an asynchronous client keeps its runtime private, so that embedding needs none.
pub trait KvStore: Send + Sync + fmt::Debug {
    /// Name of this store for people, without secrets: `SQLite vesta-data/vesta.db`.
    fn describe(&self) -> String;

    /// Durations that fit this store.
    fn timing(&self) -> Timing;

    /// Longest window that a process uses on this store without announcing it in its namespace.
    fn usual_window(&self) -> Duration {
        self.timing().window
    }

    /// Host of the server through which the store is reached, for people; `None` if it is reached directly.
    fn via(&self) -> Option<String> {
        None
    }

    /// Every entry of an area as key and value, in any order; none if the area does not exist. An entry that
    /// changes meanwhile may be returned as it was before or after the change.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError>;

    /// Value of one entry; `None` if the entry does not exist.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError>;

    /// Those entries of an area that have one of these keys, at most 128, in any order and with as few requests as
    /// the store allows; otherwise as [`list`](Self::list).
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn get_all(&self, area: &str, keys: &[String]) -> Result<Vec<(String, String)>, StoreError> {
        let get = |key: &String| Ok(self.get(area, key)?.map(|value| (key.clone(), value)));
        keys.iter().filter_map(|key| get(key).transpose()).collect()
    }

    /// Puts a value in one atomic and durable step, if the entry still has the value `old`; `None` stands for
    /// no entry. If the entry has another value, returns `false` and changes nothing.
    ///
    /// A client that repeats a request by itself may report `false` although the first one took effect. No
    /// two requests put the same value, so callers find out by reading the entry.
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

    /// [`put_if`](Self::put_if) for many entries of an area, at most 128 in ascending order of their keys,
    /// with as few requests as the store allows. Each change takes effect or not by itself and has its own
    /// answer; other changes may come between them. If an earlier copy of the request already put a value,
    /// its change may be reported as done.
    ///
    /// # Errors
    /// [`StoreError`] if it is not known which of the changes happened.
    fn put_all(&self, area: &str, puts: &[Put]) -> Result<Vec<bool>, StoreError> {
        let put_if = |put: &Put| self.put_if(area, &put.key, put.old.as_deref(), &put.new);
        puts.iter().map(put_if).collect()
    }

    /// Reason why the store, as it is set up now, may lose a change that it acknowledged: in a crash, or when
    /// a lagging replica takes over. `None` if it keeps what it acknowledged. Called at each claim and about
    /// once a minute; may query the server.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn doubt(&self) -> Result<Option<Doubt>, StoreError> {
        Ok(None)
    }

    /// The server that answered [`doubt`](Self::doubt) last; `None` if all servers of the store have the same data.
    fn writer(&self) -> Option<Writer> {
        None
    }

    /// Locks an entry against the other processes of this machine until the returned value is dropped; `None`
    /// if another process holds the lock. Stores in a file need it: the file may be reached by several names,
    /// so the lock is on the file itself. Other stores need none.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached.
    fn lock(&self, _area: &str, _key: &str) -> Result<Option<Box<dyn Any + Send>>, StoreError> {
        Ok(Some(Box::new(())))
    }

    /// True for a pool server: it keeps a record for its owner until its bound has passed.
    fn keeps_owners(&self) -> bool {
        false
    }

    /// Where the store is: the same at each start, whatever folder it is started in. A host remembers by it which
    /// store lost what it acknowledged.
    fn place(&self) -> String {
        self.describe()
    }

    /// False for a store that has room for one record only, and so none for past claims.
    fn keeps_history(&self) -> bool {
        true
    }

    /// Wall clock of the store; `None` if it has none to compare with.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        Ok(None)
    }

    /// Where the file of the store lies; `None` for a store that is no file.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be found.
    fn file_place(&self) -> Result<Option<FilePlace>, StoreError> {
        Ok(None)
    }

    /// Names of the namespaces in the store; `None` for a store that cannot list them.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    fn namespaces(&self) -> Result<Option<Vec<String>>, StoreError> {
        Ok(None)
    }
}
