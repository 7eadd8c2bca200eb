//! ZooKeeper: sessions with it, and requests in them.

mod config;
mod errors;
mod kv;

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use vesta_service::{Clock as _, KvStore, StoreError, SystemClock, Timing};
use zookeeper_client::{Client, Error, SessionState};

use crate::runtime::{Background, NoAnswer};
use crate::{OpenError, Options, StoreUrl};
pub(crate) use config::Config;
pub(crate) use errors::Failure;
use errors::{Fate, no_answer};
use kv::ZookeeperKv;

pub(crate) fn open(url: &StoreUrl, options: &Options) -> Result<Arc<dyn KvStore>, OpenError> {
    Ok(Arc::new(ZookeeperKv::open(url, options)?))
}

/// The time for which a server keeps a session that is cut off; it may insist on another.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// An ensemble, and the session with it.
#[derive(Debug)]
pub(crate) struct Ensemble {
    config: Arc<Config>,
    limit: Duration,
    /// `None` after trouble: the next request connects anew.
    link: Mutex<Option<Arc<Link>>>,
    /// The number of the server to try first.
    next_host: AtomicUsize,
}

impl Ensemble {
    /// Connects to nothing yet.
    pub(crate) fn new(config: Config, options: &Options) -> Self {
        // Not all processes should begin with the same server. Without a random number they do.
        let first = getrandom::u32().ok().and_then(|number| number.try_into().ok());
        Self {
            config: Arc::new(config),
            limit: options.request_timeout.unwrap_or(Timing::NETWORK.request_timeout),
            link: Mutex::default(),
            next_host: AtomicUsize::new(first.unwrap_or(0)),
        }
    }

    /// Carries out a request in the session there is, or in a new one. A request whose reply is lost
    /// with its session is carried out again, as its sender would: changes only take effect once.
    pub(crate) fn ask<T: Send + 'static, F>(
        &self,
        request: impl Fn(Client) -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let clock = SystemClock::new();
        let deadline = clock.monotonic() + self.limit;
        let left = || deadline.saturating_sub(clock.monotonic());
        let in_all = |_| no_answer(NoAnswer(self.limit));
        loop {
            let (link, is_new) = match self.linked() {
                Some(link) => (link, false),
                None => (self.connect(left()).map_err(in_all)??, true),
            };
            let failure = match link.background.run(left(), request(link.client.clone())) {
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
                return Err(failure.explain(&self.config.path));
            }
        }
    }

    fn connect(&self, limit: Duration) -> Result<Result<Arc<Link>, StoreError>, NoAnswer> {
        let first = self.next_host.fetch_add(1, Ordering::Relaxed); // any order will do
        Ok(match Link::connect(&self.config, first, limit)? {
            Ok(link) => {
                let link = Arc::new(link);
                *self.link() = Some(link.clone());
                Ok(link)
            }
            Err(failure) => Err(failure.explain(&self.config.path)),
        })
    }

    fn link(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn linked(&self) -> Option<Arc<Link>> {
        let mut link = self.link();
        link.take_if(|link| link.client.state() != SessionState::SyncConnected);
        link.clone()
    }

    fn unlink(&self, broken: &Arc<Link>) {
        self.link().take_if(|link| Arc::ptr_eq(link, broken));
    }
}

/// A session with a thread of its own: when it is given up, nothing of it goes on, and above all no
/// request that waits in it is sent later. It is not connected again: after the first trouble there is
/// a new one.
#[derive(Debug)]
struct Link {
    background: Background,
    client: Client,
}

impl Link {
    /// Connects to the server of this number, or to another.
    fn connect(
        config: &Arc<Config>,
        first: usize,
        limit: Duration,
    ) -> Result<Result<Self, Failure>, NoAnswer> {
        let background = match Background::start() {
            Ok(background) => background,
            Err(error) => {
                return Ok(Err(StoreError::unavailable("no thread can be started", error).into()));
            }
        };
        let config = config.clone();
        let connecting = async move { connect(&config, first, limit).await };
        let client = background.run(limit, connecting)?;
        Ok(client.map(|client| Self { background, client }))
    }
}

/// Asks one server after the other, beginning with the one of this number. Each gets its share of the
/// time: one that swallows packets must not use it up.
async fn connect(config: &Config, first: usize, limit: Duration) -> Result<Client, Failure> {
    let count = config.hosts.len();
    let share = limit / u32::try_from(count).unwrap_or(u32::MAX);
    let mut connector =
        Client::connector().with_session_timeout(SESSION_TIMEOUT).with_fail_eagerly();
    if let Some(digest) = &config.digest {
        connector = connector.with_auth("digest", digest.as_bytes());
    }
    let mut failure = Error::NoHosts;
    for host in config.hosts.iter().cycle().skip(first % count).take(count) {
        match timeout(share, connector.clone().connect(host)).await {
            Ok(Ok(client)) => return Ok(client),
            Ok(Err(Error::AuthFailed)) => return Err(Error::AuthFailed.into()),
            Ok(Err(error)) => failure = error,
            Err(_) => failure = Error::Timeout,
        }
    }
    Err(failure.into())
}
