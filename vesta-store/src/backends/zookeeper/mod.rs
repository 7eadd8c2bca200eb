//! ZooKeeper: sessions with an ensemble.

mod config;
mod errors;
mod kv;

use std::time::Duration;

use vesta_service::lease::StoreError;
use zookeeper_client::{Client as Session, SessionState, Stat};

use crate::options::Purpose;
use crate::remote::runtime::Background;
use crate::remote::{Client, Remote};
use crate::{OpenError, Options, StoreUrl};
use config::{Config, DEFAULT_PATH};

/// The time for which a server keeps a session that is cut off; it may insist on another.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) type Store = Remote<Zookeeper>;

/// The znodes below one: their names, and what they hold.
pub(crate) type Children = Vec<(String, Vec<u8>, Stat)>;

/// Entries in ZooKeeper, version 3.5 or newer.
///
/// The URL is `zookeeper://host:port,host:port/path`: all servers of the ensemble (port 2181 if none is
/// given) and the znode below which everything lies (`/vesta` if none is given). With
/// `zookeeper://user:password@host:port/path` the session belongs to that user of the scheme `digest`,
/// and the znodes that Vesta creates are that user's alone; otherwise they are open to everybody.
/// Characters with a meaning in URLs are written as `%40` and so on.
///
/// There is one znode for each entry, below that of its area, whose name has `:` for `/`:
///
/// ```text
/// /vesta/lease:orders/namespace  {"schema":1,…}
/// /vesta/lease:orders/17         {"schema":1,…}
/// ```
///
/// All are persistent, have no time to live and are never deleted. One that is not so is refused.
///
/// An entry is changed by `setData` with the version that was read together with its old value. A
/// quorum has every change before it counts, unless the servers run with `forceSync=no`, which they
/// must not. Each read follows a `sync`. The session decides nothing: when it runs out, the next request
/// makes a new one.
pub(crate) struct Zookeeper {
    config: Config,
}

/// A session with a thread of its own: when it is given up, nothing of it goes on, and above all no
/// request that waits in it is sent later.
pub(crate) struct Connection {
    session: Session,
    _background: Background,
}

impl Client for Zookeeper {
    const NAME: &'static str = "ZooKeeper";

    type Connection = Connection;

    fn new(url: &StoreUrl, _: &Options, purpose: Purpose) -> Result<Self, OpenError> {
        let default_path = if purpose == Purpose::Import {
            ""
        } else {
            DEFAULT_PATH
        };
        Ok(Self {
            config: Config::new(url, default_path)?,
        })
    }

    fn shown(&self) -> &str {
        &self.config.shown
    }

    fn servers(&self) -> Vec<&str> {
        self.config.hosts.iter().map(String::as_str).collect()
    }

    /// Not all processes should begin with the same server. Without a random number they do.
    fn first_server(&self) -> usize {
        getrandom::u32()
            .ok()
            .and_then(|number| number.try_into().ok())
            .unwrap_or(0)
    }

    async fn is_alive(&self, Connection { session, .. }: &mut Connection) -> bool {
        session.state() == SessionState::SyncConnected && session.check_stat("/").await.is_ok()
    }

    async fn connect(&self, server: usize, _: Duration) -> Result<Connection, StoreError> {
        let failed = |error| StoreError::unavailable("no thread can be started", error);
        let background = Background::start().map_err(failed)?;
        let mut connector = Session::connector()
            .with_session_timeout(SESSION_TIMEOUT)
            .with_fail_eagerly();
        if let Some(digest) = &self.config.digest {
            connector = connector.with_auth("digest", digest.as_bytes());
        }
        let host = self.config.hosts[server].clone();
        let connecting = background.spawn(async move { connector.connect(&host).await });
        let session = connecting.await.expect("it does not panic");
        let session = session.map_err(|error| self.explain(error))?;
        Ok(Connection {
            session,
            _background: background,
        })
    }
}

impl Store {
    /// As [`Zookeeper::children`].
    pub(crate) fn children(&self, path: &str) -> Result<Option<Children>, StoreError> {
        let path = path.to_owned();
        self.ask(|client, Connection { session, .. }| {
            Box::pin(async move { client.children(session, &path).await })
        })
    }
}
