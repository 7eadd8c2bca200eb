//! CosId in MySQL: the tables `cosid_machine` and `cosid`.

use sqlx::mysql::MySqlRow;
use vesta_service::lease::StoreError;

use super::{Entry, Machines, Source, is_within};
use crate::backends::mysql::Config;
pub(super) use crate::backends::mysql::Store;
use crate::backends::sql::Statement::{self, Rows};
use crate::backends::sql::{Cells as _, Dialect as _, Value, explain};

const MACHINES: Statement = Rows(
    "SELECT name, instance_id, CAST(machine_id AS CHAR), CAST(last_timestamp AS CHAR) \
     FROM cosid_machine WHERE namespace = ?",
);

const SEGMENTS: Statement = Rows("SELECT name, CAST(last_max_id AS CHAR) FROM cosid");

impl Source for Store {
    /// Rows are never deleted, so the highest one serves as the counter.
    fn machines(&self, namespace: &str) -> Result<Machines, StoreError> {
        let mut found = Machines::default();
        let rows = rows(
            self,
            "cosid_machine",
            MACHINES,
            vec![Value::Text(namespace.into())],
        )?;
        for [name, instance, machine, stamp] in rows {
            let place = format!("{name} of cosid_machine");
            if instance.is_empty() {
                found.given_back.push(Entry {
                    place,
                    key: machine,
                    value: stamp,
                });
            } else {
                let value = format!("{machine}|{stamp}");
                found.in_use.push(Entry {
                    place,
                    key: instance,
                    value,
                });
            }
        }
        Ok(found)
    }

    fn segments(&self, namespace: &str) -> Result<Vec<Entry>, StoreError> {
        let rows = rows(self, "cosid", SEGMENTS, Vec::new())?;
        let own = rows
            .into_iter()
            .filter(|[name, _]| is_within(namespace, name));
        let entry = |[name, value]: [String; 2]| Entry {
            place: format!("{name} of cosid"),
            key: name,
            value,
        };
        Ok(own.map(entry).collect())
    }
}

/// The rows of a statement on a table, as text.
fn rows<const N: usize>(
    store: &Store,
    table: &str,
    statement: Statement,
    values: Vec<Value>,
) -> Result<Vec<[String; N]>, StoreError> {
    let found = store.run(Config::STATEMENTS.find, vec![Value::Text(table.into())])?;
    if found.rows.is_empty() {
        return Err(StoreError::permanent(format!(
            "no table {table}; name the database that CosId uses"
        )));
    }
    let answer = store.run(statement, values)?;
    let row = |row: &MySqlRow| {
        let mut cells = [const { String::new() }; N];
        for (column, cell) in cells.iter_mut().enumerate() {
            *cell = row.text(column)?.unwrap_or_default();
        }
        Ok(cells)
    };
    answer
        .rows
        .iter()
        .map(row)
        .collect::<Result<_, _>>()
        .map_err(explain::<Config>)
}
