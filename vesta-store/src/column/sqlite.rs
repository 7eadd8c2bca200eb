//! A column of an SQLite file.

use rusqlite::{Connection, OpenFlags};
use vesta_service::lease::StoreError;

use super::Column;
use crate::StoreUrl;

pub(super) fn read(
    url: &StoreUrl,
    column: &Column,
    each: &mut (dyn FnMut(Option<&str>) + Send),
) -> Result<(), StoreError> {
    let mut read = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&url.path, flags)?;
        let text = column.statement('"', "CAST(COLUMN AS TEXT)");
        let mut statement = connection.prepare(&text)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let value = row.get_ref(0)?.as_str_or_null();
            each(value.map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(
                    0,
                    rusqlite::types::Type::Text,
                    Box::new(error),
                )
            })?);
        }
        Ok(())
    };
    read().map_err(|error: rusqlite::Error| StoreError::permanent(error.to_string()))
}
