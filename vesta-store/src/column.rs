//! Reads a column of a foreign table row by row, for audits.

use vesta_service::lease::StoreError;

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod remote;
#[cfg(feature = "sqlite")]
mod sqlite;

use crate::{Kind, OpenError, StoreUrl};

/// A column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    /// The table, with its schema if needed: `shop.orders`.
    pub table: String,
    /// The column.
    pub column: String,
    /// The column that determines the order of the rows.
    pub order: String,
}

impl Column {
    /// The statement, with names in these quotes and the column as text.
    fn statement(&self, quote: char, as_text: &str) -> String {
        let quoted = |name: &str| {
            let name = name.replace(quote, &format!("{quote}{quote}"));
            format!("{quote}{name}{quote}")
        };
        let table = self
            .table
            .split('.')
            .map(quoted)
            .collect::<Vec<_>>()
            .join(".");
        // Qualified by the table's name: SQLite takes an unqualified unknown name for text.
        let column = |name: &str| format!("{table}.{}", quoted(name));
        let (ids, order) = (
            as_text.replace("COLUMN", &column(&self.column)),
            column(&self.order),
        );
        format!("SELECT {ids} FROM {table} ORDER BY {order}")
    }
}

/// Reads a column of a table in MySQL, PostgreSQL or SQLite, as text. Changes nothing, and holds only a
/// few rows in memory. `each` gets one value after another; `None` is a null.
///
/// # Errors
/// As [`open`](crate::open), and [`OpenError::Store`] if the database is unreachable or has no such
/// column.
pub fn read_column(
    url: &StoreUrl,
    column: &Column,
    each: &mut (dyn FnMut(Option<&str>) + Send),
) -> Result<(), OpenError> {
    let _ = (column, &each); // for builds without any backend
    let read: Result<(), StoreError> = match url.kind() {
        #[cfg(feature = "sqlite")]
        Kind::Sqlite => sqlite::read(url, column, each),
        #[cfg(feature = "mysql")]
        Kind::Mysql => remote::mysql(url, column, each)?,
        #[cfg(feature = "postgres")]
        Kind::Postgres => remote::postgres(url, column, each)?,
        other => {
            return Err(OpenError::no_table(
                other,
                "tables; an audit reads sqlite, mysql or postgres",
            ));
        }
    };
    read.map_err(|source| OpenError::Store {
        store: url.to_string(),
        source,
    })
}
