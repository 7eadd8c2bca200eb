//! MySQL (8.0 or later) and MariaDB (10.2 or later).
//!
//! Every change is one statement that commits by itself. A server may forget changes if it does not sync
//! each commit to its disk (`innodb_flush_log_at_trx_commit` other than 1), if its binary log is not
//! synced, or if it has, is or was an asynchronous replica:
//! [`doubt`](vesta_service::lease::KvStore::doubt) reports this. For tables without claims that keep a
//! distance, a server that does not sync commits is refused. A read-only server is retried until it
//! accepts changes.
//!
//! The tables (`*.sql` beside this file) are created on first use. The user needs `SELECT`, `INSERT`
//! and `UPDATE`, and `CREATE` to create the tables. Existing tables of uid-generator and Leaf are used
//! unchanged.

mod config;
mod errors;
mod kv;
mod replication;
mod segments;

use std::collections::BTreeMap;

use sqlx::error::DatabaseError;
use sqlx::mysql::{MySql as Driver, MySqlConnection, MySqlDatabaseError, MySqlRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _};
use vesta_service::lease::{Put, StoreError};

use super::sql::Statement::{Change, Rows};
use super::sql::{
    Answer, Cells as _, Class, Dialect, Look, SegmentStatements, Sql, Statement, Statements, Value,
    explain, read_only, unsaid,
};
use crate::foreign_owner::ForeignOwner;
use crate::options::Purpose;
use crate::remote::Remote;
use crate::{OpenError, Options, SegmentTable, StoreUrl};
pub(crate) use config::Config;
use kv::{CURRENT_READS, GALERA, INSPECT, session};
use replication::{Facts, undone_in_a_crash};

pub(crate) type Store = Remote<Sql<Config>>;
pub(crate) type Segments = super::sql::Segments<Config>;

/// Reads the machine IDs that the original Java Vesta handed out from the table
/// `DB_MACHINE_ID_PROVIDER` of a MySQL database. The table never records a release, so it does not
/// show which of them are still in use.
///
/// # Errors
/// [`OpenError`] if the database is unreachable, or has no such table.
pub(crate) fn vesta_machine_ids(url: &StoreUrl) -> Result<Vec<ForeignOwner>, OpenError> {
    let database = Store::open(url, &Options::default(), Purpose::Import)?;
    read_machine_ids(&database).map_err(|source| OpenError::Store {
        store: database.shown().into(),
        source,
    })
}

fn read_machine_ids(database: &Store) -> Result<Vec<ForeignOwner>, StoreError> {
    let table = database.run(kv::LEGACY_TABLE, Vec::new())?;
    let Some(table) = table.rows.first() else {
        return Err(StoreError::permanent(
            "no table DB_MACHINE_ID_PROVIDER; name the database that the Java Vesta used",
        ));
    };
    let in_use = match table.text(0).map_err(explain::<Config>)?.as_deref() {
        Some("DB_MACHINE_ID_PROVIDER") => kv::IN_USE[0],
        _ => kv::IN_USE[1],
    };
    let owner = |row: &MySqlRow| {
        let machine = row.number(0)?.and_then(|machine| machine.try_into().ok());
        let machine = machine.ok_or(sqlx::Error::RowNotFound)?;
        Ok(ForeignOwner {
            machine,
            host: row.text(1)?.unwrap_or_default(),
            last_used: None,
        })
    };
    let owners = database.run(in_use, Vec::new())?;
    owners
        .rows
        .iter()
        .map(owner)
        .collect::<Result<_, _>>()
        .map_err(explain::<Config>)
}

impl Dialect for Config {
    const NAME: &'static str = "MySQL";
    const STATEMENTS: Statements = kv::STATEMENTS;

    fn segments(table: SegmentTable) -> Option<&'static SegmentStatements> {
        match table {
            SegmentTable::Leaf => Some(&segments::LEAF),
            SegmentTable::LeafLike { table, changed } => Some(segments::LEAF.of(table, changed)),
            SegmentTable::Tinyid => Some(&segments::TINYID),
            SegmentTable::Cosid => Some(&segments::COSID),
            SegmentTable::Kv => None,
        }
    }

    type Connection = MySqlConnection;
    type Row = MySqlRow;

    fn shown(&self) -> &str {
        &self.shown
    }

    async fn connect(&self) -> Result<MySqlConnection, sqlx::Error> {
        let mut connection = self.options.connect().await?;
        let session = AssertSqlSafe(session(self.limit)); // the only variable part is a number
        sqlx::raw_sql(session).execute(&mut connection).await?;
        if !self
            .run(&mut connection, Rows(GALERA), &[])
            .await?
            .rows
            .is_empty()
        {
            self.run(&mut connection, Change(CURRENT_READS), &[])
                .await?;
        }
        Ok(connection)
    }

    async fn look(&self, connection: &mut MySqlConnection, _: &str) -> Result<Look, StoreError> {
        let answer = self
            .run(connection, Rows(INSPECT), &[])
            .await
            .map_err(explain::<Self>)?;
        let settings = answer
            .first()
            .and_then(|row| Ok((row.text(0)?, row.number(1)?)));
        let (read_only_by, flush) = settings.map_err(explain::<Self>)?;
        if let Some(setting) = read_only_by {
            return Err(read_only(setting));
        }
        let undone = undone_in_a_crash(flush.unwrap_or_default());
        let facts = match Facts::learn(connection).await {
            Ok(facts) => facts,
            Err(error) => {
                return Ok(Look {
                    undone,
                    doubts: unsaid::<Self>(error)?,
                    ..Look::default()
                });
            }
        };
        if let Some(error) = facts.out_of_step() {
            return Err(error);
        }
        let (source, unseen) = self.source(connection, &facts).await?;
        let (is_unsettled, source) = (source.is_none(), source.flatten());
        let (doubts, took_over) = (facts.doubts(), facts.was_replica());
        Ok(Look {
            undone,
            source,
            is_unsettled,
            doubts,
            took_over,
            server: facts.server(),
            unseen,
        })
    }

    fn flaw(kind: &str) -> Option<String> {
        let sound = kind.eq_ignore_ascii_case("InnoDB");
        (!sound).then(|| {
            format!(
                "a table of Vesta's is {kind}, which may lose changes; change it with `ALTER TABLE … \
                 ENGINE = InnoDB`"
            )
        })
    }

    async fn run(
        &self,
        connection: &mut MySqlConnection,
        statement: Statement,
        values: &[Value],
    ) -> Result<Answer<MySqlRow>, sqlx::Error> {
        let (Rows(text) | Change(text)) = statement;
        let query = values
            .iter()
            .fold(sqlx::query::<Driver>(text), |query, value| match value {
                Value::Number(number) => query.bind(*number),
                Value::Text(text) => query.bind(text.clone()),
                Value::Bytes(bytes) => query.bind(bytes.clone()),
            });
        let (mut rows, mut changed, mut number) = (Vec::new(), 0, None);
        match statement {
            // Saves one round trip.
            Rows(text) if values.is_empty() => {
                rows = sqlx::raw_sql(text).fetch_all(connection).await?;
            }
            Rows(_) => rows = query.fetch_all(connection).await?,
            Change(_) => {
                // The driver requests the number of rows found, whether or not their values changed.
                let done = query.execute(connection).await?;
                changed = done.rows_affected();
                // Larger numbers cannot come from a BIGINT; they are refused like negative ones.
                number = Some(i64::try_from(done.last_insert_id()).unwrap_or(-1));
            }
        }
        Ok(Answer {
            rows,
            changed,
            number,
        })
    }

    async fn get_many(
        &self,
        connection: &mut MySqlConnection,
        area: &str,
        keys: &[String],
    ) -> Result<Vec<MySqlRow>, sqlx::Error> {
        let mut query = sqlx::query::<Driver>(AssertSqlSafe(kv::get_all(keys.len())));
        query = query.bind(area.as_bytes().to_vec());
        for key in keys {
            query = query.bind(key.as_bytes().to_vec());
        }
        query.fetch_all(connection).await
    }

    async fn put_many(
        &self,
        connection: &mut MySqlConnection,
        area: &str,
        puts: &[&Put],
    ) -> Result<Vec<String>, sqlx::Error> {
        let (creates, count) = (puts.iter().all(|put| put.old.is_none()), puts.len());
        let text = if creates {
            kv::insert_all(count)
        } else {
            kv::update_all(count)
        };
        let mut query = sqlx::query::<Driver>(AssertSqlSafe(text)); // contains no value
        for Put { key, old, new, .. } in puts {
            query = query.bind(match old {
                None => area.as_bytes().to_vec(),
                Some(old) => old.as_bytes().to_vec(),
            });
            query = query
                .bind(key.as_bytes().to_vec())
                .bind(new.as_bytes().to_vec());
        }
        if !creates {
            query = query.bind(area.as_bytes().to_vec());
        }
        // The number of rows found. It does not show which rows existed before.
        let found = query.execute(&mut *connection).await?.rows_affected();
        if !creates && usize::try_from(found) == Ok(count) {
            return Ok(puts.iter().map(|put| put.key.clone()).collect());
        }
        // No two requests put the same value, so a row with our value was put by us.
        let keys: Vec<_> = puts.iter().map(|put| put.key.clone()).collect();
        let rows = self.get_many(connection, area, &keys).await?;
        let found = rows.iter().map(|row| Ok((row.bytes(0)?, row.bytes(1)?)));
        let found = found.collect::<Result<BTreeMap<_, _>, sqlx::Error>>()?;
        let done = puts
            .iter()
            .filter(|put| found.get(&put.key) == Some(&put.new));
        Ok(done.map(|put| put.key.clone()).collect())
    }

    fn class(error: &dyn DatabaseError) -> Class {
        match error.try_downcast_ref::<MySqlDatabaseError>() {
            Some(error) => errors::class(error.number(), error.code().unwrap_or_default()),
            None => Class::Unavailable,
        }
    }

    fn said(error: &dyn DatabaseError) -> String {
        error.to_string()
    }
}

#[cfg(test)]
mod tests;
