//! Asynchronous clients behind the blocking port: pooled connections, and one timeout per request.

pub(crate) mod runtime;

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Doubt, KvStore, Put, Secret, StoreError, Timing, Writer};

use crate::options::Purpose;
use crate::{OpenError, Options, StoreUrl};
use runtime::{Background, NoAnswer};

/// Maximum idle connections kept for the next requests.
const KEPT: usize = 2;
/// Time for a server to receive the closing message.
const GOODBYE: Duration = Duration::from_millis(100);

/// Asynchronous client of a store.
pub(crate) trait Client: Sized + Send + Sync + 'static {
    /// Display name.
    const NAME: &'static str;
    const TIMING: Timing = Timing::NETWORK;

    type Connection: Send + 'static;

    /// Creates the client without connecting.
    fn new(url: &StoreUrl, options: &Options, purpose: Purpose) -> Result<Self, OpenError>;

    /// Display form of the store, without secrets: `MySQL vesta@db:3306/ids`.
    fn shown(&self) -> &str;

    /// Display names of the servers, any of which may be asked.
    fn servers(&self) -> Vec<&str> {
        vec![self.shown()]
    }

    /// As [`KvStore::via`].
    fn via(&self) -> Option<String> {
        None
    }

    /// Index of the server to connect to first.
    fn first_server(&self) -> usize {
        0
    }

    /// Opens a connection to the server with this index, and checks that it keeps acknowledged
    /// writes.
    fn connect(
        &self,
        server: usize,
        limit: Duration,
    ) -> impl Future<Output = Result<Self::Connection>> + Send;

    /// True if an idle connection is still usable.
    fn is_alive(&self, connection: &mut Self::Connection) -> impl Future<Output = bool> + Send;

    /// Closes a connection gracefully.
    fn close(connection: Self::Connection) -> impl Future<Output = ()> + Send {
        async { drop(connection) }
    }
}

/// A client with entries, which implements the functions of [`KvStore`].
pub(crate) trait Kv: Client {
    /// True if its servers report their clock.
    const HAS_CLOCK: bool = false;

    /// True if its servers may be configured to lose acknowledged writes.
    const MAY_FORGET: bool = false;

    /// True if a server says it, with its first answer.
    const ASKS_USUAL_WINDOW: bool = false;

    /// As [`KvStore::keeps_owners`].
    const KEEPS_OWNERS: bool = false;

    /// As [`KvStore::usual_window`], as far as it is known.
    fn usual_window(&self) -> Duration {
        Self::TIMING.window
    }

    fn list(
        &self,
        connection: &mut Self::Connection,
        area: &str,
    ) -> impl Future<Output = Result<Entries>> + Send;

    fn get(
        &self,
        connection: &mut Self::Connection,
        area: &str,
        key: &str,
    ) -> impl Future<Output = Result<Option<String>>> + Send;

    /// As [`KvStore::get_all`], with at least one key.
    fn get_all(
        &self,
        connection: &mut Self::Connection,
        area: &str,
        keys: &[String],
    ) -> impl Future<Output = Result<Entries>> + Send;

    /// As [`KvStore::put_all`], with at least one put.
    fn put_all(
        &self,
        connection: &mut Self::Connection,
        area: &str,
        puts: &[Put],
    ) -> impl Future<Output = Result<Vec<bool>>> + Send;

    /// As [`KvStore::doubt`].
    fn doubt(
        &self,
        _: &mut Self::Connection,
    ) -> impl Future<Output = Result<Option<Doubt>>> + Send {
        async { Ok(None) }
    }

    /// As [`KvStore::writer`].
    fn writer(&self) -> Option<Writer> {
        None
    }

    fn now(
        &self,
        _: &mut Self::Connection,
    ) -> impl Future<Output = Result<Option<UnixMillis>>> + Send {
        async { Ok(None) }
    }
}

pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The entries of an area: keys and values.
pub(crate) type Entries = Vec<(String, String)>;

/// A store that connects on first use.
pub(crate) struct Remote<C: Client> {
    background: Background,
    shared: Arc<Shared<C>>,
}

struct Shared<C: Client> {
    client: C,
    options: Options,
    limit: Duration,
    /// Index of the next server to connect to.
    next: AtomicUsize,
    idle: Mutex<Vec<C::Connection>>,
}

type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

impl<C: Client> Remote<C> {
    pub(crate) fn open(
        url: &StoreUrl,
        options: &Options,
        purpose: Purpose,
    ) -> Result<Self, OpenError> {
        let client = C::new(url, options, purpose)?;
        let background = Background::start().map_err(|error| OpenError::Store {
            store: client.shown().into(),
            source: StoreError::unavailable("cannot start a thread", error),
        })?;
        let shared = Shared {
            options: options.clone(),
            limit: options.limit(C::TIMING),
            next: AtomicUsize::new(client.first_server()),
            idle: Mutex::default(),
            client,
        };
        Ok(Self {
            background,
            shared: Arc::new(shared),
        })
    }

    pub(crate) fn shown(&self) -> &str {
        self.shared.client.shown()
    }

    /// Sends a request once, over a connection believed to be alive, and waits for the reply within the
    /// timeout. After a successful reply the connection is kept. After anything else it is not used
    /// again; an error also closes the other idle connections, so that the next request inspects the
    /// server again.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        request: impl for<'a> FnOnce(&'a C, &'a mut C::Connection) -> Reply<'a, T> + Send + 'static,
    ) -> Result<T> {
        let shared = self.shared.clone();
        let reply = self.background.run(self.shared.limit, async move {
            let mut connection = shared.connected().await?;
            let reply = request(&shared.client, &mut connection).await;
            match &reply {
                Ok(_) => shared.keep(connection),
                Err(_) => shared.idle().clear(),
            }
            reply
        });
        reply.unwrap_or_else(|silence| Err(silent::<C>(silence)))
    }
}

impl<C: Client> Shared<C> {
    async fn connected(&self) -> Result<C::Connection> {
        let kept = self.idle().pop();
        let Some(mut connection) = kept else {
            return self.connect(self.limit).await;
        };
        // The server may have closed it, or the network may have dropped it.
        let probe = self.limit / 4;
        if timeout(probe, self.client.is_alive(&mut connection)).await == Ok(true) {
            return Ok(connection);
        }
        self.idle().clear();
        self.connect(self.limit - probe).await
    }

    /// Tries one server after the other. Each gets its share of the time, so that an unresponsive
    /// server cannot use it all up.
    async fn connect(&self, limit: Duration) -> Result<C::Connection> {
        let servers = self.client.servers();
        let share = limit / u32::try_from(servers.len()).unwrap_or(u32::MAX);
        let mut failed: Option<StoreError> = None;
        for _ in &servers {
            let server = self.next.fetch_add(1, Ordering::Relaxed) % servers.len(); // the order does not matter
            let error = match timeout(share, self.client.connect(server, share)).await {
                Ok(Err(error)) if !error.is_permanent() => error,
                Ok(connected) => return connected,
                Err(_) => {
                    let silence = format!("{}: {}", servers[server], NoAnswer(share));
                    silent::<C>(io::Error::other(silence))
                }
            };
            failed = Some(match failed {
                None => error,
                Some(first) => StoreError::unavailable(format!("{first}; the next"), error),
            });
        }
        Err(failed.expect("there is a server"))
    }

    fn keep(&self, connection: C::Connection) {
        let mut idle = self.idle();
        if idle.len() < KEPT {
            idle.push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<C::Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn silent<C: Client>(silence: impl Error + Send + Sync + 'static) -> StoreError {
    StoreError::unavailable(format!("{} did not answer", C::NAME), silence)
}

impl<C: Kv> KvStore for Remote<C> {
    fn describe(&self) -> String {
        self.shown().into()
    }

    fn timing(&self) -> Timing {
        Timing {
            request_timeout: self.shared.limit,
            ..C::TIMING
        }
    }

    fn usual_window(&self) -> Duration {
        if C::ASKS_USUAL_WINDOW && self.via().is_none() {
            let _ = self.doubt();
        }
        self.shared.client.usual_window()
    }

    fn via(&self) -> Option<String> {
        self.shared.client.via()
    }

    fn keeps_owners(&self) -> bool {
        C::KEEPS_OWNERS
    }

    fn list(&self, area: &str) -> Result<Entries> {
        let area = area.to_owned();
        self.ask(|client, connection| Box::pin(async move { client.list(connection, &area).await }))
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>> {
        let (area, key) = (area.to_owned(), key.to_owned());
        self.ask(|client, connection| {
            Box::pin(async move { client.get(connection, &area, &key).await })
        })
    }

    fn get_all(&self, area: &str, keys: &[String]) -> Result<Entries> {
        if keys.is_empty() {
            return Ok(Entries::new());
        }
        let (area, keys) = (area.to_owned(), keys.to_vec());
        self.ask(|client, connection| {
            Box::pin(async move { client.get_all(connection, &area, &keys).await })
        })
    }

    fn put_if(&self, area: &str, key: &str, old: Option<&str>, new: &str) -> Result<bool> {
        let put = Put {
            key: key.into(),
            old: old.map(str::to_owned),
            new: new.into(),
            secret: Secret::default(),
        };
        Ok(self.put_all(area, &[put])?[0])
    }

    fn put_all(&self, area: &str, puts: &[Put]) -> Result<Vec<bool>> {
        for Put { key, old, .. } in puts {
            self.shared.options.check_put(area, key, old.as_deref())?;
        }
        if puts.is_empty() {
            return Ok(Vec::new());
        }
        let (area, puts) = (area.to_owned(), puts.to_vec());
        self.ask(|client, connection| {
            Box::pin(async move { client.put_all(connection, &area, &puts).await })
        })
    }

    fn doubt(&self) -> Result<Option<Doubt>> {
        if !C::MAY_FORGET {
            return Ok(None);
        }
        self.ask(|client, connection| Box::pin(client.doubt(connection)))
    }

    fn writer(&self) -> Option<Writer> {
        self.shared.client.writer()
    }

    fn now(&self) -> Result<Option<UnixMillis>> {
        if !C::HAS_CLOCK {
            return Ok(None);
        }
        self.ask(|client, connection| Box::pin(client.now(connection)))
    }
}

impl<C: Client> fmt::Debug for Remote<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.shown()).finish()
    }
}

/// Closes idle connections gracefully: MySQL logs a warning if a client just disconnects.
impl<C: Client> Drop for Remote<C> {
    fn drop(&mut self) {
        let idle = std::mem::take(&mut *self.shared.idle());
        if !idle.is_empty() {
            let _ = self.background.run(GOODBYE, async {
                for connection in idle {
                    C::close(connection).await;
                }
            });
        }
    }
}
