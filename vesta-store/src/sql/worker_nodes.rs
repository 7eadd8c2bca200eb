//! The table of processes whose machine ID is used once.

use vesta_service::StoreError;

use super::client::Request;
use super::dialect::{Cells as _, Dialect};
use super::errors::Failure;
use super::tables::prepare;

/// What fits into the column, as uid-generator made it.
pub(super) const HOST_CHARS: usize = 64;

pub(super) struct InsertNode {
    /// Otherwise a missing table is an error.
    pub(super) create: bool,
    pub(super) host: String,
    pub(super) port: String,
}

impl<D: Dialect> Request<D> for InsertNode {
    type Answer = u64;

    async fn carry_out(&self, connection: &mut D::Connection) -> Result<u64, Failure> {
        prepare::<D>(connection, &D::STATEMENTS.node_table, self.create).await?;
        let id = D::insert_node(connection, &self.host, &self.port).await?;
        let negative =
            |_| StoreError::permanent(format!("WORKER_NODE has the negative ID {id}")).into();
        u64::try_from(id).map_err(negative)
    }
}

/// The number that was given out last.
pub(crate) struct Highest;

impl<D: Dialect> Request<D> for Highest {
    type Answer = Option<u64>;

    async fn carry_out(&self, connection: &mut D::Connection) -> Result<Option<u64>, Failure> {
        let rows = D::fetch(connection, D::STATEMENTS.highest_node, &[]).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        if row.is_null(0)? { Ok(None) } else { row.number(0).map(Some) }
    }
}
