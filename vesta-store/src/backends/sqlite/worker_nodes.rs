//! Table of processes whose machine ID is used only once.

use rusqlite::{Connection, params};
use vesta_service::lease::{HostGuard, StoreError};
use vesta_service::options::WorkerNodeStore;

use super::errors::Failure;
use super::{Database, not_prepared};

/// `TYPE` of a process outside a container, as uid-generator writes it.
const ACTUAL: u8 = 2;

impl WorkerNodeStore for Database {
    fn describe(&self) -> String {
        self.shown.clone()
    }

    fn insert(&self, host: &str, pid: u32) -> Result<u64, StoreError> {
        loop {
            let number =
                self.ask(|connection| insert(connection, self.options.auto_init, host, pid))?;
            // Another user's or folder's table on this host may have handed it out.
            if let Some(guard) = HostGuard::take("worker_node", &number.to_string()) {
                std::mem::forget(guard); // the process holds the number until it exits
                return Ok(number);
            }
        }
    }

    fn highest(&self) -> Result<u64, StoreError> {
        let question = "SELECT COALESCE(MAX(ID), 0) FROM WORKER_NODE";
        self.ask(
            |connection| match connection.table_exists(None, "WORKER_NODE")? {
                false => Ok(0),
                true => number(connection.query_row(question, [], |row| row.get(0))?),
            },
        )
    }
}

fn insert(connection: &Connection, create: bool, host: &str, pid: u32) -> Result<u64, Failure> {
    if create {
        connection.execute(include_str!("worker_node.sql"), [])?;
    } else if !connection.table_exists(None, "WORKER_NODE")? {
        return Err(not_prepared("table WORKER_NODE").into());
    }
    connection.execute(
        "INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) \
         VALUES (?1, ?2, ?3, CURRENT_DATE, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)",
        params![host, pid.to_string(), ACTUAL],
    )?;
    number(connection.last_insert_rowid())
}

fn number(id: i64) -> Result<u64, Failure> {
    u64::try_from(id)
        .map_err(|_| StoreError::permanent(format!("WORKER_NODE has the negative ID {id}")).into())
}
