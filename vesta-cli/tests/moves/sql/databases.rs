//! Databases of one test, as an ordinary user has them.

use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::ValueRef;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};
use tokio::runtime::Runtime;
use vesta_testkit::fleet::store_url;

/// A row of texts, in the database's notation.
pub(crate) type Row = Vec<Option<String>>;

pub(crate) struct Database {
    kind: Kind,
    runtime: Runtime,
}

enum Kind {
    Mysql {
        user: MySqlConnection,
        administrator: MySqlConnection,
        name: String,
    },
    Postgres {
        user: PgConnection,
        schema: String,
    },
    Sqlite(rusqlite::Connection),
}

/// MySQL 8's defaults, where MariaDB's differ; the zone of a session is never UTC here.
const AS_MYSQL: &str = "SET SESSION time_zone = '+08:00', group_concat_max_len = 1024, sql_mode = \
    'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
     NO_ENGINE_SUBSTITUTION'";

/// A name unique to this test.
pub(super) fn own() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!(
        "vesta_sql_{}_{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

fn runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime")
}

impl Database {
    /// A MySQL database whose user has every right in it and no others, with the binary log on.
    pub(crate) fn of_mysql() -> Self {
        let runtime = runtime();
        let options: MySqlConnectOptions = store_url("mysql").parse().expect("a URL");
        let name = own();
        let prepare = format!(
            "CREATE DATABASE {name}; CREATE USER {name}@'%' IDENTIFIED BY 'ordinary'; \
             GRANT ALL ON {name}.* TO {name}@'%'"
        );
        let (user, administrator) = runtime.block_on(async {
            let mut administrator = options.connect().await.expect("the test server answers");
            let prepared = sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut administrator);
            prepared.await.expect("a database and a user");
            let ordinary = options
                .clone()
                .username(&name)
                .password("ordinary")
                .database(&name);
            let mut user = ordinary.connect().await.expect("the user is there");
            sqlx::raw_sql(AS_MYSQL)
                .execute(&mut user)
                .await
                .expect("settings");
            (user, administrator)
        });
        Self {
            kind: Kind::Mysql {
                user,
                administrator,
                name,
            },
            runtime,
        }
    }

    pub(crate) fn of_postgres() -> Self {
        let runtime = runtime();
        let options: PgConnectOptions = store_url("postgres").parse().expect("a URL");
        let schema = own();
        let user = runtime
            .block_on(options.connect())
            .expect("the test server answers");
        let mut database = Self {
            kind: Kind::Postgres {
                user,
                schema: schema.clone(),
            },
            runtime,
        };
        database.rows(&format!(
            "CREATE SCHEMA {schema}; SET search_path TO {schema}"
        ));
        database.rows("SET TIME ZONE 'Asia/Shanghai'");
        database
    }

    pub(crate) fn of_sqlite() -> Self {
        let connection = rusqlite::Connection::open_in_memory().expect("memory");
        Self {
            kind: Kind::Sqlite(connection),
            runtime: runtime(),
        }
    }

    /// The name of the database or schema.
    pub(crate) fn name(&self) -> &str {
        match &self.kind {
            Kind::Mysql { name, .. } | Kind::Postgres { schema: name, .. } => name,
            Kind::Sqlite(_) => "main",
        }
    }

    /// Its name for `--dialect`.
    pub(crate) fn dialect(&self) -> &'static str {
        match self.kind {
            Kind::Mysql { .. } => "mysql",
            Kind::Postgres { .. } => "postgres",
            Kind::Sqlite(_) => "sqlite",
        }
    }

    /// The rows of statements; panics if one fails.
    #[track_caller]
    pub(crate) fn rows(&mut self, sql: &str) -> Vec<Row> {
        self.ask(sql)
            .unwrap_or_else(|error| panic!("{}: {error}\n{sql}", self.dialect()))
    }

    /// The rows of statements, or the error.
    pub(crate) fn ask(&mut self, sql: &str) -> Result<Vec<Row>, String> {
        let failed = |error: sqlx::Error| error.to_string();
        match &mut self.kind {
            Kind::Mysql { user, .. } => {
                let work = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).fetch_all(user);
                let rows = self.runtime.block_on(work).map_err(failed)?;
                Ok(rows
                    .iter()
                    .map(|row| (0..row.len()).map(|i| row.get_unchecked(i)).collect())
                    .collect())
            }
            Kind::Postgres { user, .. } => {
                let work = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).fetch_all(user);
                let rows = self.runtime.block_on(work).map_err(failed)?;
                Ok(rows
                    .iter()
                    .map(|row| (0..row.len()).map(|i| row.get_unchecked(i)).collect())
                    .collect())
            }
            Kind::Sqlite(connection) => in_sqlite(connection, sql).map_err(|it| it.to_string()),
        }
    }
}

/// Carries out statements, and returns the rows of the last one.
fn in_sqlite(connection: &rusqlite::Connection, sql: &str) -> rusqlite::Result<Vec<Row>> {
    let mut batch = rusqlite::Batch::new(connection, sql);
    let mut found = Vec::new();
    while let Some(mut statement) = batch.next()? {
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        found.clear();
        while let Some(row) = rows.next()? {
            let cell = |i| match row.get_ref(i)? {
                ValueRef::Null => Ok(None),
                ValueRef::Integer(number) => Ok(Some(number.to_string())),
                ValueRef::Text(text) => Ok(Some(String::from_utf8_lossy(text).into_owned())),
                other => Ok(Some(format!("{other:?}"))),
            };
            found.push((0..columns).map(cell).collect::<rusqlite::Result<Row>>()?);
        }
    }
    Ok(found)
}

impl Drop for Database {
    fn drop(&mut self) {
        match &mut self.kind {
            Kind::Mysql {
                administrator,
                name,
                ..
            } => {
                let sql = format!("DROP DATABASE {name}; DROP USER {name}@'%'");
                let _ = self
                    .runtime
                    .block_on(sqlx::raw_sql(AssertSqlSafe(sql)).execute(administrator));
            }
            Kind::Postgres { user, schema } => {
                let sql = format!("DROP SCHEMA {schema} CASCADE");
                let _ = self
                    .runtime
                    .block_on(sqlx::raw_sql(AssertSqlSafe(sql)).execute(user));
            }
            Kind::Sqlite(_) => {}
        }
    }
}
