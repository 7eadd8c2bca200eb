//! Making tables that are missing, while others may be doing the same.

use vesta_service::StoreError;

use super::dialect::{Cells as _, Dialect, Tables};
use super::errors::{Class, Failure, class, contended, not_prepared};

/// More than the racing creators can disturb each other.
const ROUNDS: u32 = 5;

pub(super) async fn prepare<D: Dialect>(
    connection: &mut D::Connection,
    tables: &Tables,
    create: bool,
) -> Result<(), Failure> {
    for _ in 0..ROUNDS {
        let found = D::fetch(connection, tables.find, &[]).await?;
        for table in &found {
            if let Some(flaw) = D::flaw(&table.text(0)?) {
                return Err(StoreError::permanent(flaw).into());
            }
        }
        if found.len() == tables.create.len() {
            return Ok(());
        }
        if !create {
            return Err(not_prepared(tables.what));
        }
        for table in tables.create {
            match D::execute(connection, table, &[]).await {
                // Somebody else made it after this statement had looked whether it is there.
                Err(error) if class::<D>(&error) == Some(Class::Exists) => {}
                made => drop(made?),
            }
        }
    }
    Err(contended())
}
