//! Records in MySQL or MariaDB.

mod dialect;
#[cfg(test)]
mod fuzz;
mod predecessor;
mod statements;

use std::sync::Arc;

use vesta_service::{LeaseStore, SegmentStore, Timing, WorkerNodeStore};

use crate::sql::{Client, Highest, SqlStore, delegate};
use crate::{OpenError, Options};
use dialect::MySql;

pub use predecessor::vesta_machine_ids;

pub(crate) const BUILT_IN: bool = true;

pub(crate) fn open(url: &str, options: &Options) -> Result<Arc<dyn LeaseStore>, OpenError> {
    Ok(Arc::new(MysqlStore::open(url, options)?))
}

pub(crate) fn open_segments(
    url: &str,
    options: &Options,
) -> Result<Arc<dyn SegmentStore>, OpenError> {
    Ok(Arc::new(MysqlStore::open(url, options)?))
}

pub(crate) fn open_worker_nodes(
    url: &str,
    options: &Options,
) -> Result<Arc<dyn WorkerNodeStore>, OpenError> {
    Ok(Arc::new(MysqlStore::open(url, options)?))
}

/// Records in a MySQL (8.0 or later) or MariaDB (10.2 or later) database.
///
/// Every change is one statement that commits by itself. The server has to sync each commit to its
/// disk: `innodb_flush_log_at_trx_commit = 1` is asked for. With a binary log that is not synced
/// (`log_bin = ON` and `sync_binlog` other than 1) a crash of the machine may undo commits: then
/// [`may_forget`](LeaseStore::may_forget) says so. A server that is read-only is waited for. A
/// fail-over to a copy that lags behind forgets changes without anybody's knowledge; raise the floor
/// of the namespaces after one.
///
/// The tables are made on first use. The user needs `SELECT`, `INSERT` and `UPDATE`, and to make the
/// tables `CREATE` and `REFERENCES`.
///
/// ```sql
/// CREATE TABLE IF NOT EXISTS vesta_namespace (
///   name        VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
///   uuid        BINARY(16)   NOT NULL,
///   fingerprint VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, -- the one layout
///   floor       BIGINT       NOT NULL CHECK (floor >= 0)
/// ) ENGINE = InnoDB;
///
/// CREATE TABLE IF NOT EXISTS vesta_record (                -- a row is never deleted
///   namespace   VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
///   machine     BIGINT       NOT NULL CHECK (machine >= 0),
///   epoch       BIGINT       NOT NULL CHECK (epoch >= 0),   -- claims so far
///   owner       BINARY(16)   NOT NULL,                      -- big-endian; zeros: nobody
///   bound       BIGINT       NOT NULL CHECK (bound >= 0),   -- first position not reserved
///   attempt     BIGINT       NOT NULL CHECK (attempt >= 0), -- of the request that wrote the row
///   released    BOOLEAN      NOT NULL,
///   host        VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, -- for people
///   pid         BIGINT       NOT NULL,                      -- for people
///   info_time   BIGINT       NOT NULL,                      -- for people: ms since 1970
///   PRIMARY KEY (namespace, machine),
///   FOREIGN KEY (namespace) REFERENCES vesta_namespace (name)
/// ) ENGINE = InnoDB;
///
/// CREATE TABLE IF NOT EXISTS WORKER_NODE (                 -- for machine IDs that are used once
///   ID          BIGINT      NOT NULL AUTO_INCREMENT COMMENT 'auto increment id',
///   HOST_NAME   VARCHAR(64) NOT NULL COMMENT 'host name',
///   PORT        VARCHAR(64) NOT NULL COMMENT 'port',        -- we write the process ID
///   TYPE        INT         NOT NULL COMMENT 'node type: CONTAINER(1), ACTUAL(2), FAKE(3)',
///   LAUNCH_DATE DATE        NOT NULL COMMENT 'launch date',
///   MODIFIED    TIMESTAMP   NOT NULL DEFAULT CURRENT_TIMESTAMP COMMENT 'modified time',
///   CREATED     TIMESTAMP   NOT NULL DEFAULT CURRENT_TIMESTAMP COMMENT 'created time',
///   PRIMARY KEY (ID)
/// ) ENGINE = InnoDB;
///
/// CREATE TABLE IF NOT EXISTS leaf_alloc (
///   biz_tag     VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
///   max_id      BIGINT       NOT NULL DEFAULT 1,
///   step        INT          NOT NULL,
///   description VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,
///   update_time TIMESTAMP    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
///   PRIMARY KEY (biz_tag)
/// ) ENGINE = InnoDB;
/// ```
/// Numbers have 63 bits; larger ones are refused. The last two tables are uid-generator's and
/// Leaf's, whose own are used unchanged.
pub struct MysqlStore(SqlStore<MySql>);

impl MysqlStore {
    /// Prepares for a database, such as `mysql://user:password@host:3306/database`; the options are
    /// `ssl-mode`, `ssl-ca`, `ssl-cert`, `ssl-key`, `socket`, `charset`, `collation`, `timezone` and
    /// `statement-cache-capacity`. It is connected to on first use.
    ///
    /// # Errors
    /// [`OpenError::Malformed`] for a URL that makes no sense or names no database.
    pub fn open(url: &str, options: &Options) -> Result<Self, OpenError> {
        Ok(Self(SqlStore::new(MySql::new(url)?, options)?))
    }
}

delegate!(MysqlStore);

/// The highest number in the table `WORKER_NODE` that uid-generator left in a database; `None` if it
/// has no row. For a namespace whose machine IDs must not meet those.
///
/// # Errors
/// [`OpenError`] if the database cannot be asked, or has no such table.
pub fn highest_worker_node(url: &str) -> Result<Option<u64>, OpenError> {
    let limit = Timing::NETWORK.request_timeout;
    Client::for_reading(MySql::new(url)?, limit)?.ask_once(Highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_it_is_and_never_the_password() {
        for (url, shown) in [
            ("mysql://vesta:hunter2@db:3307/ids", "MySQL vesta@db:3307/ids"),
            ("mariadb://vesta@db/ids?ssl-mode=DISABLED", "MySQL vesta@db:3306/ids"),
            ("mysql://vesta:hunter2@[::1]/ids", "MySQL vesta@[::1]:3306/ids"),
            ("mysql://v:a%40hunter2@h/i%64s?socket=/run/s", "MySQL v@/run/s/ids"),
        ] {
            let store = crate::open(url).unwrap();
            assert_eq!(store.describe(), shown);
            assert_eq!(format!("{store:?}"), format!("MysqlStore({shown:?})"));
            assert_eq!(store.timing(), Timing::NETWORK);
        }
    }

    #[test]
    fn a_url_that_makes_no_sense_is_refused() {
        for url in [
            "mysql:vesta.db",
            "mysql://vesta:hunter2@db",
            "mysql://vesta:hunter2@db:port/ids",
            "mysql://vesta:hunter2@db/ids?ssl-mode=perhaps",
            "mysql://vesta:hunter2@db/ids?sslmod=REQUIRED",
        ] {
            let Err(error @ OpenError::Malformed { .. }) = crate::open(url) else {
                panic!("{url}")
            };
            let said = error.to_string();
            assert!(said.contains("; write mysql://user:password@host:3306/database"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
