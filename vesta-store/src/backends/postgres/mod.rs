//! PostgreSQL (13 or later).
//!
//! Every change is one message of the simple protocol, hence one transaction. It begins with the settings that it
//! relies on, above all `synchronous_commit = on` (or `remote_apply` if that is set). Nothing is prepared or kept in a
//! session, so a pooler may share sessions per transaction. A server with `fsync = off`, with replicas but no
//! `synchronous_standby_names`, or that was once promoted may forget changes:
//! [`doubt`](vesta_service::lease::KvStore::doubt) reports this. For tables without claims that keep a distance, a
//! server that does not sync commits is refused. A server in recovery is retried until it accepts changes.
//!
//! The tables (`*.sql` beside this file) are created on first use, in the first schema of the
//! `search_path`. The user needs `SELECT`, `INSERT` and `UPDATE` on them. Existing tables of
//! uid-generator and Leaf are used unchanged.

mod config;
mod errors;
mod kv;

use futures_util::TryStreamExt as _;
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnection, PgDatabaseError, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Either};
use vesta_service::lease::{Put, StoreError};

use super::sql::Statement::{Change, Rows};
use super::sql::{
    Answer, Cells as _, Class, Dialect, Look, SegmentStatements, Sql, Statement, Statements, Value,
    explain, read_only, unsaid,
};
use crate::SegmentTable;
use crate::remote::Remote;
pub(crate) use config::Config;
use kv::{GET_ALL, INSERT_ALL, INSPECT, REPLICATION, UPDATE_ALL, array, literal, whole};

pub(crate) type Store = Remote<Sql<Config>>;
pub(crate) type Segments = super::sql::Segments<Config>;

impl Dialect for Config {
    const NAME: &'static str = "PostgreSQL";
    const STATEMENTS: Statements = kv::STATEMENTS;

    fn segments(table: SegmentTable) -> Option<&'static SegmentStatements> {
        match table {
            SegmentTable::Leaf => Some(&kv::LEAF),
            SegmentTable::LeafLike { table, changed } => Some(kv::LEAF.of(table, changed)),
            _ => None,
        }
    }

    type Connection = PgConnection;
    type Row = PgRow;

    fn shown(&self) -> &str {
        &self.shown
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        self.options.connect().await
    }

    async fn look(&self, connection: &mut PgConnection, table: &str) -> Result<Look, StoreError> {
        let table = [Value::Text(table.into())];
        let found = self
            .run(connection, Rows(INSPECT), &table)
            .await
            .and_then(|answer| {
                let row = answer.first()?;
                let text = |column| Ok::<_, sqlx::Error>(row.text(column)?.unwrap_or_default());
                Ok(([text(0)?, text(1)?, text(2)?], [row.text(3)?, row.text(4)?]))
            });
        let ([in_recovery, fsync, commit], [subscription, server]) =
            found.map_err(explain::<Self>)?;
        if in_recovery != "false" {
            return Err(read_only("it is in recovery".into()));
        }
        let mut look = Look {
            undone: undone_in_a_crash(&fsync, &commit),
            source: subscription.map(|name| format!("another one by subscription \"{name}\"")),
            server,
            ..Look::default()
        };
        match self.run(connection, Rows(REPLICATION), &[]).await {
            Ok(answer) => {
                for row in answer.rows {
                    look.doubts.extend(row.text(0).map_err(explain::<Self>)?);
                    look.took_over |= row.number(1).map_err(explain::<Self>)? == Some(1);
                }
            }
            Err(error) => look.doubts = unsaid::<Self>(error)?,
        }
        Ok(look)
    }

    fn flaw(kind: &str) -> Option<String> {
        (kind != "p").then(|| {
            "a table of Vesta's is unlogged or temporary, and loses changes in a crash; change it \
             with `ALTER TABLE … SET LOGGED`"
                .into()
        })
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        statement: Statement,
        values: &[Value],
    ) -> Result<Answer<PgRow>, sqlx::Error> {
        let (Rows(text) | Change(text)) = statement;
        self.send(
            connection,
            text,
            &values.iter().map(literal).collect::<Vec<_>>(),
        )
        .await
    }

    async fn get_many(
        &self,
        connection: &mut PgConnection,
        area: &str,
        keys: &[String],
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let area = literal(&Value::Bytes(area.into()));
        let keys = array(keys.iter().map(String::as_str));
        Ok(self.send(connection, GET_ALL, &[area, keys]).await?.rows)
    }

    async fn put_many(
        &self,
        connection: &mut PgConnection,
        area: &str,
        puts: &[&Put],
    ) -> Result<Vec<String>, sqlx::Error> {
        let column = |value: fn(&Put) -> &str| array(puts.iter().map(|put| value(put)));
        let area = literal(&Value::Bytes(area.into()));
        let (keys, values) = (column(|put| &put.key), column(|put| &put.new));
        let answer = if puts.iter().all(|put| put.old.is_none()) {
            self.send(connection, INSERT_ALL, &[area, keys, values])
                .await?
        } else {
            let old = column(|put| put.old.as_deref().unwrap_or_default());
            self.send(connection, UPDATE_ALL, &[old, area, keys, values])
                .await?
        };
        answer.rows.iter().map(|row| row.bytes(0)).collect()
    }

    fn class(error: &dyn DatabaseError) -> Class {
        match error.try_downcast_ref::<PgDatabaseError>() {
            Some(error) => errors::class(error.code()),
            None => Class::Unavailable,
        }
    }

    fn said(error: &dyn DatabaseError) -> String {
        // Its full form shows a line of the server's source code.
        format!("{}: {}", error.code().unwrap_or_default(), error.message())
    }
}

impl Config {
    /// Sends a text with its values as one message, which is one transaction. Nothing is prepared: the
    /// next message may reach another session.
    async fn send(
        &self,
        connection: &mut PgConnection,
        text: &str,
        values: &[String],
    ) -> Result<Answer<PgRow>, sqlx::Error> {
        let whole = AssertSqlSafe(whole(text, values, self.limit)); // values are encoded as digits
        let mut answers = sqlx::raw_sql(whole).fetch_many(connection);
        let (mut rows, mut answer) = (Vec::new(), None);
        while let Some(part) = answers.try_next().await? {
            match part {
                Either::Right(row) => rows.push(row),
                // The last one counts.
                Either::Left(done) => {
                    answer = Some((std::mem::take(&mut rows), done.rows_affected()))
                }
            }
        }
        let (rows, changed) = answer.unwrap_or_default();
        Ok(Answer {
            rows,
            changed,
            number: None,
        })
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
    Some(format!(
        "commits reach its disk only later (set {setting} = on)"
    ))
}

#[cfg(test)]
mod tests;
