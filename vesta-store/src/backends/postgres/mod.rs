//! PostgreSQL (13 or later).
//!
//! Every change is one statement that commits by itself, with `synchronous_commit = on` in the
//! session (or `remote_apply` where that is set). A server with `fsync = off`, with replicas and no
//! `synchronous_standby_names`, or that was once promoted may forget changes:
//! [`doubt`](vesta_service::KvStore::doubt) says so. Tables that no claim keeps a distance from are
//! refused where commits are not synced. A server in recovery is waited for. A pooler in between has to
//! give each client a session of its own.
//!
//! The tables (`*.sql` beside this file) are made on first use, in the first schema of the
//! `search_path`. The user needs `SELECT`, `INSERT` and `UPDATE` on them. Those of uid-generator and
//! Leaf are used unchanged where they are there already.

mod config;
mod errors;
mod kv;

use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnection, PgDatabaseError, PgRow, Postgres as Driver};
use sqlx::{AssertSqlSafe, ConnectOptions as _};
use vesta_service::{Put, StoreError};

use super::sql::Statement::{Change, Rows};
use super::sql::{
    Answer, Cells as _, Class, Dialect, SegmentStatements, Sql, Statement, Statements, Value,
    explain, read_only, run,
};
use crate::SegmentTable;
use crate::remote::Remote;
pub(crate) use config::Config;
use kv::{INSERT_ALL, INSPECT, REPLICATION, UPDATE_ALL, session};

pub(crate) type Store = Remote<Sql<Config>>;
pub(crate) type Segments = super::sql::Segments<Config>;

impl Dialect for Config {
    const NAME: &'static str = "PostgreSQL";
    const STATEMENTS: Statements = kv::STATEMENTS;

    fn segments(table: SegmentTable) -> Option<&'static SegmentStatements> {
        (table == SegmentTable::Leaf).then_some(&kv::LEAF)
    }

    type Connection = PgConnection;
    type Row = PgRow;

    fn shown(&self) -> &str {
        &self.shown
    }

    async fn connect(&self, limit: Duration) -> Result<PgConnection, sqlx::Error> {
        let mut connection = self.options.connect().await?;
        let session = AssertSqlSafe(session(limit)); // a number is all that is not constant
        sqlx::raw_sql(session).execute(&mut connection).await?;
        Ok(connection)
    }

    async fn inspect(connection: &mut PgConnection) -> Result<Option<String>, StoreError> {
        let answer = run::<Self>(connection, Rows(INSPECT), &[]).await?;
        let settings = answer.first().and_then(|row| {
            let text = |column| Ok::<_, sqlx::Error>(row.text(column)?.unwrap_or_default());
            Ok((text(0)?, text(1)?, text(2)?))
        });
        let (in_recovery, fsync, synchronous_commit) = settings.map_err(explain::<Self>)?;
        if in_recovery != "false" {
            return Err(read_only("it is in recovery".into()));
        }
        Ok(undone_in_a_crash(&fsync, &synchronous_commit))
    }

    async fn doubts(connection: &mut PgConnection) -> Result<(Vec<String>, bool), StoreError> {
        let answer = run::<Self>(connection, Rows(REPLICATION), &[]).await?;
        let doubts = answer.rows.iter().map(|row| {
            let took_over = row.number(1)? == Some(1);
            Ok((row.text(0)?.unwrap_or_default(), took_over))
        });
        let doubts = doubts.collect::<Result<Vec<_>, _>>().map_err(explain::<Self>)?;
        let took_over = doubts.iter().any(|(_, took_over)| *took_over);
        Ok((doubts.into_iter().map(|(doubt, _)| doubt).collect(), took_over))
    }

    fn flaw(kind: &str) -> Option<String> {
        (kind != "p").then(|| {
            "a table of Vesta's is unlogged or temporary, and loses changes in a crash; change it \
             with `ALTER TABLE … SET LOGGED`"
                .into()
        })
    }

    async fn run(
        connection: &mut PgConnection,
        statement: Statement,
        values: &[Value],
    ) -> Result<Answer<PgRow>, sqlx::Error> {
        let (Rows(text) | Change(text)) = statement;
        let query = values.iter().fold(sqlx::query::<Driver>(text), |query, value| match value {
            Value::Number(number) => query.bind(*number),
            Value::Text(text) => query.bind(text.clone()),
            Value::Bytes(bytes) => query.bind(bytes.clone()),
        });
        let (mut rows, mut changed) = (Vec::new(), 0);
        match statement {
            // One round trip less.
            Rows(text) if values.is_empty() => {
                rows = sqlx::raw_sql(text).fetch_all(connection).await?;
            }
            Rows(_) => rows = query.fetch_all(connection).await?,
            Change(_) => changed = query.execute(connection).await?.rows_affected(),
        }
        Ok(Answer { rows, changed, number: None })
    }

    async fn put_many(
        connection: &mut PgConnection,
        area: &str,
        puts: &[&Put],
    ) -> Result<Vec<String>, sqlx::Error> {
        let column = |value: fn(&Put) -> &str| -> Vec<Vec<u8>> {
            puts.iter().map(|put| value(put).into()).collect()
        };
        let query = match puts.iter().all(|put| put.old.is_none()) {
            true => sqlx::query::<Driver>(INSERT_ALL),
            false => {
                sqlx::query(UPDATE_ALL).bind(column(|put| put.old.as_deref().unwrap_or_default()))
            }
        };
        // The old values come first, because only one of the two has them.
        let query = query.bind(area.as_bytes().to_vec());
        let query = query.bind(column(|put| &put.key)).bind(column(|put| &put.new));
        let rows = query.fetch_all(connection).await?;
        rows.iter().map(|row| row.bytes(0)).collect()
    }

    fn class(error: &dyn DatabaseError) -> Class {
        match error.try_downcast_ref::<PgDatabaseError>() {
            Some(error) => errors::class(error.code()),
            None => Class::Refused,
        }
    }

    fn said(error: &dyn DatabaseError) -> String {
        // As a whole it shows a line of the server's own source.
        format!("{}: {}", error.code().unwrap_or_default(), error.message())
    }
}

/// The setting by which a crash may undo commits.
fn undone_in_a_crash(fsync: &str, synchronous_commit: &str) -> Option<String> {
    let setting = if fsync != "on" {
        "fsync"
    } else if !matches!(synchronous_commit, "on" | "remote_apply") {
        "synchronous_commit"
    } else {
        return None;
    };
    Some(format!("commits are on its disk only later (set {setting} = on)"))
}

#[cfg(test)]
mod tests;
