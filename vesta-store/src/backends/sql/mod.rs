//! MySQL, MariaDB and PostgreSQL, but for the texts of their statements, how a connection is made,
//! and what an error number means.
//!
//! Each statement commits by itself, so a connection never holds a transaction open, and what is
//! given up halfway leaves nothing behind.

mod config;
mod dialect;
mod errors;
mod kv;
mod segments;
mod worker_nodes;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Connection as _;
use vesta_service::{StoreError, Timing};

use crate::options::not_prepared;
use crate::runtime::Background;
use crate::{OpenError, Options, StoreUrl};
use errors::class;

pub(crate) use config::{Shown, options_of};
pub(crate) use dialect::{
    Answer, Cells, Dialect, SegmentStatements, Statement, Statements, Tables, Value,
};
pub(crate) use errors::{Class, Failure, ReadOnly};

/// The number of connections that are kept for the next requests.
const KEPT: usize = 2;
/// The number of times that a statement is sent if others get in its way.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(4);
/// The time that the server gets to hear a goodbye.
const GOODBYE: Duration = Duration::from_millis(100);
/// More than racing creators of a table can disturb each other.
const ROUNDS: u32 = 5;

/// A database, reached when it is first asked for something.
pub(crate) struct Sql<D: Dialect> {
    background: Background,
    shared: Arc<Shared<D>>,
}

struct Shared<D: Dialect> {
    dialect: D,
    /// Made if they are missing; `None` for what another system left, which is only read.
    tables: Option<&'static Tables>,
    options: Options,
    limit: Duration,
    idle: Mutex<Vec<D::Connection>>,
    may_forget: AtomicBool,
}

impl<D: Dialect> Sql<D> {
    /// A database for entries.
    pub(crate) fn entries(url: &StoreUrl, options: &Options) -> Result<Self, OpenError> {
        Self::start(url, Some(&D::STATEMENTS.table), options)
    }

    /// A database for worker nodes.
    pub(crate) fn nodes(url: &StoreUrl, options: &Options) -> Result<Self, OpenError> {
        Self::start(url, Some(&D::STATEMENTS.node_table), options)
    }

    /// A database for segment tags.
    pub(crate) fn segments(url: &StoreUrl, options: &Options) -> Result<Self, OpenError> {
        Self::start(url, Some(&D::STATEMENTS.segments.table), options)
    }

    /// A database that another system left something in, whatever it keeps in a crash.
    pub(crate) fn foreign(url: &StoreUrl) -> Result<Self, OpenError> {
        Self::start(url, None, &Options::default())
    }

    fn start(
        url: &StoreUrl,
        tables: Option<&'static Tables>,
        options: &Options,
    ) -> Result<Self, OpenError> {
        let dialect = D::try_from(url)?;
        let background = Background::start().map_err(|error| OpenError::Store {
            store: describe(&dialect),
            source: StoreError::unavailable("no thread could be started for it", error),
        })?;
        let limit = options.request_timeout.unwrap_or(Timing::NETWORK.request_timeout);
        let (idle, may_forget) = (Mutex::default(), AtomicBool::new(false));
        let options = options.clone();
        let shared = Arc::new(Shared { dialect, tables, options, limit, idle, may_forget });
        Ok(Self { background, shared })
    }

    fn shown(&self) -> String {
        describe(&self.shared.dialect)
    }

    /// Waits for the answer, but not longer than the limit; then the connection is given up.
    pub(crate) fn run(
        &self,
        statement: Statement,
        values: Vec<Value>,
    ) -> Result<Answer<D::Row>, Failure> {
        let (limit, shared) = (self.shared.limit, self.shared.clone());
        let request = async move { shared.run(statement, &values).await };
        self.background.run(limit, request).unwrap_or_else(|late| {
            Err(StoreError::unavailable("the server is silent", late).into())
        })
    }

    /// As [`run`](Self::run), with the error as what the caller can do.
    fn ask(&self, statement: Statement, values: Vec<Value>) -> Result<Answer<D::Row>, StoreError> {
        self.run(statement, values).map_err(Failure::explain::<D>)
    }

    /// True if the row was inserted; false if it was there already.
    fn inserted(&self, statement: Statement, values: Vec<Value>) -> Result<bool, StoreError> {
        match self.run(statement, values) {
            Err(failure) if failure.class::<D>() == Some(Class::Exists) => Ok(false),
            answer => Ok(answer.map_err(Failure::explain::<D>)?.changed > 0),
        }
    }

    /// The answer to something that is asked once.
    pub(crate) fn once<T>(
        &self,
        ask: impl FnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, OpenError> {
        ask(self).map_err(|failure| OpenError::Store {
            store: self.shown(),
            source: failure.explain::<D>(),
        })
    }
}

fn describe<D: Dialect>(dialect: &D) -> String {
    format!("{} {}", D::NAME, dialect.shown())
}

impl<D: Dialect> Shared<D> {
    async fn run(&self, statement: Statement, values: &[Value]) -> Result<Answer<D::Row>, Failure> {
        let mut connection = self.connected().await?;
        let mut tries = 1;
        loop {
            match D::run(&mut connection, statement, values).await {
                Err(error) if class::<D>(&error) == Some(Class::Contended) && tries < TRIES => {
                    tokio::time::sleep(PAUSE * tries).await;
                    tries += 1;
                }
                Err(error) => {
                    // A row that is there already says nothing against the connection.
                    if class::<D>(&error) == Some(Class::Exists) {
                        self.keep(connection);
                    }
                    return Err(error.into());
                }
                Ok(answer) => {
                    self.keep(connection);
                    return Ok(answer);
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
        if let Some(tables) = self.tables {
            let may_forget = D::inspect(&mut connection).await?;
            // It guards no other data.
            self.may_forget.store(may_forget, Ordering::Relaxed);
            self.prepare(&mut connection, tables).await?;
        }
        Ok(connection)
    }

    /// Makes a table that is missing, while others may be doing the same.
    async fn prepare(
        &self,
        connection: &mut D::Connection,
        tables: &Tables,
    ) -> Result<(), Failure> {
        for _ in 0..ROUNDS {
            let found = D::run(connection, Statement::Rows(tables.find), &[]).await?;
            if let Some(table) = found.rows.first() {
                let flaw = D::flaw(&table.text(0)?.unwrap_or_default());
                return flaw.map_or(Ok(()), |flaw| Err(StoreError::permanent(flaw).into()));
            }
            if !self.options.auto_init {
                return Err(not_prepared(tables.what).into());
            }
            match D::run(connection, Statement::Change(tables.create), &[]).await {
                // Another process made it after this statement had looked for it.
                Err(error) if class::<D>(&error) == Some(Class::Exists) => {}
                made => drop(made?),
            }
        }
        Err(errors::contended())
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

/// Without the password.
impl<D: Dialect> fmt::Debug for Sql<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sql").field(&self.shown()).finish()
    }
}

/// Says goodbye: MySQL writes a warning about a client that just goes away.
impl<D: Dialect> Drop for Sql<D> {
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

/// Compares the documented tables with those that are made.
#[cfg(test)]
pub(crate) fn check_documented(source: &str, tables: &[&str]) {
    let shown = source.split("//! ```sql\n").nth(1).unwrap();
    let shown = shown.split("//! ```\n").next().unwrap().replace("//!", "");
    let tight = |sql: &str| {
        let code = sql.lines().map(|line| line.split("-- ").next().unwrap());
        code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    };
    let made: String = tables.iter().map(|table| format!("{table};\n")).collect();
    assert_eq!(tight(&shown), tight(&made));
}
