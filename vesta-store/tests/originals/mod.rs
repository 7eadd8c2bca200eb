//! Stand-ins for the servers of other systems: they send the same statements in the same kind of
//! transactions as the originals, and hand out the resulting numbers.

use std::ops::Range;

use sqlx::mysql::MySqlConnection;
use sqlx::{Connection as _, Row as _};

/// A system whose table Vesta shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Original {
    Leaf,
    Tinyid,
    Cosid,
}

/// The step of a CosId server, which is not in the table.
const COSID_STEP: u64 = 500;

/// One server of such a system.
pub(crate) struct Server {
    original: Original,
    runtime: tokio::runtime::Runtime,
    connection: MySqlConnection,
}

impl Server {
    pub(crate) fn start(original: Original, url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime");
        let connection = runtime
            .block_on(MySqlConnection::connect(url))
            .expect("it connects");
        Self {
            original,
            runtime,
            connection,
        }
    }

    /// The numbers that it hands out next. A conflict is retried, as by its callers.
    pub(crate) fn take(&mut self, tag: &str) -> Range<u64> {
        let Self {
            original,
            runtime,
            connection,
        } = self;
        runtime.block_on(async {
            loop {
                let taken = match original {
                    Original::Leaf => leaf(connection, tag).await,
                    Original::Tinyid => tinyid(connection, tag).await,
                    Original::Cosid => cosid(connection, tag).await,
                };
                match taken {
                    Ok(Some(numbers)) => return numbers,
                    Ok(None) => {}
                    // A deadlock or a lock wait timeout: the transaction was rolled back.
                    Err(sqlx::Error::Database(error))
                        if error.code().as_deref() == Some("40001") => {}
                    Err(error) => panic!("{original:?} on {tag}: {error}"),
                }
            }
        })
    }
}

/// Reads the row and changes it if unchanged, at READ COMMITTED, in up to three attempts.
async fn tinyid(
    connection: &mut MySqlConnection,
    biz_type: &str,
) -> Result<Option<Range<u64>>, sqlx::Error> {
    sqlx::raw_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        .execute(&mut *connection)
        .await?;
    let mut transaction = connection.begin().await?;
    for _ in 0..3 {
        let row = sqlx::query(
            "select id, biz_type, begin_id, max_id, step, delta, remainder, create_time, update_time, \
             version from tiny_id_info where biz_type = ?",
        )
        .bind(biz_type)
        .fetch_one(&mut *transaction)
        .await?;
        let [id, max_id, version]: [i64; 3] = [
            row.try_get("id")?,
            row.try_get("max_id")?,
            row.try_get("version")?,
        ];
        let new = max_id + i64::from(row.try_get::<i32, _>("step")?);
        let changed = sqlx::query(
            "update tiny_id_info set max_id= ?, update_time=now(), version=version+1 where id=? and \
             max_id=? and version=? and biz_type=?",
        )
        .bind(new)
        .bind(id)
        .bind(max_id)
        .bind(version)
        .bind(biz_type)
        .execute(&mut *transaction)
        .await?;
        if changed.rows_affected() == 1 {
            transaction.commit().await?;
            return Ok(Some(above(max_id, new)));
        }
    }
    transaction.rollback().await?;
    Ok(None)
}

/// Adds to the row, then reads it, in one transaction.
async fn cosid(
    connection: &mut MySqlConnection,
    name: &str,
) -> Result<Option<Range<u64>>, sqlx::Error> {
    let step = i64::try_from(COSID_STEP).expect("small");
    let mut transaction = connection.begin().await?;
    sqlx::query(
        "update cosid set last_max_id=(last_max_id + ?),last_fetch_time=unix_timestamp() where name = ?;",
    )
    .bind(step)
    .bind(name)
    .execute(&mut *transaction)
    .await?;
    let row = sqlx::query("select last_max_id from cosid where name = ?;").bind(name);
    let max: u64 = row.fetch_one(&mut *transaction).await?.try_get(0)?;
    transaction.commit().await?;
    Ok(Some(max - COSID_STEP + 1..max + 1))
}

/// Like CosId, but with the step of the row.
async fn leaf(
    connection: &mut MySqlConnection,
    tag: &str,
) -> Result<Option<Range<u64>>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::query("UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ?")
        .bind(tag)
        .execute(&mut *transaction)
        .await?;
    let row =
        sqlx::query("SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = ?").bind(tag);
    let row = row.fetch_one(&mut *transaction).await?;
    let (max_id, step) = (
        row.try_get::<i64, _>("max_id")?,
        row.try_get::<i32, _>("step")?,
    );
    transaction.commit().await?;
    let end = max_id.unsigned_abs();
    Ok(Some(end - u64::from(step.unsigned_abs())..end))
}

/// The numbers above `low`, up to and including `high`.
fn above(low: i64, high: i64) -> Range<u64> {
    low.unsigned_abs() + 1..high.unsigned_abs() + 1
}
