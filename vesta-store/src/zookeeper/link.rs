//! A session with ZooKeeper and the thread that drives it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use vesta_service::StoreError;
use zookeeper_client::{Acls, Client, Error, SessionState};

use super::errors::Failure;
use super::target::Target;
use crate::runtime::{Background, NoAnswer};

/// So long after a process has gone its ephemeral znodes go; the server may insist on another time.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// What requests are made of. It is not connected again: after the first trouble there is a new one.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: Client,
    /// Of znodes that this session creates.
    pub(super) acls: Acls<'static>,
    /// The paths of the liveness znodes that this session has made.
    alive: Mutex<HashSet<String>>,
}

impl Session {
    /// Asks one server after the other, beginning with the one of this number. Each gets its share of
    /// the time: one that swallows packets must not use it up.
    async fn connect(target: &Target, first: usize, limit: Duration) -> Result<Self, Failure> {
        let count = target.hosts.len();
        let share = limit / u32::try_from(count).unwrap_or(u32::MAX);
        let mut connector =
            Client::connector().with_session_timeout(SESSION_TIMEOUT).with_fail_eagerly();
        let mut acls = Acls::anyone_all();
        if let Some(login) = &target.login {
            connector = connector.with_auth("digest", login.digest().as_bytes());
            acls = Acls::creator_all();
        }
        let mut failure = Error::NoHosts;
        for host in target.hosts.iter().cycle().skip(first % count).take(count) {
            match timeout(share, connector.clone().connect(host)).await {
                Ok(Ok(client)) => return Ok(Self { client, acls, alive: Mutex::default() }),
                Ok(Err(Error::AuthFailed)) => return Err(Error::AuthFailed.into()),
                Ok(Err(error)) => failure = error,
                Err(_) => failure = Error::Timeout,
            }
        }
        Err(failure.into())
    }

    pub(super) fn alive(&self) -> MutexGuard<'_, HashSet<String>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session with a thread of its own: when it is given up, nothing of it goes on, and above all no
/// request that waits in it is sent later.
#[derive(Debug)]
pub(super) struct Link {
    background: Background,
    pub(super) session: Arc<Session>,
}

impl Link {
    /// Connects to the server of this number, or to another.
    pub(super) fn connect(
        target: &Arc<Target>,
        first: usize,
        limit: Duration,
    ) -> Result<Result<Self, Failure>, NoAnswer> {
        let background = match Background::start() {
            Ok(background) => background,
            Err(error) => {
                return Ok(Err(StoreError::unavailable("no thread can be started", error).into()));
            }
        };
        let target = target.clone();
        let connecting = async move { Session::connect(&target, first, limit).await };
        let session = background.run(limit, connecting)?;
        Ok(session.map(|session| Self { background, session: Arc::new(session) }))
    }

    /// Whether the session is known to be all right.
    pub(super) fn is_connected(&self) -> bool {
        self.session.client.state() == SessionState::SyncConnected
    }

    pub(super) fn run<T: Send + 'static>(
        &self,
        limit: Duration,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, NoAnswer> {
        self.background.run(limit, request)
    }

    /// Ends the session, so that the server need not wait until it runs out.
    pub(super) fn close(self, limit: Duration) {
        let Self { background, session } = self;
        let mut states = session.client.state_watcher();
        let closed = async move {
            drop(session); // with the last client the session is closed
            let mut state = states.peek_state();
            while !state.is_terminated() {
                state = states.changed().await;
            }
        };
        let _ = background.run(limit, closed); // otherwise it runs out by itself
    }
}
