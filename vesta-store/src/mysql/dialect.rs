//! Talking to MySQL and MariaDB.

use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::mysql::{
    MySql as Driver, MySqlArguments, MySqlConnectOptions, MySqlConnection, MySqlDatabaseError,
    MySqlRow,
};
use sqlx::{AssertSqlSafe, ConnectOptions as _, query::Query};
use vesta_service::StoreError;

use super::statements::{CURRENT_READS, GALERA, INSERT_NODE, INSPECT, STATEMENTS, session};
use crate::OpenError;
use crate::sql::{
    Cells as _, Class, Dialect, Failure, ReadOnly, Shown, Statements, Value, options_of,
};

const EXAMPLE: &str = "mysql://user:password@host:3306/database";

const OPTIONS: [&str; 14] = [
    "ssl-mode",
    "sslmode",
    "ssl-ca",
    "sslca",
    "ssl-cert",
    "sslcert",
    "ssl-key",
    "sslkey",
    "socket",
    "charset",
    "collation",
    "timezone",
    "time-zone",
    "statement-cache-capacity",
];

/// A MySQL or MariaDB database.
pub(super) struct MySql {
    options: MySqlConnectOptions,
    shown: String,
}

impl MySql {
    pub(super) fn new(url: &str) -> Result<Self, OpenError> {
        let options: MySqlConnectOptions = options_of(url, &OPTIONS, EXAMPLE)?;
        let host = options.get_host().trim_matches(['[', ']']).to_owned();
        let options = options.host(&host).disable_statement_logging();
        if options.get_database().is_none() {
            let reason = "the URL names no database".into();
            return Err(OpenError::Malformed { reason, example: EXAMPLE });
        }
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

fn bound(statement: &'static str, values: &[Value]) -> Query<'static, Driver, MySqlArguments> {
    values.iter().fold(sqlx::query(statement), |query, value| match value {
        Value::Number(number) => query.bind(*number),
        Value::Flag(flag) => query.bind(*flag),
        Value::Text(text) => query.bind(text.as_str()),
        Value::Wide(number) => query.bind(format!("{number:032x}")),
    })
}

impl Dialect for MySql {
    const NAME: &'static str = "MySQL";
    const STATEMENTS: Statements = STATEMENTS;

    type Connection = MySqlConnection;
    type Row = MySqlRow;

    fn shown(&self) -> &str {
        &self.shown
    }

    async fn connect(&self, limit: Duration) -> Result<MySqlConnection, sqlx::Error> {
        let mut connection = self.options.connect().await?;
        let session = AssertSqlSafe(session(limit)); // a number is all that is not constant
        sqlx::raw_sql(session).execute(&mut connection).await?;
        if !Self::fetch(&mut connection, GALERA, &[]).await?.is_empty() {
            Self::execute(&mut connection, CURRENT_READS, &[]).await?;
        }
        Ok(connection)
    }

    async fn inspect(connection: &mut MySqlConnection) -> Result<bool, Failure> {
        let rows = Self::fetch(connection, INSPECT, &[]).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let is_off = |text: String| text == "0" || text.eq_ignore_ascii_case("off");
        if !is_off(row.text(0)?) || !is_off(row.text(1)?) {
            let error = StoreError::unavailable("the server takes no changes", ReadOnly);
            return Err(error.into());
        }
        let (flush, log, sync) = (row.number(2)?, row.number(3)?, row.number(4)?);
        verdict(flush, log != 0, sync).map_err(Failure::Store)
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

    async fn execute(
        connection: &mut MySqlConnection,
        statement: &'static str,
        values: &[Value],
    ) -> Result<u64, sqlx::Error> {
        // The driver asks for the number of rows found, whether or not their values were new.
        Ok(bound(statement, values).execute(connection).await?.rows_affected())
    }

    async fn fetch(
        connection: &mut MySqlConnection,
        statement: &'static str,
        values: &[Value],
    ) -> Result<Vec<MySqlRow>, sqlx::Error> {
        if values.is_empty() {
            return sqlx::raw_sql(statement).fetch_all(connection).await; // one round trip less
        }
        bound(statement, values).fetch_all(connection).await
    }

    async fn insert_node(
        connection: &mut MySqlConnection,
        host: &str,
        port: &str,
    ) -> Result<i64, sqlx::Error> {
        let values = [Value::Text(host.into()), Value::Text(port.into())];
        let done = bound(INSERT_NODE, &values).execute(connection).await?;
        // A larger one is not from a BIGINT; it is refused with the negative ones.
        Ok(i64::try_from(done.last_insert_id()).unwrap_or(-1))
    }

    fn class(error: &dyn DatabaseError) -> Class {
        match error.try_downcast_ref::<MySqlDatabaseError>() {
            Some(error) => class(error.number(), error.code().unwrap_or_default()),
            None => Class::Refused,
        }
    }

    fn said(error: &dyn DatabaseError) -> String {
        error.to_string()
    }
}

/// Whether the server may forget a change in a crash.
fn verdict(flush: u64, binary_log: bool, sync_binary_log: u64) -> Result<bool, StoreError> {
    // 3 is MariaDB's, and syncs once more.
    if !matches!(flush, 1 | 3) {
        return Err(StoreError::permanent(format!(
            "the server may lose changes in a crash, which could repeat IDs; set \
             innodb_flush_log_at_trx_commit = 1 there (it is {flush})"
        )));
    }
    let may_forget = binary_log && sync_binary_log != 1;
    if may_forget {
        tracing::warn!(
            sync_binlog = sync_binary_log,
            "the database may lose changes in a crash of its machine, so machine IDs are claimed \
             ahead of the clock; set sync_binlog = 1 there"
        );
    }
    Ok(may_forget)
}

fn class(number: u16, state: &str) -> Class {
    match number {
        // A deadlock; a lock wait that took too long; a change since it was read; a conflict in a
        // cluster; another definition of the table.
        1213 | 1205 | 1020 | 3101 | 1412 | 1615 => Class::Contended,
        1050 | 1062 => Class::Exists,
        // Set on the server; on a transaction; in a mode; InnoDB.
        1290 | 1792 | 1836 | 1874 => Class::ReadOnly,
        // The user; the database; a host; a table, a column; not the privilege; an account that is
        // locked, or whose password has to be changed.
        1044 | 1045 | 1049 | 1130 | 1142 | 1143 | 1227 | 1251 | 1370 | 1396 | 1410 | 1524
        | 1698 | 1820 | 1862 | 3118 | 4151 => Class::Denied,
        // Too many connections, of the user, or transactions; too little memory, or disk.
        1040 | 1203 | 1226 | 1637 | 1037 | 1038 | 1041 | 1021 | 1114 | 1030 => Class::Unavailable,
        // Shutting down, or starting; the connection or the statement was ended; the host is blocked
        // after errors; not at the server's turn in a cluster; too late.
        1053
        | 1077
        | 1079
        | 1080
        | 1152
        | 1158..=1161
        | 1184
        | 1927
        | 1317
        | 1129
        | 1180
        | 1047
        | 3024
        | 1969
        | 3032
        | 3168
        | 3100 => Class::Unavailable,
        _ if state == "40001" => Class::Contended,
        _ if state.starts_with("08") || state == "70100" => Class::Unavailable,
        _ => Class::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_told_from_what_needs_a_person() {
        for (number, state, expected) in [
            (1213, "40001", Class::Contended),
            (1205, "HY000", Class::Contended),
            (1062, "23000", Class::Exists),
            (1290, "HY000", Class::ReadOnly),
            (1045, "28000", Class::Denied),
            (1040, "08004", Class::Unavailable),
            (1053, "08S01", Class::Unavailable),
            (1146, "42S02", Class::Refused),
            (1406, "22001", Class::Refused),
            (65000, "08S01", Class::Unavailable),
        ] {
            assert_eq!(class(number, state), expected, "{number}");
        }
    }

    #[test]
    fn a_server_that_may_lose_changes_is_refused_or_distrusted() {
        assert!(!verdict(1, false, 0).unwrap());
        assert!(!verdict(3, true, 1).unwrap());
        assert!(verdict(1, true, 0).unwrap());
        assert!(verdict(1, true, 100).unwrap());
        for flush in [0, 2] {
            let error = verdict(flush, false, 1).unwrap_err();
            let said = error.to_string();
            assert!(error.is_permanent() && said.contains("innodb_flush_log_at_trx_commit = 1"));
        }
    }
}
