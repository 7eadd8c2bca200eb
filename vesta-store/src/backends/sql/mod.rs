//! Common part of MySQL, MariaDB and PostgreSQL: everything except the text of statements,
//! connecting, and the meaning of error numbers.
//!
//! Each statement commits by itself, so a connection never holds a transaction open, and an
//! abandoned request leaves nothing behind.

mod config;
mod dialect;
mod errors;
mod kv;
mod segments;
mod worker_nodes;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Connection as _;
use vesta_service::lease::{StoreError, Timing, Writer};

use crate::options::{Purpose, not_prepared};
use crate::remote::{Client, Remote};
use crate::{OpenError, Options, StoreUrl};
use errors::class;

pub(crate) use config::{described, options_of};
pub(crate) use dialect::{
    Answer, Cells, Class, Dialect, Look, SegmentColumns, SegmentStatements, Statement, Statements,
    Table, Value,
};
pub(crate) use errors::{explain, read_only, unsaid};
pub(crate) use segments::Segments;

/// Maximum attempts of a statement that conflicts with others.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(4);
/// More often than racing creators of a table can disturb each other.
const ROUNDS: u32 = 5;

/// A database.
pub(crate) struct Sql<D> {
    dialect: D,
    /// Created if missing; `None` for data of a legacy system, which is only read.
    table: Option<&'static Table>,
    auto_init: bool,
    /// True if the first put creates the table, and connecting does not. A start that finds that the store
    /// has forgotten and gives up then leaves no empty table in the way of the old one.
    made_by_put: bool,
    /// True once the table has been seen. A table that disappears later is not created: the operator may
    /// rename it back, and an empty one in its place would repeat IDs.
    seen: AtomicBool,
    /// True if a server is refused when its settings let a crash undo changes.
    durable: bool,
    /// True if a server that replicates from another is doubted instead of refused.
    one_writer: bool,
    /// The server that was inspected last.
    writer: Mutex<Option<Writer>>,
}

impl<D: Dialect> Client for Sql<D> {
    const NAME: &'static str = D::NAME;

    type Connection = D::Connection;

    fn new(url: &StoreUrl, options: &Options, purpose: Purpose) -> Result<Self, OpenError> {
        let table = match purpose {
            Purpose::Leases | Purpose::Segments => Some(&D::STATEMENTS.table),
            Purpose::SegmentTable(table) => D::segments(table).map(|it| &it.table),
            Purpose::WorkerNodes => Some(&D::STATEMENTS.node_table),
            Purpose::Import => None,
        };
        // Claims of leases keep a distance from changes that may be undone; nothing else does.
        let durable = purpose != Purpose::Leases;
        let dialect = (url, options.limit(Timing::NETWORK)).try_into()?;
        let Options {
            auto_init,
            one_writer,
            ..
        } = *options;
        let (made_by_put, seen) = (purpose == Purpose::Leases, AtomicBool::default());
        Ok(Self {
            dialect,
            table,
            auto_init,
            made_by_put,
            seen,
            durable,
            one_writer,
            writer: Mutex::default(),
        })
    }

    fn shown(&self) -> &str {
        self.dialect.shown()
    }

    async fn connect(&self, _: usize, _: Duration) -> Result<D::Connection, StoreError> {
        let mut connection = self.dialect.connect().await.map_err(explain::<D>)?;
        if let Some(table) = self.table {
            let look = self.look(&mut connection).await?;
            if let Some(doubt) = look.undone.filter(|_| self.durable) {
                return Err(StoreError::permanent(format!(
                    "the server may lose changes, which could repeat IDs: {doubt}"
                )));
            }
            if !self.is_there(&mut connection, table).await? && !self.made_by_put {
                self.make(&mut connection, table).await?;
            }
        }
        Ok(connection)
    }

    async fn is_alive(&self, connection: &mut D::Connection) -> bool {
        connection.ping().await.is_ok()
    }

    /// Closes gracefully: MySQL logs a warning if a client just disconnects.
    async fn close(connection: D::Connection) {
        let _ = connection.close().await;
    }
}

impl<D: Dialect> Sql<D> {
    /// Inspects the server. Refuses one that also receives changes from another server: both would
    /// hand out the same values.
    async fn look(&self, connection: &mut D::Connection) -> Result<Look, StoreError> {
        let table = self.table.map_or("", |table| table.name);
        let look = self.dialect.look(connection, table).await?;
        let writer = look.server.clone().map(|server| Writer {
            server,
            unseen: look.unseen.clone().filter(|_| !self.one_writer),
        });
        *self.writer() = writer;
        match look.source.as_ref().filter(|_| !self.one_writer) {
            Some(source) => Err(StoreError::permanent(format!(
                "this server replicates from {source}: processes at the two servers would make the same \
                 IDs; use the primary, or set machine.store_trust = \"one_writer\" if only one of them is \
                 ever written at a time"
            ))),
            None => Ok(look),
        }
    }

    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a statement; an insert of an existing row changes nothing.
    async fn run(
        &self,
        connection: &mut D::Connection,
        statement: Statement,
        values: &[Value],
    ) -> Result<Answer<D::Row>, StoreError> {
        let mut tries = 1;
        loop {
            let error = match self.dialect.run(connection, statement, values).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if class::<D>(&error) == Some(Class::Exists) {
                return Ok(Answer {
                    rows: vec![],
                    changed: 0,
                    number: None,
                });
            }
            tokio::time::sleep(pause_before::<D>(error, &mut tries)?).await;
        }
    }

    /// True if a table exists. A missing one that may not be created is an error.
    async fn is_there(
        &self,
        connection: &mut D::Connection,
        table: &Table,
    ) -> Result<bool, StoreError> {
        let name = [Value::Text(table.name.into())];
        let found = self.run(connection, D::STATEMENTS.find, &name).await?;
        if let Some(row) = found.rows.first() {
            self.seen.store(true, Ordering::Relaxed); // no other data depends on it
            let kind = row.text(0).map_err(explain::<D>)?;
            let flaw = D::flaw(&kind.unwrap_or_default());
            return flaw.map_or(Ok(true), |flaw| Err(StoreError::permanent(flaw)));
        }
        if !self.auto_init {
            return Err(not_prepared(&format!("table {}", table.name)));
        }
        if self.seen.load(Ordering::Relaxed) {
            let gone = io::Error::other("restore it; a restart may create an empty one");
            return Err(StoreError::unavailable(
                format!("table {} is gone", table.name),
                gone,
            ));
        }
        Ok(false)
    }

    /// Creates a missing table, even if other processes are doing the same.
    async fn make(&self, connection: &mut D::Connection, table: &Table) -> Result<(), StoreError> {
        for _ in 0..ROUNDS {
            if self.is_there(connection, table).await? {
                return Ok(());
            }
            // Another process may have created it after this one's check.
            self.run(connection, Statement::Change(table.create), &[])
                .await?;
        }
        Err(errors::contended())
    }
}

impl<D: Dialect> Remote<Sql<D>> {
    pub(crate) fn run(
        &self,
        statement: Statement,
        values: Vec<Value>,
    ) -> Result<Answer<D::Row>, StoreError> {
        self.ask(move |client, connection| {
            Box::pin(async move { client.run(connection, statement, &values).await })
        })
    }
}

/// The pause before resending a statement that conflicted with others, or its error.
fn pause_before<D: Dialect>(error: sqlx::Error, tries: &mut u32) -> Result<Duration, StoreError> {
    match class::<D>(&error) {
        Some(Class::Contended) if *tries < TRIES => {
            *tries += 1;
            Ok(PAUSE * (*tries - 1))
        }
        _ => Err(explain::<D>(error)),
    }
}
