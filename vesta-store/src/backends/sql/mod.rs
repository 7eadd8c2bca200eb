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

use std::time::Duration;

use sqlx::Connection as _;
use vesta_service::StoreError;

use crate::options::{Purpose, not_prepared};
use crate::remote::{Client, Remote};
use crate::{OpenError, Options, StoreUrl};
use errors::class;

pub(crate) use config::{described, options_of};
pub(crate) use dialect::{
    Answer, Cells, Dialect, SegmentColumns, SegmentStatements, Statement, Statements, Table, Value,
};
pub(crate) use errors::{Class, explain, read_only};
pub(crate) use segments::Segments;

/// The number of times that a statement is sent if others get in its way.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(4);
/// More than racing creators of a table can disturb each other.
const ROUNDS: u32 = 5;

/// A database.
pub(crate) struct Sql<D> {
    dialect: D,
    /// Made if it is missing; `None` for what another system left, which is only read.
    table: Option<&'static Table>,
    auto_init: bool,
    /// True if a server whose settings let a crash undo changes is refused.
    durable: bool,
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
        // Claims of leases keep a distance from what may be undone; nothing else does.
        let (dialect, durable) = (url.try_into()?, purpose != Purpose::Leases);
        Ok(Self { dialect, table, auto_init: options.auto_init, durable })
    }

    fn shown(&self) -> &str {
        self.dialect.shown()
    }

    async fn connect(&self, _: usize, limit: Duration) -> Result<D::Connection, StoreError> {
        let mut connection = self.dialect.connect(limit).await.map_err(explain::<D>)?;
        if let Some(table) = self.table {
            if let Some(doubt) = D::inspect(&mut connection).await?.filter(|_| self.durable) {
                return Err(StoreError::permanent(format!(
                    "the server may lose changes, which could repeat IDs: {doubt}"
                )));
            }
            self.prepare(&mut connection, table).await?;
        }
        Ok(connection)
    }

    async fn is_alive(&self, connection: &mut D::Connection) -> bool {
        connection.ping().await.is_ok()
    }

    /// MySQL writes a warning about a client that just goes away.
    async fn close(connection: D::Connection) {
        let _ = connection.close().await;
    }
}

impl<D: Dialect> Sql<D> {
    /// Makes a table that is missing, while others may be doing the same.
    async fn prepare(
        &self,
        connection: &mut D::Connection,
        table: &Table,
    ) -> Result<(), StoreError> {
        for _ in 0..ROUNDS {
            let name = [Value::Text(table.name.into())];
            let found = run::<D>(connection, D::STATEMENTS.find, &name).await?;
            if let Some(row) = found.rows.first() {
                let kind = row.text(0).map_err(explain::<D>)?;
                let flaw = D::flaw(&kind.unwrap_or_default());
                return flaw.map_or(Ok(()), |flaw| Err(StoreError::permanent(flaw)));
            }
            if !self.auto_init {
                return Err(not_prepared(&format!("table {}", table.name)));
            }
            // Another process may have made it after this one had looked for it.
            run::<D>(connection, Statement::Change(table.create), &[]).await?;
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
        self.ask(move |_, connection| {
            Box::pin(async move { run::<D>(connection, statement, &values).await })
        })
    }
}

/// The answer to a statement; one that would insert what is there already changes nothing.
pub(crate) async fn run<D: Dialect>(
    connection: &mut D::Connection,
    statement: Statement,
    values: &[Value],
) -> Result<Answer<D::Row>, StoreError> {
    let mut tries = 1;
    loop {
        let error = match D::run(connection, statement, values).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if class::<D>(&error) == Some(Class::Exists) {
            return Ok(Answer { rows: vec![], changed: 0, number: None });
        }
        tokio::time::sleep(pause_before::<D>(error, &mut tries)?).await;
    }
}

/// The pause before a statement is sent again that others got in the way of, or its error.
fn pause_before<D: Dialect>(error: sqlx::Error, tries: &mut u32) -> Result<Duration, StoreError> {
    match class::<D>(&error) {
        Some(Class::Contended) if *tries < TRIES => {
            *tries += 1;
            Ok(PAUSE * (*tries - 1))
        }
        _ => Err(explain::<D>(error)),
    }
}
