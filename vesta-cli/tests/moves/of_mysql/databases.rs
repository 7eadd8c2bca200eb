//! Test databases.

use std::hash::{BuildHasher as _, RandomState};

use sqlx::mysql::MySqlConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use vesta_testkit::fleet::store_url;

/// A private database, removed at the end.
pub(crate) struct Database(String);

fn server() -> String {
    store_url("mysql")
}

fn run(url: &str, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let mut connection = MySqlConnection::connect(url)
            .await
            .expect("the test server answers");
        let done = sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await;
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
        connection.close().await.expect("it closes");
    });
}

impl Database {
    /// A database with the tables that these statements create.
    pub(crate) fn with(sql: &str) -> Self {
        let random = RandomState::new().hash_one(std::process::id());
        let database = Self(format!("vesta_moves_{random:016x}"));
        run(&server(), &format!("CREATE DATABASE {}", database.0));
        database.run(sql);
        database
    }

    pub(crate) fn url(&self) -> String {
        let server = server();
        let (place, options) = server.split_once('?').unwrap_or((&server, ""));
        let (place, _) = place.rsplit_once('/').expect("a URL with a database");
        format!("{place}/{}?{options}", self.0)
            .trim_end_matches('?')
            .to_owned()
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    pub(crate) fn run(&self, sql: &str) {
        run(&self.url(), sql);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        run(&server(), &format!("DROP DATABASE {}", self.0));
    }
}

/// Tinyid's tables, as its own script creates them, with these rows: type, largest ID, step, delta,
/// remainder.
pub(crate) fn tinyid(rows: &[(&str, i64, &str, i64, i64)]) -> Database {
    let mut sql = "CREATE TABLE tiny_id_info (id bigint(20) NOT NULL AUTO_INCREMENT, \
         biz_type varchar(63) NOT NULL DEFAULT '', begin_id bigint(20) NOT NULL DEFAULT '0', \
         max_id bigint(20) NOT NULL DEFAULT '0', step int(11) DEFAULT '0', \
         delta int(11) NOT NULL DEFAULT '1', remainder int(11) NOT NULL DEFAULT '0', \
         create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', \
         update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', \
         version bigint(20) NOT NULL DEFAULT '0', PRIMARY KEY (id), \
         UNIQUE KEY uniq_biz_type (biz_type)) ENGINE=InnoDB DEFAULT CHARSET=utf8; \
         CREATE TABLE tiny_id_token (id int(11) unsigned NOT NULL AUTO_INCREMENT, \
         token varchar(255) NOT NULL DEFAULT '', biz_type varchar(63) NOT NULL DEFAULT '', \
         remark varchar(255) NOT NULL DEFAULT '', \
         create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', \
         update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', PRIMARY KEY (id)) \
         ENGINE=InnoDB DEFAULT CHARSET=utf8;"
        .to_owned();
    for (biz_type, max_id, step, delta, remainder) in rows {
        sql += &format!(
            "INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder) \
             VALUES ('{biz_type}', {max_id}, {max_id}, {step}, {delta}, {remainder}); \
             INSERT INTO tiny_id_token (token, biz_type) VALUES ('{TOKEN}', '{biz_type}');"
        );
    }
    sql += &format!("INSERT INTO tiny_id_token (token, biz_type) VALUES ('{TOKEN}', 'missing')");
    Database::with(&sql)
}

/// A token that is valid for every type of such a database, and for an unknown type.
pub(crate) const TOKEN: &str = "0f673adf80504e2eaa552f5d791b644c";
