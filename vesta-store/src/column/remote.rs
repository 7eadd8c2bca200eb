//! A column of a table on a database server.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use vesta_service::lease::StoreError;

use super::Column;
use crate::backends::sql::{Dialect, explain};
use crate::{OpenError, StoreUrl};

/// Timeout of the connection; reading rows has no timeout.
const CONNECT: Duration = Duration::from_secs(10);

/// Defines a reader for one kind of database: the drivers have no common type for a streaming
/// connection.
macro_rules! reader {
    ($name:ident, $config:ty, $quote:literal, $as_text:literal) => {
        pub(super) fn $name(
            url: &StoreUrl,
            column: &Column,
            each: &mut (dyn FnMut(Option<&str>) + Send),
        ) -> Result<Result<(), StoreError>, OpenError> {
            let config = <$config>::try_from((url, CONNECT))?;
            let text = column.statement($quote, $as_text);
            let read = async {
                let mut connection = config.connect().await?;
                let mut rows = sqlx::raw_sql(AssertSqlSafe(text)).fetch(&mut connection);
                while let Some(row) = rows.try_next().await? {
                    each(row.try_get::<Option<&str>, _>(0)?);
                }
                drop(rows);
                connection.close().await
            };
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = runtime.map_err(|error| StoreError::unavailable("no runtime", error));
            Ok(runtime.and_then(|runtime| runtime.block_on(read).map_err(explain::<$config>)))
        }
    };
}

#[cfg(feature = "mysql")]
reader!(
    mysql,
    crate::backends::mysql::Config,
    '`',
    "CAST(COLUMN AS CHAR)"
);
#[cfg(feature = "postgres")]
reader!(
    postgres,
    crate::backends::postgres::Config,
    '"',
    "COLUMN::text"
);
