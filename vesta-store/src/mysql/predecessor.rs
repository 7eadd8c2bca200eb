//! Machine IDs that the Java Vesta handed out.

use vesta_service::{StoreError, Timing};

use super::dialect::MySql;
use crate::OpenError;
use crate::import::ForeignOwner;
use crate::sql::{Cells as _, Client, Dialect as _, Failure, Request};

/// Some made the table with the first name, others with the second; where names are told apart by
/// their case only one of them is there.
const IN_USE: [&str; 2] = [
    "SELECT CAST(ID AS SIGNED), CAST(IP AS CHAR) FROM DB_MACHINE_ID_PROVIDER \
     WHERE IP IS NOT NULL ORDER BY ID",
    "SELECT CAST(ID AS SIGNED), CAST(IP AS CHAR) FROM db_machine_id_provider \
     WHERE IP IS NOT NULL ORDER BY ID",
];

const NO_SUCH_TABLE: &str = "42S02";

/// The machine IDs that the original Java Vesta handed out from the table `DB_MACHINE_ID_PROVIDER`
/// of a MySQL database. It never takes one back, so nobody knows which of them are still in use.
///
/// # Errors
/// [`OpenError`] if the database cannot be asked, or has no such table.
pub fn vesta_machine_ids(url: &str) -> Result<Vec<ForeignOwner>, OpenError> {
    let limit = Timing::NETWORK.request_timeout;
    Client::for_reading(MySql::new(url)?, limit)?.ask_once(InUse)
}

struct InUse;

impl Request<MySql> for InUse {
    type Answer = Vec<ForeignOwner>;

    async fn carry_out(
        &self,
        connection: &mut <MySql as crate::sql::Dialect>::Connection,
    ) -> Result<Self::Answer, Failure> {
        for statement in IN_USE {
            let rows = match MySql::fetch(connection, statement, &[]).await {
                Err(sqlx::Error::Database(error))
                    if error.code().as_deref() == Some(NO_SUCH_TABLE) =>
                {
                    continue;
                }
                rows => rows?,
            };
            let predecessor = |row: &<MySql as crate::sql::Dialect>::Row| {
                Ok(ForeignOwner { machine: row.number(0)?, host: row.text(1)?, last_used: None })
            };
            return rows.iter().map(predecessor).collect();
        }
        Err(StoreError::permanent(
            "there is no table DB_MACHINE_ID_PROVIDER; name the database that the Java Vesta used",
        )
        .into())
    }
}
