//! Connections, time limits, and asking again.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Connection as _;
use vesta_service::StoreError;

use super::dialect::Dialect;
use super::errors::Failure;
use crate::OpenError;
use crate::runtime::Background;

/// How many connections are kept for the next requests.
const KEPT: usize = 2;
/// How often a statement is sent that others get in the way of.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(4);
/// How long to wait for the server to hear a goodbye.
const GOODBYE: Duration = Duration::from_millis(100);

/// Something to ask a database for.
pub(crate) trait Request<D: Dialect>: Send + Sync + 'static {
    type Answer: Send + 'static;

    /// May be carried out again after a failure that [`passes`](Failure::passes).
    fn carry_out(
        &self,
        connection: &mut D::Connection,
    ) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

/// A database, reached when it is first asked for something.
pub(crate) struct Client<D: Dialect> {
    background: Background,
    shared: Arc<Shared<D>>,
}

struct Shared<D: Dialect> {
    dialect: D,
    /// Whether acknowledged changes have to last.
    writes: bool,
    limit: Duration,
    idle: Mutex<Vec<D::Connection>>,
    may_forget: AtomicBool,
}

impl<D: Dialect> Client<D> {
    /// For changes, which have to last.
    pub(super) fn for_changes(dialect: D, limit: Duration) -> Result<Self, OpenError> {
        Self::start(dialect, true, limit)
    }

    /// For looking at what another system left, in whatever database it did.
    pub(crate) fn for_reading(dialect: D, limit: Duration) -> Result<Self, OpenError> {
        Self::start(dialect, false, limit)
    }

    fn start(dialect: D, writes: bool, limit: Duration) -> Result<Self, OpenError> {
        let background = Background::start().map_err(|error| OpenError::Store {
            store: describe(&dialect),
            source: StoreError::unavailable("no thread could be started for it", error),
        })?;
        let (idle, may_forget) = (Mutex::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { dialect, writes, limit, idle, may_forget });
        Ok(Self { background, shared })
    }

    pub(super) fn describe(&self) -> String {
        describe(&self.shared.dialect)
    }

    pub(super) fn limit(&self) -> Duration {
        self.shared.limit
    }

    /// As the server was set up when it was last connected to.
    pub(super) fn may_forget(&self) -> bool {
        // It guards no other data.
        self.shared.may_forget.load(Ordering::Relaxed)
    }

    /// Waits for the answer, but not longer than the limit; then the connection is given up.
    pub(super) fn ask<R: Request<D>>(&self, request: R) -> Result<R::Answer, StoreError> {
        let shared = self.shared.clone();
        let answer =
            self.background.run(shared.limit, async move { shared.carry_out(request).await });
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(failure)) => Err(failure.explain::<D>()),
            Err(late) => Err(StoreError::unavailable("the server is silent", late)),
        }
    }

    /// As [`ask`](Self::ask), for what is asked once.
    pub(crate) fn ask_once<R: Request<D>>(self, request: R) -> Result<R::Answer, OpenError> {
        self.ask(request)
            .map_err(|source| OpenError::Store { store: describe(&self.shared.dialect), source })
    }
}

fn describe<D: Dialect>(dialect: &D) -> String {
    format!("{} {}", D::NAME, dialect.shown())
}

impl<D: Dialect> Shared<D> {
    async fn carry_out<R: Request<D>>(&self, request: R) -> Result<R::Answer, Failure> {
        let mut connection = self.connected().await?;
        let mut tries = 1;
        loop {
            match request.carry_out(&mut connection).await {
                Err(failure) if failure.passes::<D>() && tries < TRIES => {
                    tokio::time::sleep(PAUSE * tries).await;
                    tries += 1;
                }
                Err(failure) if failure.breaks_connection() => return Err(failure),
                answer => {
                    self.keep(connection);
                    return answer;
                }
            }
        }
    }

    async fn connected(&self) -> Result<D::Connection, Failure> {
        let kept = self.idle().pop();
        if let Some(mut connection) = kept {
            // The server may have closed it, or the network forgotten it.
            let alive = tokio::time::timeout(self.limit / 4, connection.ping()).await;
            if matches!(alive, Ok(Ok(()))) {
                return Ok(connection);
            }
            self.idle().clear();
        }
        let mut connection = self.dialect.connect(self.limit).await?;
        if self.writes {
            let may_forget = D::inspect(&mut connection).await?;
            self.may_forget.store(may_forget, Ordering::Relaxed);
        }
        Ok(connection)
    }

    fn keep(&self, connection: D::Connection) {
        let mut idle = self.idle();
        if idle.len() < KEPT {
            idle.push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<D::Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says goodbye: MySQL writes a warning about whoever just goes away.
impl<D: Dialect> Drop for Client<D> {
    fn drop(&mut self) {
        let idle = std::mem::take(&mut *self.shared.idle());
        if !idle.is_empty() {
            let _ = self.background.run(GOODBYE, async {
                for connection in idle {
                    let _ = connection.close().await;
                }
            });
        }
    }
}
