//! Statements of PostgreSQL. The tables are created by the `*.sql` files beside this one.

use std::time::Duration;

use crate::backends::sql::Statement::{Change, Rows};
use crate::backends::sql::{SegmentColumns, SegmentStatements, Statements, Table, Value};

pub(super) const STATEMENTS: Statements = Statements {
    find: Rows("SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass($1)"),
    table: Table {
        name: "vesta_kv",
        create: include_str!("vesta_kv.sql"),
    },
    list: Rows("SELECT name, value FROM vesta_kv WHERE area = $1"),
    get: Rows("SELECT value FROM vesta_kv WHERE area = $1 AND name = $2"),
    insert: Change(
        "INSERT INTO vesta_kv (area, name, value) VALUES ($1, $2, $3) \
         ON CONFLICT (area, name) DO NOTHING",
    ),
    update: Change("UPDATE vesta_kv SET value = $1 WHERE area = $2 AND name = $3 AND value = $4"),
    now: Rows("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"),
    node_table: Table {
        name: "worker_node",
        create: include_str!("worker_node.sql"),
    },
    // 2 is `ACTUAL`: not a container.
    insert_node: Rows(
        "INSERT INTO worker_node (host_name, port, type, launch_date, modified, created) \
         VALUES ($1, $2, 2, CURRENT_DATE, now(), now()) RETURNING id::bigint",
    ),
    highest_node: Rows("SELECT max(id)::bigint FROM worker_node"),
};

pub(super) const LEAF: SegmentStatements = SegmentStatements {
    table: Table {
        name: "leaf_alloc",
        create: include_str!("leaf_alloc.sql"),
    },
    offset: 0,
    columns: SegmentColumns::LEAF,
    tags: Rows(
        "SELECT biz_tag, max_id::text, step::text, description, \
           floor(extract(epoch FROM update_time) * 1000)::bigint, max_id, step, 1::bigint, 0::bigint \
           FROM leaf_alloc ORDER BY biz_tag",
    ),
    take: Rows(
        "UPDATE leaf_alloc SET max_id = max_id + $1::bigint, update_time = now() \
           WHERE biz_tag = $2 AND max_id >= 0 AND max_id <= 9223372036854775807 - $3::bigint \
           RETURNING max_id::bigint",
    ),
    give_back: Change(
        "UPDATE leaf_alloc SET max_id = $1::bigint, update_time = now() \
           WHERE biz_tag = $2 AND max_id = $3::bigint",
    ),
    max_id: Rows("SELECT max_id::bigint FROM leaf_alloc WHERE biz_tag = $1"),
    tokens: None,
    create_tag: Change(
        "INSERT INTO leaf_alloc (biz_tag, max_id, step, description, update_time) \
             VALUES ($1, $2, $3::bigint::int, NULLIF($4::varchar, ''), now())",
    ),
};

/// area, names → name, value
pub(super) const GET_ALL: &str =
    "SELECT name, value FROM vesta_kv WHERE area = $1::bytea AND name = ANY ($2)";

/// area, names, values → the names that did not exist
pub(super) const INSERT_ALL: &str = "INSERT INTO vesta_kv (area, name, value) \
     SELECT $1::bytea, it.name, it.new FROM unnest($2::bytea[], $3::bytea[]) AS it (name, new) \
       ORDER BY it.name \
     ON CONFLICT (area, name) DO NOTHING RETURNING name";

/// old values, area, names, values → the names that had their old values. The rows are locked in order
/// first.
pub(super) const UPDATE_ALL: &str = "WITH put AS MATERIALIZED (SELECT * FROM \
       unnest($1::bytea[], $3::bytea[], $4::bytea[]) AS it (old, name, new)), \
     held AS MATERIALIZED (SELECT kv.name FROM vesta_kv AS kv JOIN put ON put.name = kv.name \
       WHERE kv.area = $2 AND kv.value = put.old ORDER BY kv.name FOR UPDATE OF kv) \
     UPDATE vesta_kv AS kv SET value = put.new FROM put JOIN held ON held.name = put.name \
       WHERE kv.area = $2 AND kv.name = put.name AND kv.value = put.old RETURNING kv.name";

/// A text with its values, preceded by the settings of its own transaction: behind a pooler, the next
/// message may use another session. Lock waits time out after the limit. Notices about existing tables are
/// suppressed. One row precedes those of the text.
///
/// Statements have no timeout: a timeout while waiting for a standby would look like an
/// acknowledgement.
pub(super) fn whole(text: &str, values: &[String], limit: Duration) -> String {
    let millis = limit.as_millis().clamp(1, i32::MAX as u128);
    let mut whole = format!(
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; \
         SELECT set_config('synchronous_commit', \
         CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' \
         ELSE 'on' END, true), \
         set_config('client_min_messages', 'warning', true), \
         set_config('bytea_output', 'hex', true), \
         set_config('lock_timeout', '{millis}', true); "
    );
    let mut parts = text.split('$');
    whole += parts.next().unwrap_or_default();
    for part in parts {
        let (number, rest) = part.split_at(1);
        let number: usize = number.parse().expect("the number of a value");
        whole += &values[number - 1];
        whole += rest;
    }
    whole
}

/// A value inside a text, encoded as digits: independent of its contents and of the server's quoting
/// rules.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("'{number}'::bigint"),
        Value::Text(text) => {
            format!(
                "convert_from({}, 'UTF8')",
                literal(&Value::Bytes(text.as_bytes().into()))
            )
        }
        Value::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("decode('{digits}', 'hex')")
        }
    }
}

/// Many values inside a text.
pub(super) fn array<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let values: Vec<_> = values
        .map(|value| literal(&Value::Bytes(value.into())))
        .collect();
    format!("ARRAY[{}]::bytea[]", values.join(", "))
}

/// Doubts about a server, one per row, and whether it took over from another. Any user sees that replicas exist, if not
/// which; replicas of a publication have a slot of the database. After a promotion the timeline has a higher number,
/// with which log file names begin.
pub(super) const REPLICATION: &str = "SELECT doubt, took_over::bigint FROM (VALUES \
     (current_setting('full_page_writes') <> 'on', \
      'it may not recover from a crash (set full_page_writes = on)', 0), \
     (current_setting('synchronous_standby_names') = '' \
        AND (EXISTS (SELECT FROM pg_stat_replication) \
          OR EXISTS (SELECT FROM pg_replication_slots \
            WHERE slot_type = 'physical' OR database = current_database())), \
      'it has replicas that do not confirm changes, and a fail-over may lose some (set \
       synchronous_standby_names)', 0), \
     (left(pg_walfile_name(pg_current_wal_lsn()), 8) <> '00000001', \
      'it was promoted or restored once, and may lack what its predecessor had acknowledged', 1) \
     ) AS it (holds, doubt, took_over) WHERE holds";

/// name of a table → settings; the subscription that writes to the table, if any; the identity of the server, which its
/// physical replicas share
pub(super) const INSPECT: &str = "SELECT pg_is_in_recovery()::text, current_setting('fsync'), \
     current_setting('synchronous_commit'), \
     (SELECT min(subname)::text FROM pg_subscription_rel JOIN pg_subscription AS it ON it.oid = srsubid \
        WHERE srrelid = to_regclass($1)), \
     CASE WHEN has_function_privilege('pg_control_system()', 'EXECUTE') \
       THEN (SELECT system_identifier::text FROM pg_control_system()) END";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_as_digits_whatever_they_contain() {
        let values = [Value::Number(i64::MIN), Value::Text("'; \\ $1".into())];
        let whole = whole(
            "SELECT $2, $1",
            &values.each_ref().map(literal),
            Duration::ZERO,
        );
        let (settings, text) = whole.rsplit_once("; ").expect("settings");
        assert!(
            settings.ends_with("set_config('lock_timeout', '1', true)"),
            "{settings}"
        );
        let digits = "convert_from(decode('273b205c202431', 'hex'), 'UTF8')";
        assert_eq!(
            text,
            format!("SELECT {digits}, '-9223372036854775808'::bigint")
        );
        assert_eq!(
            array(["a", "b"].into_iter()),
            "ARRAY[decode('61', 'hex'), decode('62', 'hex')]::bytea[]"
        );
    }
}
