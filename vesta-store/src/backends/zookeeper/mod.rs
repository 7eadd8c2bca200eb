//! ZooKeeper: sessions with an ensemble.

mod beside;
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
pub(crate) use beside::is_ours;
use config::{Config, DEFAULT_PATH};

/// Requested session timeout; the server may choose another.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) type Store = Remote<Zookeeper>;

/// Children of a znode: names and data.
pub(crate) type Children = Vec<(String, Vec<u8>, Stat)>;

/// Entries in ZooKeeper 3.5 or newer.
///
/// The URL is `zookeeper://host:port,host:port/path`: all servers of the ensemble (default port 2181)
/// and the root znode (default `/vesta`). With `zookeeper://user:password@host:port/path` the session
/// belongs to that user of the scheme `digest`, and only that user has access to the znodes that Vesta
/// creates; otherwise they are open to everyone. Special characters are written as `%40` and so on.
///
/// Each entry has one znode below that of its area, whose name has `:` in place of `/`:
///
/// ```text
/// /vesta/lease:orders/namespace  {"schema":1,…}
/// /vesta/lease:orders/17         {"schema":1,…}
/// /vesta/clock                   empty; written to read the leader's clock
/// ```
///
/// All are persistent, have no time to live and are never deleted. Any other znode is refused.
///
/// While a process holds machine ID 17, `/vesta/17` exists, too: another system that keeps worker IDs as
/// children of the same path sees by it that the number is taken, as Vesta sees that system's children.
///
/// An entry is changed by `setData` with the version read together with its old value. A quorum has
/// every change before it counts, unless the servers run with `forceSync=no`, which is not allowed. Each
/// read follows a `sync`. Nothing depends on the session: when it expires, the next request creates a
/// new one.
pub(crate) struct Zookeeper {
    config: Config,
}

/// A session with its own thread: when abandoned, the session stops completely, and above all never
/// sends a request that was still queued.
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

    /// Processes should not all begin with the same server. Without a random number they do.
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
        let failed = |error| StoreError::unavailable("cannot start a thread", error);
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
