//! Talking to PostgreSQL.

use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::postgres::{
    PgArguments, PgConnectOptions, PgConnection, PgDatabaseError, PgRow, Postgres as Driver,
};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _, query::Query};
use vesta_service::StoreError;

use super::statements::{INSERT_NODE, INSPECT, STATEMENTS, session};
use crate::OpenError;
use crate::sql::{
    Cells as _, Class, Dialect, Failure, ReadOnly, Shown, Statements, Value, options_of,
};

const EXAMPLE: &str = "postgres://user:password@host:5432/database";

const OPTIONS: [&str; 19] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
    "options[",
    "statement-cache-capacity",
];

/// A PostgreSQL database.
pub(super) struct Postgres {
    options: PgConnectOptions,
    shown: String,
}

impl Postgres {
    pub(super) fn new(url: &str) -> Result<Self, OpenError> {
        let options: PgConnectOptions = options_of(url, &OPTIONS, EXAMPLE)?;
        let host = options.get_host().trim_matches(['[', ']']).to_owned();
        let options = options.host(&host).disable_statement_logging();
        let options = match options.get_application_name() {
            Some(_) => options,
            None => options.application_name("vesta"),
        };
        let shown = Shown {
            user: options.get_username(),
            socket: options.get_socket().map(|path| path.as_path()),
            host: options.get_host(),
            port: options.get_port(),
            database: options.get_database(),
        };
        Ok(Self { shown: shown.to_string(), options })
    }
}

fn bound(statement: &'static str, values: &[Value]) -> Query<'static, Driver, PgArguments> {
    values.iter().fold(sqlx::query(statement), |query, value| match value {
        Value::Number(number) => query.bind(*number),
        Value::Flag(flag) => query.bind(*flag),
        Value::Text(text) => query.bind(text.as_str()),
        Value::Wide(number) => query.bind(number.to_be_bytes().to_vec()),
    })
}

impl Dialect for Postgres {
    const NAME: &'static str = "PostgreSQL";
    const STATEMENTS: Statements = STATEMENTS;

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

    async fn inspect(connection: &mut PgConnection) -> Result<bool, Failure> {
        let rows = Self::fetch(connection, INSPECT, &[]).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        if row.flag(0)? {
            let error = StoreError::unavailable("the server takes no changes", ReadOnly);
            return Err(error.into());
        }
        verdict(&row.text(1)?, &row.text(2)?).map(|()| false).map_err(Failure::Store)
    }

    fn flaw(kind: &str) -> Option<String> {
        (kind != "p").then(|| {
            "a table of Vesta's is unlogged or temporary, and loses changes in a crash; change it \
             with `ALTER TABLE … SET LOGGED`"
                .into()
        })
    }

    async fn execute(
        connection: &mut PgConnection,
        statement: &'static str,
        values: &[Value],
    ) -> Result<u64, sqlx::Error> {
        Ok(bound(statement, values).execute(connection).await?.rows_affected())
    }

    async fn fetch(
        connection: &mut PgConnection,
        statement: &'static str,
        values: &[Value],
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        if values.is_empty() {
            return sqlx::raw_sql(statement).fetch_all(connection).await; // one round trip less
        }
        bound(statement, values).fetch_all(connection).await
    }

    async fn insert_node(
        connection: &mut PgConnection,
        host: &str,
        port: &str,
    ) -> Result<i64, sqlx::Error> {
        let values = [Value::Text(host.into()), Value::Text(port.into())];
        bound(INSERT_NODE, &values).fetch_one(connection).await?.try_get(0)
    }

    fn class(error: &dyn DatabaseError) -> Class {
        match error.try_downcast_ref::<PgDatabaseError>() {
            Some(error) => class(error.code()),
            None => Class::Refused,
        }
    }

    fn said(error: &dyn DatabaseError) -> String {
        // As a whole it shows a line of the server's own source.
        format!("{}: {}", error.code().unwrap_or_default(), error.message())
    }
}

/// Whether the server keeps what it acknowledges.
fn verdict(fsync: &str, synchronous_commit: &str) -> Result<(), StoreError> {
    let setting = if fsync != "on" {
        "fsync"
    } else if !matches!(synchronous_commit, "on" | "remote_apply") {
        "synchronous_commit"
    } else {
        return Ok(());
    };
    Err(StoreError::permanent(format!(
        "the server may lose changes in a crash, which could repeat IDs; set {setting} = on there"
    )))
}

fn class(state: &str) -> Class {
    match state {
        // Not serializable; a deadlock; a lock wait that took too long; a table in change.
        "40001" | "40P01" | "55P03" | "55006" => Class::Contended,
        // A row; a table; the type of a table.
        "23505" | "42P07" | "42710" => Class::Exists,
        "25006" => Class::ReadOnly,
        // The user or the password; the database; a schema; no privilege.
        "28000" | "28P01" | "3D000" | "3F000" | "42501" => Class::Denied,
        // An index or a page that is damaged; the first of the class is any failure inside.
        "XX001" | "XX002" => Class::Refused,
        // The connection; an undone transaction; resources; an operator; the system around.
        _ if ["08", "40", "53", "57", "58", "XX"].iter().any(|class| state.starts_with(class)) => {
            Class::Unavailable
        }
        _ => Class::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_told_from_what_needs_a_person() {
        for (state, expected) in [
            ("40001", Class::Contended),
            ("40P01", Class::Contended),
            ("40003", Class::Unavailable),
            ("23505", Class::Exists),
            ("25006", Class::ReadOnly),
            ("28P01", Class::Denied),
            ("53300", Class::Unavailable),
            ("57P01", Class::Unavailable),
            ("57P03", Class::Unavailable),
            ("42P01", Class::Refused),
            ("XX001", Class::Refused),
        ] {
            assert_eq!(class(state), expected, "{state}");
        }
    }

    #[test]
    fn a_server_that_may_lose_changes_is_refused() {
        verdict("on", "on").unwrap();
        verdict("on", "remote_apply").unwrap();
        for (fsync, commit, advice) in
            [("off", "on", "set fsync = on"), ("on", "local", "set synchronous_commit = on")]
        {
            let error = verdict(fsync, commit).unwrap_err();
            assert!(error.is_permanent() && error.to_string().contains(advice), "{error}");
        }
    }
}
