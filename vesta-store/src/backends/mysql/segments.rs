//! Tables of segment tags in MySQL and MariaDB. They are created by the `*.sql` files beside this
//! one.
//!
//! Each range is one statement, safe alongside those of the other systems: they too either add to the
//! number in the row, or change it only if it is still the one that they read.

use crate::backends::sql::Statement::{Change, Rows};
use crate::backends::sql::{SegmentColumns, SegmentStatements, Table};

pub(super) const LEAF: SegmentStatements = SegmentStatements {
    table: Table {
        name: "leaf_alloc",
        create: include_str!("leaf_alloc.sql"),
    },
    offset: 0,
    columns: SegmentColumns::LEAF,
    tags: Rows(
        "SELECT biz_tag, CAST(max_id AS CHAR), CAST(step AS CHAR), description, \
           CAST(FLOOR(UNIX_TIMESTAMP(update_time) * 1000) AS SIGNED), max_id, step, \
           CAST(1 AS SIGNED), CAST(0 AS SIGNED) FROM leaf_alloc ORDER BY biz_tag",
    ),
    take: Change(
        "UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + ?), \
           update_time = CURRENT_TIMESTAMP \
           WHERE biz_tag = ? AND max_id >= 0 AND max_id <= 9223372036854775807 - ?",
    ),
    give_back: Change(
        "UPDATE leaf_alloc SET max_id = ?, update_time = CURRENT_TIMESTAMP \
           WHERE biz_tag = ? AND max_id = ?",
    ),
    max_id: Rows("SELECT CAST(max_id AS SIGNED) FROM leaf_alloc WHERE biz_tag = ?"),
    tokens: None,
    create_tag: Change(
        "INSERT INTO leaf_alloc (biz_tag, max_id, step, description, update_time) \
             VALUES (?, ?, ?, NULLIF(?, ''), CURRENT_TIMESTAMP)",
    ),
};

/// Tinyid's table: `max_id` is the last number handed out. Its servers change a row only if `max_id` and
/// `version` are unchanged since they read them.
pub(super) const TINYID: SegmentStatements = SegmentStatements {
    table: Table {
        name: "tiny_id_info",
        create: include_str!("tiny_id_info.sql"),
    },
    offset: 1,
    columns: SegmentColumns {
        key: 63,
        plain_keys: true,
        fixed_step: None,
        description: false,
        stride: true,
    },
    tags: Rows(
        "SELECT biz_type, CAST(max_id AS CHAR), CAST(step AS CHAR), NULL, \
           CAST(FLOOR(UNIX_TIMESTAMP(update_time) * 1000) AS SIGNED), max_id, step, \
           CAST(delta AS SIGNED), CAST(remainder AS SIGNED) FROM tiny_id_info ORDER BY biz_type",
    ),
    take: Change(
        "UPDATE tiny_id_info SET max_id = LAST_INSERT_ID(max_id + ?), \
           update_time = CURRENT_TIMESTAMP, version = version + 1 \
           WHERE biz_type = ? AND max_id >= 0 AND max_id <= 9223372036854775806 - ? \
             AND delta = ? AND remainder = ?",
    ),
    give_back: Change(
        "UPDATE tiny_id_info SET max_id = ?, update_time = CURRENT_TIMESTAMP, version = version + 1 \
           WHERE biz_type = ? AND max_id = ?",
    ),
    max_id: Rows(
        "SELECT CAST(max_id AS SIGNED), CAST(delta AS SIGNED), CAST(remainder AS SIGNED) \
           FROM tiny_id_info WHERE biz_type = ?",
    ),
    tokens: Some(Rows(
        "SELECT CAST(token AS CHAR), CAST(biz_type AS CHAR) FROM tiny_id_token",
    )),
    create_tag: Change(
        "INSERT INTO tiny_id_info (biz_type, max_id, begin_id, step, delta, remainder, \
             create_time, update_time, version) \
             VALUES (?, ?, max_id, ?, ?, ?, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, 1)",
    ),
};

/// CosId's table: `last_max_id` is the last number handed out. Each of its servers has a step of its
/// own.
pub(super) const COSID: SegmentStatements = SegmentStatements {
    table: Table {
        name: "cosid",
        create: include_str!("cosid.sql"),
    },
    offset: 1,
    columns: SegmentColumns {
        key: 100,
        plain_keys: false,
        fixed_step: Some(100),
        description: false,
        stride: false,
    },
    tags: Rows(
        "SELECT name, CAST(last_max_id AS CHAR), '100', NULL, \
           CAST(last_fetch_time * 1000 AS SIGNED), last_max_id, CAST(100 AS SIGNED), \
           CAST(1 AS SIGNED), CAST(0 AS SIGNED) FROM cosid ORDER BY name",
    ),
    take: Change(
        "UPDATE cosid SET last_max_id = LAST_INSERT_ID(last_max_id + ?), \
           last_fetch_time = UNIX_TIMESTAMP() \
           WHERE name = ? AND last_max_id >= 0 AND last_max_id <= 9223372036854775806 - ?",
    ),
    give_back: Change(
        "UPDATE cosid SET last_max_id = ?, last_fetch_time = UNIX_TIMESTAMP() \
           WHERE name = ? AND last_max_id = ?",
    ),
    max_id: Rows("SELECT CAST(last_max_id AS SIGNED) FROM cosid WHERE name = ?"),
    tokens: None,
    create_tag: Change(
        "INSERT INTO cosid (name, last_max_id, last_fetch_time) VALUES (?, ?, UNIX_TIMESTAMP())",
    ),
};
