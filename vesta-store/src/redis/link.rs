//! Connections, and the time that requests over them may take.

use std::fmt;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{
    Cmd, Connection, ConnectionAddr, ConnectionInfo, FromRedisValue, IntoConnectionInfo as _,
    RedisConnectionInfo, RedisError, RedisResult, Script as Hashed, ServerErrorKind,
};
use vesta_service::{Clock as _, StoreError, SystemClock};

use super::address::Address;
use super::errors::{self, Said};

/// A script with its hash, under which the server keeps it.
#[derive(Debug)]
pub(super) struct Script {
    text: &'static str,
    hashed: Hashed,
}

impl Script {
    pub(super) fn new(text: &'static str) -> Self {
        Self { text, hashed: Hashed::new(text) }
    }
}

/// A script from files, the first of which goes before all.
macro_rules! script {
    ($name:ident, $($file:literal),+) => {
        static $name: ::std::sync::LazyLock<$crate::redis::link::Script> =
            ::std::sync::LazyLock::new(|| {
                $crate::redis::link::Script::new(concat!(
                    include_str!("scripts/flaw.lua"),
                    $(include_str!($file)),+
                ))
            });
    };
}

pub(super) use script;

/// A connection in use, by a request that has to end in time.
pub(super) struct Link {
    connection: Connection,
    limit: Duration,
    /// On the monotonic clock.
    deadline: Duration,
    /// Whether it was made for this request.
    pub(super) is_new: bool,
}

/// A connection of which nobody knows what it is doing.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Link {
    /// How much time is left.
    pub(super) fn remaining(&self) -> Result<Duration, StoreError> {
        remaining(self.deadline).ok_or_else(|| errors::silent(self.limit))
    }

    fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<RedisResult<T>, StoreError> {
        let remaining = Some(self.remaining()?);
        let set = self.connection.set_read_timeout(remaining);
        let set = set.and_then(|()| self.connection.set_write_timeout(remaining));
        Ok(set.and_then(|()| command.query(&mut self.connection)))
    }

    pub(super) fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, StoreError> {
        let limit = self.limit;
        self.query(command)?.map_err(|error| errors::explain(error, limit))
    }

    /// `None` if the server answers that it does not want to.
    pub(super) fn ask_if_allowed<T: FromRedisValue>(
        &mut self,
        command: &Cmd,
    ) -> Result<Option<T>, StoreError> {
        match self.query(command)? {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.code().is_some() => Ok(None),
            Err(error) => Err(errors::explain(error, self.limit)),
        }
    }

    /// Runs a script; its text is sent only if the server does not know it.
    pub(super) fn run(
        &mut self,
        script: &Script,
        keys: &[&str],
        arguments: &[&str],
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let call = |how: &str, which: &str| {
            let mut call = redis::cmd(how);
            call.arg(which).arg(keys.len()).arg(keys).arg(arguments);
            call
        };
        match self.query(&call("EVALSHA", script.hashed.get_hash()))? {
            Err(error) if error.kind() == ServerErrorKind::NoScript.into() => {
                self.ask(&call("EVAL", script.text))
            }
            answer => answer.map_err(|error| errors::explain(error, self.limit)),
        }
    }

    fn log_in(&mut self, address: &Address) -> Result<(), StoreError> {
        if let Some(password) = &address.password {
            let mut login = redis::cmd("AUTH");
            login.arg(&address.user).arg(password);
            let limit = self.limit;
            self.query::<()>(&login)?.map_err(|error| errors::explain_login(error, limit))?;
        }
        if address.database != 0 {
            let select: Option<()> =
                self.ask_if_allowed(redis::cmd("SELECT").arg(address.database))?;
            select.ok_or_else(|| {
                StoreError::permanent(format!(
                    "Redis has no database {}, or this user may not use it; write another number \
                     into the URL",
                    address.database
                ))
            })?;
        }
        Ok(())
    }
}

fn remaining(deadline: Duration) -> Option<Duration> {
    deadline.checked_sub(SystemClock::new().monotonic()).filter(|left| !left.is_zero())
}

type Arriving = Receiver<RedisResult<Connection>>;

enum Idle {
    Connection(Connection),
    /// Nobody waits for it at the moment. Another one is not begun as long as this one may succeed,
    /// so that a name server that hangs does not use up threads.
    Arriving(Arriving),
}

/// The connections to one server: as many as there were requests at the same time.
pub(super) struct Pool {
    address: Address,
    limit: Duration,
    idle: Mutex<Vec<Idle>>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, limit, idle } = self;
        let idle = idle.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("Pool")
            .field("address", address)
            .field("limit", limit)
            .field("idle", &idle)
            .finish()
    }
}

impl Pool {
    pub(super) fn new(address: Address, limit: Duration) -> Self {
        Self { address, limit, idle: Mutex::default() }
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a request, whose time begins now. The connection is kept if it was answered. After an
    /// error none is: the others are to the same server, or to one that is no longer there.
    pub(super) fn ask<T>(
        &self,
        request: impl FnOnce(&mut Link) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let answer = self.take().and_then(|mut link| {
            let answer = request(&mut link)?;
            self.idle().push(Idle::Connection(link.connection));
            Ok(answer)
        });
        answer.inspect_err(|_| self.idle().retain(|idle| matches!(idle, Idle::Arriving(_))))
    }

    fn take(&self) -> Result<Link, StoreError> {
        let deadline = SystemClock::new().monotonic().saturating_add(self.limit);
        let link = |connection, is_new| Link { connection, limit: self.limit, deadline, is_new };
        let next = self.idle().pop();
        let arriving = match next {
            Some(Idle::Connection(connection)) => return Ok(link(connection, false)),
            Some(Idle::Arriving(arriving)) => Some(arriving),
            None => None,
        };
        let mut link = link(self.arrival(arriving, deadline)?, true);
        link.log_in(&self.address)?;
        Ok(link)
    }

    fn arrival(
        &self,
        arriving: Option<Arriving>,
        deadline: Duration,
    ) -> Result<Connection, StoreError> {
        let arriving = match arriving.map(|arriving| (arriving.try_recv(), arriving)) {
            Some((Ok(Ok(connection)), _)) => return Ok(connection),
            Some((Err(TryRecvError::Empty), arriving)) => arriving,
            // What failed some time ago says nothing about now.
            Some(_) | None => self.connect()?,
        };
        let left = remaining(deadline).unwrap_or_default();
        match arriving.recv_timeout(left) {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(errors::explain(error, self.limit)),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                self.idle().insert(0, Idle::Arriving(arriving));
                Err(errors::silent(self.limit))
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let panicked = Said("the client of Redis panicked".into());
                Err(StoreError::unavailable("no connection was made", panicked))
            }
        }
    }

    /// Begins to connect, in a thread: looking up a name has no time limit, and a name may have
    /// several addresses.
    fn connect(&self) -> Result<Arriving, StoreError> {
        let no_thread = |error| StoreError::unavailable("no thread for a connection", error);
        let info = self.connection_info().map_err(|error| errors::explain(error, self.limit))?;
        let limit = self.limit;
        let (sender, receiver) = mpsc::sync_channel(1);
        std::thread::Builder::new()
            .name("vesta-redis".into())
            .spawn(move || {
                let client = redis::Client::open(info);
                let connection = client.and_then(|c| c.get_connection_with_timeout(limit));
                let _ = sender.send(connection); // the store may be gone
            })
            .map_err(no_thread)?;
        Ok(receiver)
    }

    /// Without user, password and database: those are sent by [`Link::log_in`], which also passes on
    /// what the server says to them.
    fn connection_info(&self) -> Result<ConnectionInfo, RedisError> {
        if matches!(self.address.server, ConnectionAddr::TcpTls { .. }) {
            choose_cryptography();
        }
        let info = self.address.server.clone().into_connection_info()?;
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        let bare = RedisConnectionInfo::default().set_skip_set_lib_name();
        Ok(info.set_tcp_settings(tcp).set_redis_settings(bare))
    }
}

/// The client asks for what the process has chosen, and panics if nobody has.
fn choose_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that somebody was faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
