//! The table of segment tags: Leaf's `leaf_alloc`.

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use vesta_service::{NewSegmentTag, NextRange, SegmentStore, SegmentTag, StoreError, UnixMillis};

use super::errors::Failure;
use super::{Database, not_prepared};

const TABLE: &str = "
CREATE TABLE IF NOT EXISTS leaf_alloc (
  biz_tag     VARCHAR(128) NOT NULL DEFAULT '',
  max_id      BIGINT       NOT NULL DEFAULT 1,
  step        INT          NOT NULL,
  description VARCHAR(256) DEFAULT NULL,
  update_time TIMESTAMP    NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag)
)";

impl SegmentStore for Database {
    fn describe(&self) -> String {
        self.shown()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        self.ask(|connection| tags(connection, self.options.auto_init))
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        self.ask(|connection| next_range(connection, self.options.auto_init, key, step))
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        self.ask(|connection| create(connection, self.options.auto_init, tag))
    }
}

fn prepare(connection: &Connection, create: bool) -> Result<(), Failure> {
    if create {
        connection.execute(TABLE, [])?;
    } else if !connection.table_exists(None, "leaf_alloc")? {
        return Err(not_prepared("table leaf_alloc").into());
    }
    Ok(())
}

fn tags(connection: &Connection, create: bool) -> Result<Vec<SegmentTag>, Failure> {
    prepare(connection, create)?;
    let mut statement = connection.prepare(
        "SELECT biz_tag, max_id, step, description, unixepoch(update_time) FROM leaf_alloc \
         ORDER BY biz_tag",
    )?;
    let rows = statement.query_map([], |row| {
        let seconds: Option<i64> = row.get(4)?;
        Ok(SegmentTag {
            key: row.get(0)?,
            max_id: row.get(1)?,
            step: row.get(2)?,
            description: row.get(3)?,
            update_time: seconds.and_then(|s| u64::try_from(s).ok()).map(|s| UnixMillis(s * 1000)),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn next_range(
    connection: &mut Connection,
    create: bool,
    key: &str,
    step: u64,
) -> Result<NextRange, Failure> {
    prepare(connection, create)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let max_id: Option<i64> = transaction
        .query_row("SELECT max_id FROM leaf_alloc WHERE biz_tag = ?1", [key], |row| row.get(0))
        .optional()?;
    let Some(max_id) = max_id else { return Ok(NextRange::NoTag) };
    let start = u64::try_from(max_id).map_err(|_| {
        StoreError::permanent(format!("max_id of tag `{key}` is negative; correct the row"))
    })?;
    let Some(new) = i64::try_from(step).ok().and_then(|step| max_id.checked_add(step)) else {
        return Ok(NextRange::UsedUp);
    };
    transaction.execute(
        "UPDATE leaf_alloc SET max_id = ?2, update_time = CURRENT_TIMESTAMP WHERE biz_tag = ?1",
        params![key, new],
    )?;
    transaction.commit()?;
    Ok(NextRange::Numbers(start..start + step))
}

fn create(connection: &Connection, create: bool, tag: &NewSegmentTag) -> Result<bool, Failure> {
    prepare(connection, create)?;
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX); // checked when it was made
    let added = connection.execute(
        "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (biz_tag) DO NOTHING",
        params![tag.key(), signed(tag.first()), signed(tag.step()), tag.description()],
    )?;
    Ok(added == 1)
}
