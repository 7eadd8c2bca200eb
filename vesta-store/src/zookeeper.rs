//! Records in ZooKeeper.

mod alive;
mod errors;
mod format;
#[cfg(test)]
mod fuzz;
mod link;
mod predecessor;
mod records;
mod target;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vesta_service::{
    Cas, Clock as _, Expect, LeaseStore, Namespace, Record, StoreError, SystemClock, Timing,
};

use crate::runtime::NoAnswer;
use crate::{OpenError, Options};
use errors::{Failure, Fate, no_answer};
use format::within_63_bits;
use link::{Link, Session};
use records::Place;
use target::Target;

pub use predecessor::leaf_machine_ids;

pub(crate) const BUILT_IN: bool = true;

pub(crate) fn open(url: &str, options: &Options) -> Result<Arc<dyn LeaseStore>, OpenError> {
    Ok(Arc::new(ZookeeperStore::open_with(url, options)?))
}

/// Of a URL that names no path.
const DEFAULT_PATH: &str = "/vesta";

/// Records in ZooKeeper, version 3.5 or newer.
///
/// The URL is `zookeeper://host:port,host:port/path`: all servers of the ensemble (port 2181 if none is
/// given) and the znode below which everything lies (`/vesta` if none is given). With
/// `zookeeper://user:password@host:port/path` the session belongs to that user of the scheme `digest`,
/// and the znodes that Vesta creates are that user's alone; otherwise they are open to everybody.
/// Characters with a meaning in URLs are written as `%40` and so on.
///
/// For the namespace `default`, with machine ID 7 claimed for the third time:
///
/// ```text
/// /vesta/default            {"schema":1,"uuid":"5f0c7b1e93a24d688e17c2b4f6903ad5","fingerprint":"1/1/2/30/20/10 tsm 1000ms @1420041600000","floor":0}
/// /vesta/default/records
/// /vesta/default/records/7  {"schema":1,"epoch":3,"owner":"92b104c8d37e4f15a6d07e381b59c2f4","bound":369899123507200,"attempt":8203774192230847113,"released":false,"host":"ids-1","pid":4711,"info_time":1767225600000}
/// /vesta/default/alive
/// /vesta/default/alive/7    {"host":"ids-1","pid":4711}
/// ```
///
/// The znodes of the namespace and of its records are persistent, have no time to live and are never
/// deleted. One that is not so, or holds anything else, is refused. A newer `schema` is refused, too.
///
/// | field | meaning |
/// |---|---|
/// | `uuid` | made once, with the namespace; 32 hexadecimal digits |
/// | `fingerprint` | the one layout the namespace is for |
/// | `floor` | no claim starts below this position |
/// | `epoch` | claims so far |
/// | `owner` | the random number of the owner, 32 hexadecimal digits; zeros: nobody |
/// | `bound` | the first position that is not reserved |
/// | `attempt` | the random number of the request that wrote the record |
/// | `released` | whether the last owner gave the record back |
/// | `host`, `pid`, `info_time` | the last owner and its wall clock (milliseconds since 1970), for people |
///
/// Numbers have 63 bits; larger ones are refused.
///
/// A record is changed by `setData` with the version that was read, or created together with a check of
/// the version of the namespace's znode, which holds the floor. A quorum has every change before it
/// counts, unless the servers run with `forceSync=no`, which they must not. Each read follows a `sync`.
///
/// The znodes below `alive` are ephemeral and only for people: an owner that is connected has one, with
/// its host and process ID. After a lost session it comes back with the next change of the record.
/// Whether it is there decides nothing, and neither does the session: when it runs out, the next request
/// makes a new one and the owner keeps its record.
#[derive(Debug)]
pub struct ZookeeperStore {
    target: Arc<Target>,
    /// Otherwise what is missing is an error.
    auto_init: bool,
    request_timeout: Duration,
    /// `None` after trouble: the next request connects anew.
    link: Mutex<Option<Arc<Link>>>,
    /// The number of the server to try first.
    next_host: AtomicUsize,
}

impl ZookeeperStore {
    /// Opens the store that a URL names. The first request connects.
    ///
    /// # Errors
    /// [`OpenError::Malformed`].
    pub fn open(url: &str) -> Result<Self, OpenError> {
        Self::open_with(url, &Options::default())
    }

    /// As [`open`](Self::open), with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(url: &str, options: &Options) -> Result<Self, OpenError> {
        Ok(Self::to(Target::with_default_path(url, DEFAULT_PATH)?, options))
    }

    fn to(target: Target, options: &Options) -> Self {
        // Not all processes should begin with the same server. Without a random number they do.
        let first = getrandom::u32().ok().and_then(|number| number.try_into().ok());
        Self {
            target: Arc::new(target),
            auto_init: options.auto_init,
            request_timeout: options.request_timeout.unwrap_or(Timing::NETWORK.request_timeout),
            link: Mutex::default(),
            next_host: AtomicUsize::new(first.unwrap_or(0)),
        }
    }

    /// Carries out a request in the session there is, or in a new one. A request whose reply is lost
    /// with its session is carried out again, as its sender would: changes only take effect once.
    fn ask<T: Send + 'static, F>(
        &self,
        request: impl Fn(Arc<Session>) -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let clock = SystemClock::new();
        let deadline = clock.monotonic() + self.request_timeout;
        let left = || deadline.saturating_sub(clock.monotonic());
        let in_all = |_| no_answer(NoAnswer(self.request_timeout));
        loop {
            let (link, is_new) = match self.linked() {
                Some(link) => (link, false),
                None => (self.connect(left()).map_err(in_all)??, true),
            };
            let failure = match link.run(left(), request(link.session.clone())) {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(no_answer) => {
                    self.unlink(&link);
                    return Err(in_all(no_answer));
                }
            };
            let fate = failure.fate_of_session();
            if fate != Fate::Good {
                self.unlink(&link);
            }
            if fate != Fate::Lost || is_new {
                return Err(failure.explain(&self.target.path));
            }
        }
    }

    fn connect(&self, limit: Duration) -> Result<Result<Arc<Link>, StoreError>, NoAnswer> {
        let first = self.next_host.fetch_add(1, Ordering::Relaxed); // any order will do
        Ok(match Link::connect(&self.target, first, limit)? {
            Ok(link) => {
                let link = Arc::new(link);
                *self.link() = Some(link.clone());
                Ok(link)
            }
            Err(failure) => Err(failure.explain(&self.target.path)),
        })
    }

    fn link(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn linked(&self) -> Option<Arc<Link>> {
        self.link().take_if(|link| !link.is_connected());
        self.link().clone()
    }

    fn unlink(&self, broken: &Arc<Link>) {
        self.link().take_if(|link| Arc::ptr_eq(link, broken));
    }

    fn place(&self, namespace: &str) -> Result<Place, StoreError> {
        Place::new(&self.target.path, namespace)
    }
}

impl Drop for ZookeeperStore {
    fn drop(&mut self) {
        if let Some(link) = self.linked().and_then(|link| {
            self.unlink(&link);
            Arc::into_inner(link)
        }) {
            link.close(self.request_timeout);
        }
    }
}

impl LeaseStore for ZookeeperStore {
    fn describe(&self) -> String {
        self.target.to_string()
    }

    fn timing(&self) -> Timing {
        Timing { request_timeout: self.request_timeout, ..Timing::NETWORK }
    }

    fn open_namespace(&self, namespace: &str, fingerprint: &str) -> Result<Namespace, StoreError> {
        let place = self.place(namespace)?;
        self.ask(|session| {
            records::open_namespace(session, place.clone(), fingerprint.into(), self.auto_init)
        })
    }

    fn raise_floor(&self, namespace: &str, floor: u64) -> Result<u64, StoreError> {
        let (place, floor) = (self.place(namespace)?, within_63_bits(floor)?);
        self.ask(|session| records::raise_floor(session, place.clone(), floor))
    }

    fn list(&self, namespace: &str) -> Result<Vec<(u64, Record)>, StoreError> {
        let place = self.place(namespace)?;
        self.ask(|session| records::list(session, place.clone()))
    }

    fn read(&self, namespace: &str, machine: u64) -> Result<Option<Record>, StoreError> {
        let (place, machine) = (self.place(namespace)?, within_63_bits(machine)?);
        self.ask(|session| records::read(session, place.clone(), machine))
    }

    fn cas(
        &self,
        namespace: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        let (place, machine) = (self.place(namespace)?, within_63_bits(machine)?);
        within_63_bits(expect.epoch)?;
        within_63_bits(expect.bound)?;
        self.ask(|session| records::cas(session, place.clone(), machine, *expect, new.clone()))
    }
}
