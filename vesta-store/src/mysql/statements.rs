//! The texts of MySQL and MariaDB. The tables are documented at [`MysqlStore`](super::MysqlStore).
//!
//! A value among the columns of a SELECT is cast, for MySQL would take it for a text; and sixteen
//! bytes are sent as hexadecimal digits, for it would take them for UTF-8.

use std::time::Duration;

use crate::sql::{SegmentStatements, Statements, Tables};

const NAMESPACE: &str = "
CREATE TABLE IF NOT EXISTS vesta_namespace (
  name        VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  uuid        BINARY(16)   NOT NULL,
  fingerprint VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  floor       BIGINT       NOT NULL CHECK (floor >= 0)
) ENGINE = InnoDB";

const RECORD: &str = "
CREATE TABLE IF NOT EXISTS vesta_record (
  namespace   VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  machine     BIGINT       NOT NULL CHECK (machine >= 0),
  epoch       BIGINT       NOT NULL CHECK (epoch >= 0),
  owner       BINARY(16)   NOT NULL,
  bound       BIGINT       NOT NULL CHECK (bound >= 0),
  attempt     BIGINT       NOT NULL CHECK (attempt >= 0),
  released    BOOLEAN      NOT NULL,
  host        VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  pid         BIGINT       NOT NULL,
  info_time   BIGINT       NOT NULL,
  PRIMARY KEY (namespace, machine),
  FOREIGN KEY (namespace) REFERENCES vesta_namespace (name)
) ENGINE = InnoDB";

const WORKER_NODE: &str = "
CREATE TABLE IF NOT EXISTS WORKER_NODE (
  ID          BIGINT      NOT NULL AUTO_INCREMENT COMMENT 'auto increment id',
  HOST_NAME   VARCHAR(64) NOT NULL COMMENT 'host name',
  PORT        VARCHAR(64) NOT NULL COMMENT 'port',
  TYPE        INT         NOT NULL COMMENT 'node type: CONTAINER(1), ACTUAL(2), FAKE(3)',
  LAUNCH_DATE DATE        NOT NULL COMMENT 'launch date',
  MODIFIED    TIMESTAMP   NOT NULL DEFAULT CURRENT_TIMESTAMP COMMENT 'modified time',
  CREATED     TIMESTAMP   NOT NULL DEFAULT CURRENT_TIMESTAMP COMMENT 'created time',
  PRIMARY KEY (ID)
) ENGINE = InnoDB";

const LEAF_ALLOC: &str = "
CREATE TABLE IF NOT EXISTS leaf_alloc (
  biz_tag     VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  max_id      BIGINT       NOT NULL DEFAULT 1,
  step        INT          NOT NULL,
  description VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,
  update_time TIMESTAMP    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag)
) ENGINE = InnoDB";

pub(super) const STATEMENTS: Statements = Statements {
    tables: Tables {
        what: "table vesta_namespace or vesta_record",
        find: "SELECT COALESCE(engine, table_type) FROM information_schema.tables \
               WHERE table_schema = DATABASE() \
               AND table_name IN ('vesta_namespace', 'vesta_record')",
        create: &[NAMESPACE, RECORD],
    },
    find_namespace: "SELECT uuid, fingerprint, floor FROM vesta_namespace WHERE name = ?",
    new_uuid: "SELECT UNHEX(REPLACE(UUID(), '-', ''))",
    insert_namespace: "INSERT INTO vesta_namespace (name, uuid, fingerprint, floor) \
                       VALUES (?, UNHEX(?), ?, 0)",
    raise_floor: "UPDATE vesta_namespace SET floor = GREATEST(floor, CAST(? AS SIGNED)) \
                  WHERE name = ?",
    list: "SELECT n.floor, r.machine, r.epoch, r.owner, r.bound, r.attempt, r.released, r.host, \
           r.pid, r.info_time \
           FROM vesta_namespace n LEFT JOIN vesta_record r ON r.namespace = n.name \
           WHERE n.name = ? ORDER BY r.machine",
    read: "SELECT n.floor, r.machine, r.epoch, r.owner, r.bound, r.attempt, r.released, r.host, \
           r.pid, r.info_time \
           FROM vesta_namespace n \
           LEFT JOIN vesta_record r ON r.namespace = n.name AND r.machine = ? WHERE n.name = ?",
    update: "UPDATE vesta_record SET epoch = ?, owner = UNHEX(?), bound = ?, attempt = ?, \
             released = ?, host = ?, pid = ?, info_time = ? \
             WHERE namespace = ? AND machine = ? AND epoch = ? AND owner = UNHEX(?) AND bound = ?",
    insert: "INSERT INTO vesta_record (namespace, machine, epoch, owner, bound, attempt, released, \
             host, pid, info_time) \
             SELECT name, CAST(? AS SIGNED), CAST(? AS SIGNED), UNHEX(?), CAST(? AS SIGNED), \
             CAST(? AS SIGNED), CAST(? AS SIGNED), CAST(? AS CHAR(255)), CAST(? AS SIGNED), \
             CAST(? AS SIGNED) \
             FROM vesta_namespace WHERE name = ? AND floor = ? LOCK IN SHARE MODE",
    now: "SELECT CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000 AS SIGNED)",
    node_table: Tables {
        what: "table WORKER_NODE",
        find: "SELECT COALESCE(engine, table_type) FROM information_schema.tables \
               WHERE table_schema = DATABASE() AND table_name = 'WORKER_NODE'",
        create: &[WORKER_NODE],
    },
    highest_node: "SELECT CAST(MAX(ID) AS SIGNED) FROM WORKER_NODE",
    segments: SegmentStatements {
        table: Tables {
            what: "table leaf_alloc",
            find: "SELECT COALESCE(engine, table_type) FROM information_schema.tables \
                   WHERE table_schema = DATABASE() AND table_name = 'leaf_alloc'",
            create: &[LEAF_ALLOC],
        },
        tags: "SELECT biz_tag, max_id, CAST(step AS SIGNED), description, \
               CAST(FLOOR(UNIX_TIMESTAMP(update_time) * 1000) AS SIGNED) \
               FROM leaf_alloc ORDER BY biz_tag",
        take: "UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + ?), \
               update_time = CURRENT_TIMESTAMP \
               WHERE biz_tag = ? AND max_id >= 0 AND max_id <= 9223372036854775807 - ?",
        taken: Some("SELECT CAST(LAST_INSERT_ID() AS SIGNED)"),
        max_id: "SELECT max_id FROM leaf_alloc WHERE biz_tag = ?",
        create: "INSERT INTO leaf_alloc (biz_tag, max_id, step, description, update_time) \
                 VALUES (?, ?, ?, NULLIF(?, ''), CURRENT_TIMESTAMP)",
    },
};

/// host, port; 2 is `ACTUAL`: not a container.
pub(super) const INSERT_NODE: &str = "INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) \
     VALUES (?, ?, 2, CURRENT_DATE, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)";

/// What a session needs. Its lock waits end after the limit, in whole seconds.
pub(super) fn session(limit: Duration) -> String {
    let seconds = limit.as_millis().div_ceil(1000).clamp(1, 31_536_000);
    format!(
        "SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
         innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}"
    )
}

/// Is there such a thing as a Galera cluster?
pub(super) const GALERA: &str = "SHOW VARIABLES LIKE 'wsrep_sync_wait'";

/// Its nodes show only what is not older than the others' last change.
pub(super) const CURRENT_READS: &str = "SET SESSION wsrep_sync_wait = 15";

/// Newer servers have more than two values for `read_only`.
pub(super) const INSPECT: &str = "SELECT CONCAT(@@read_only), CONCAT(@@innodb_read_only), \
     CAST(@@innodb_flush_log_at_trx_commit AS SIGNED), CAST(@@log_bin AS SIGNED), \
     CAST(@@sync_binlog AS SIGNED)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_waited_for_in_whole_seconds() {
        let waits = |millis| session(Duration::from_millis(millis));
        assert!(waits(1).ends_with("innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"));
        assert!(waits(2001).ends_with("innodb_lock_wait_timeout = 3, lock_wait_timeout = 3"));
    }

    #[test]
    fn the_tables_are_as_documented() {
        let shown = include_str!("../mysql.rs").split("/// ```sql\n").nth(1).unwrap();
        let shown = shown.split("/// ```\n").next().unwrap().replace("///", "");
        let tight = |sql: &str| {
            let code = sql.lines().map(|line| line.split("-- ").next().unwrap());
            code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
        };
        let made =
            [NAMESPACE, RECORD, WORKER_NODE, LEAF_ALLOC].map(|table| format!("{table};")).concat();
        assert_eq!(tight(&shown), tight(&made.replace(';', ";\n")));
    }
}
