//! The pool in a Redis.

mod address;
mod durability;
mod errors;
mod link;
mod records;
mod segments;
mod values;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vesta_service::{
    Cas, Expect, LeaseStore, Namespace, Record, SegmentStore, StoreError, Timing, UnixMillis,
};

use crate::{OpenError, Options};
use address::Address;
use durability::Doubts;
use link::{Link, Pool};
use records::{Change, Space};
pub use segments::RedisSegmentStore;

pub(crate) const BUILT_IN: bool = true;

pub(crate) fn open(url: &str, options: &Options) -> Result<Arc<dyn LeaseStore>, OpenError> {
    Ok(Arc::new(RedisStore::open_with(url, options)?))
}

pub(crate) fn open_segments(
    url: &str,
    options: &Options,
) -> Result<Arc<dyn SegmentStore>, OpenError> {
    Ok(Arc::new(RedisSegmentStore::open_with(url, options)?))
}

/// Records in a Redis (5 or newer), or in what speaks its protocol and runs its scripts.
///
/// # URL
/// `redis://[user][:password]@host:port/db`, or `rediss://` with TLS: the server's certificate must
/// be one that the system trusts, or one in the file that the environment variable `SSL_CERT_FILE`
/// names. Behind `?prefix=`, what the keys begin with; `vesta` if it is left out.
///
/// # Keys
/// For the namespace `ids` (with another prefix, that one in place of `vesta`):
/// ```text
/// vesta:{ids}:meta       hash  schema       1
///                              uuid         32 hexadecimal digits
///                              fingerprint  of the layout
///                              floor        decimal
/// vesta:{ids}:machines   set   every machine ID that was ever claimed, decimal
/// vesta:{ids}:rec:7      hash  epoch        decimal: claims so far
///                              owner        32 hexadecimal digits; zeros: nobody
///                              bound        decimal: first position not reserved
///                              attempt      decimal: of the request that wrote the record
///                              released     0 or 1
///                              host, pid, info_time   for people; milliseconds since 1970
/// ```
/// Numbers have 63 bits, no sign and no leading zeros; they are stored and compared as text, because
/// scripts lose bits above 2^53. Nothing is ever deleted and nothing has a time to live: a key that
/// has one, is of another type or has vanished is an error that names it. Each request is one script,
/// so it is one atomic step; the braces keep a namespace in one slot of a cluster.
///
/// # What Redis must promise
/// On every new connection and with every claim it is asked how it is set up.
///
/// * If keys may be evicted (`maxmemory` with a `maxmemory-policy` other than `noeviction`), it is
///   refused.
/// * With `appendonly yes`, `appendfsync always` and `no-appendfsync-on-rewrite no`, no replicas and
///   no cluster, it forgets nothing that it acknowledged.
/// * Anything else, also a Redis that may not be asked, [may forget](LeaseStore::may_forget) the last
///   moments, and a warning says why. Machine IDs are then claimed with a distance of one window.
///
/// If there are replicas, a change counts only once one of them has confirmed it (`WAIT`); until then
/// its outcome is unknown. A master that is cut off from all its replicas should not go on alone: set
/// `min-replicas-to-write 1` on it. Sentinels are not asked and redirections of a cluster not
/// followed: the URL names the one server, or an address that moves with the master.
///
/// A user needs `+@connection +info +config|get +time +wait +eval +evalsha +type +pttl +exists +hget
/// +hmget +hset +sadd +sismember +smembers` and `~vesta:*`.
///
/// # When it is wiped
/// A record of a namespace that is gone, or was made anew by somebody else, counts as never claimed:
/// the owner of such a machine ID learns of it with the next change.
#[derive(Debug)]
pub struct RedisStore {
    pool: Pool,
    auto_init: bool,
    /// The uuids of the namespaces that were opened here.
    opened: Mutex<HashMap<String, u128>>,
    /// `None` as long as Redis was never asked.
    doubts: Mutex<Option<Doubts>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RedisStore {
    /// A store that connects with its first request.
    ///
    /// # Errors
    /// [`OpenError::Malformed`] if the URL is not as described above.
    pub fn open(url: &str) -> Result<Self, OpenError> {
        Self::open_with(url, &Options::default())
    }

    /// As [`open`](Self::open), with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(url: &str, options: &Options) -> Result<Self, OpenError> {
        let limit = options.request_timeout.unwrap_or(Timing::IN_MEMORY.request_timeout);
        Ok(Self {
            pool: Pool::new(Address::parse(url)?, limit),
            auto_init: options.auto_init,
            opened: Mutex::default(),
            doubts: Mutex::default(),
        })
    }

    fn ask<T>(
        &self,
        request: impl FnOnce(&mut Link) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.pool.ask(|link| {
            if link.is_new {
                self.examine(link)?;
            }
            request(link)
        })
    }

    fn ask_about<T>(
        &self,
        namespace: &str,
        request: impl FnOnce(&mut Link, &Space<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let uuid = lock(&self.opened).get(namespace).copied();
        let space = Space::new(&self.pool.address().prefix, namespace, uuid);
        self.ask(|link| request(link, &space))
    }

    fn examine(&self, link: &mut Link) -> Result<(), StoreError> {
        let found = durability::examine(link)?;
        self.note(found);
        Ok(())
    }

    /// A change counts once it cannot be lost, as far as that can be known.
    fn confirm(&self, link: &mut Link) -> Result<(), StoreError> {
        let found = durability::confirm(link)?;
        let mut all = lock(&self.doubts).clone().unwrap_or_default();
        all.extend(found.into_iter().filter(|new| !all.contains(new)).collect::<Vec<_>>());
        self.note(all);
        Ok(())
    }

    fn note(&self, found: Doubts) {
        let mut known = lock(&self.doubts);
        if known.as_ref() != Some(&found) && !found.is_empty() {
            tracing::warn!(
                store = %self.pool.address(),
                why = found.join("; "),
                "this Redis may forget what it acknowledged: machine IDs are claimed with a distance \
                 of one window"
            );
        }
        *known = Some(found);
    }
}

impl LeaseStore for RedisStore {
    fn describe(&self) -> String {
        self.pool.address().to_string()
    }

    fn timing(&self) -> Timing {
        Timing { request_timeout: self.pool.limit(), ..Timing::IN_MEMORY }
    }

    fn open_namespace(&self, namespace: &str, fingerprint: &str) -> Result<Namespace, StoreError> {
        let mut uuid = [0; 16];
        getrandom::fill(&mut uuid).map_err(|error| {
            StoreError::unavailable("the operating system has no random numbers", error)
        })?;
        let uuid = u128::from_be_bytes(uuid).max(1);
        let found = self.ask_about(namespace, |link, space| {
            if !link.is_new {
                self.examine(link)?; // it may have been set up in another way since
            }
            space.open(link, uuid, fingerprint, self.auto_init)
        })?;
        let found = found.ok_or_else(|| {
            StoreError::permanent(
                "the namespace does not exist, and auto_init is off; have it created by \
                 `vesta-server store init`",
            )
        })?;
        lock(&self.opened).insert(namespace.into(), found.uuid);
        Ok(found)
    }

    fn list(&self, namespace: &str) -> Result<Vec<(u64, Record)>, StoreError> {
        self.ask_about(namespace, |link, space| space.list(link))
    }

    fn read(&self, namespace: &str, machine: u64) -> Result<Option<Record>, StoreError> {
        self.ask_about(namespace, |link, space| space.read(link, machine))
    }

    fn cas(
        &self,
        namespace: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        self.ask_about(namespace, |link, space| match space.cas(link, machine, expect, new)? {
            Change::Made(outcome) => self.confirm(link).map(|()| outcome),
            Change::Refused(current) => Ok(Cas::Conflict(current)),
        })
    }

    fn raise_floor(&self, namespace: &str, floor: u64) -> Result<u64, StoreError> {
        self.ask_about(namespace, |link, space| {
            let floor = space.raise_floor(link, floor)?;
            self.confirm(link).map(|()| floor)
        })
    }

    fn may_forget(&self) -> bool {
        lock(&self.doubts).as_ref().is_none_or(|doubts| !doubts.is_empty())
    }

    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        let (seconds, micros): (u64, u64) = self.ask(|link| link.ask(&redis::cmd("TIME")))?;
        Ok(Some(UnixMillis(seconds * 1000 + micros / 1000)))
    }
}
