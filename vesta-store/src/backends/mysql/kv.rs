//! Statements of MySQL and MariaDB. The tables are created by the `*.sql` files beside this one.

use std::time::Duration;

use crate::backends::sql::Statement::{Change, Rows};
use crate::backends::sql::{Statement, Statements, Table};

pub(super) const STATEMENTS: Statements = Statements {
    find: Rows(
        "SELECT COALESCE(engine, table_type) FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND table_name = ?",
    ),
    table: Table {
        name: "vesta_kv",
        create: include_str!("vesta_kv.sql"),
    },
    list: Rows("SELECT name, value FROM vesta_kv WHERE area = ?"),
    get: Rows("SELECT value FROM vesta_kv WHERE area = ? AND name = ?"),
    insert: Change("INSERT INTO vesta_kv (area, name, value) VALUES (?, ?, ?)"),
    update: Change("UPDATE vesta_kv SET value = ? WHERE area = ? AND name = ? AND value = ?"),
    now: Rows(
        "SELECT CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000 AS SIGNED)",
    ),
    node_table: Table {
        name: "WORKER_NODE",
        create: include_str!("worker_node.sql"),
    },
    // 2 is `ACTUAL`: not a container.
    insert_node: Change(
        "INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) \
         VALUES (?, ?, 2, CURRENT_DATE, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)",
    ),
    highest_node: Rows("SELECT CAST(MAX(ID) AS SIGNED) FROM WORKER_NODE"),
};

/// Creates missing entries; takes `count` times area, name, value.
pub(super) fn insert_all(count: usize) -> String {
    format!(
        "INSERT INTO vesta_kv (area, name, value) VALUES {} \
         ON DUPLICATE KEY UPDATE value = vesta_kv.value",
        vec!["(?, ?, ?)"; count].join(", ")
    )
}

/// Takes `count` times old value, name, value; then the area. The join order goes from the few changes
/// to their rows, by key.
pub(super) fn update_all(count: usize) -> String {
    let first =
        "SELECT CAST(? AS BINARY) AS old, CAST(? AS BINARY) AS name, CAST(? AS BINARY) AS new";
    let more = " UNION ALL SELECT CAST(? AS BINARY), CAST(? AS BINARY), CAST(? AS BINARY)";
    format!(
        "UPDATE ({first}{}) AS put STRAIGHT_JOIN vesta_kv AS kv \
           ON kv.area = ? AND kv.name = put.name AND kv.value = put.old \
         SET kv.value = put.new",
        more.repeat(count - 1)
    )
}

/// Takes the area and `count` names.
pub(super) fn get_all(count: usize) -> String {
    let names = vec!["?"; count].join(", ");
    format!("SELECT name, value FROM vesta_kv WHERE area = ? AND name IN ({names})")
}

/// Session settings. Lock waits time out after the limit, in whole seconds.
pub(super) fn session(limit: Duration) -> String {
    let seconds = limit.as_millis().div_ceil(1000).clamp(1, 31_536_000);
    format!(
        "SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
         innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}"
    )
}

/// Returns a row if the server belongs to a Galera cluster.
pub(super) const GALERA: &str = "SHOW VARIABLES LIKE 'wsrep_sync_wait'";

/// A node then serves no read older than the other nodes' last change.
pub(super) const CURRENT_READS: &str = "SET SESSION wsrep_sync_wait = 15";

/// The setting that forbids changes, or null; newer servers have more than two values for it.
pub(super) const INSPECT: &str = "SELECT \
     CASE WHEN CONCAT(@@read_only) NOT IN ('0', 'OFF') THEN CONCAT('read_only = ', @@read_only) \
          WHEN CONCAT(@@innodb_read_only) NOT IN ('0', 'OFF') THEN 'innodb_read_only' END, \
     CAST(@@innodb_flush_log_at_trx_commit AS SIGNED)";

/// Replication facts that any user may read; each server has some of them.
pub(super) const REPLICATION: [&str; 2] = [
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_bin', 'sync_binlog', 'gtid_slave_pos', \
     'gtid_mode', 'gtid_executed', 'server_uuid', 'group_replication_group_name', \
     'group_replication_view_change_uuid', 'wsrep_on', 'server_id', 'hostname')",
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_connected', 'Slave_connections', \
     'Slaves_running', 'wsrep_cluster_status', 'wsrep_cluster_state_uuid', 'wsrep_local_state_comment', \
     'Rpl_semi_sync_master_status', 'Rpl_semi_sync_master_clients', \
     'Rpl_semi_sync_source_status', 'Rpl_semi_sync_source_clients')",
];

/// Returns a row for each server that this one replicates from, if the user may see it: in MariaDB, in
/// MySQL, in older MySQL.
pub(super) const SOURCES: [&str; 3] = [
    "SHOW ALL SLAVES STATUS",
    "SHOW REPLICA STATUS",
    "SHOW SLAVE STATUS",
];

/// The account of this user, quoted.
pub(super) const USER: &str = "SELECT CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')";

/// Connected replicas of a MySQL server, which has no counter for them; without `PROCESS` they are
/// not visible.
pub(super) const REPLICAS: &str = "SELECT 'replicas', CAST(COUNT(*) AS CHAR) \
       FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%' \
     UNION ALL SELECT 'sees_replicas', CAST(COUNT(*) AS CHAR) \
       FROM information_schema.user_privileges WHERE privilege_type = 'PROCESS' \
       AND grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')";

/// Name of the Java Vesta's table: upper case in some installations, lower case in others.
pub(super) const LEGACY_TABLE: Statement = Rows(
    "SELECT table_name FROM information_schema.tables \
     WHERE table_schema = DATABASE() AND LOWER(table_name) = 'db_machine_id_provider'",
);

/// Machine IDs of the Java Vesta, by table name.
pub(super) const IN_USE: [Statement; 2] = [
    Rows(
        "SELECT CAST(ID AS SIGNED), CAST(IP AS CHAR) FROM DB_MACHINE_ID_PROVIDER \
     WHERE IP IS NOT NULL ORDER BY ID",
    ),
    Rows(
        "SELECT CAST(ID AS SIGNED), CAST(IP AS CHAR) FROM db_machine_id_provider \
     WHERE IP IS NOT NULL ORDER BY ID",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_waits_are_in_whole_seconds() {
        let waits = |millis| session(Duration::from_millis(millis));
        assert!(waits(1).ends_with("innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"));
        assert!(waits(2001).ends_with("innodb_lock_wait_timeout = 3, lock_wait_timeout = 3"));
    }
}
