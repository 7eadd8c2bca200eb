//! The tables, and whether a database has them. Their shape is documented at
//! [`SqliteStore`](super::SqliteStore).

use rusqlite::{Connection, MAIN_DB};
use vesta_service::StoreError;

use super::errors::Failure;

/// "VSTA"
const APPLICATION: i32 = 0x5653_5441;
const VERSION: i32 = 1;

const TABLES: &str = "
BEGIN;
CREATE TABLE vesta_namespace (
  name        TEXT    NOT NULL PRIMARY KEY,
  uuid        BLOB    NOT NULL CHECK (length(uuid) = 16),
  fingerprint TEXT    NOT NULL,
  floor       INTEGER NOT NULL CHECK (floor >= 0)
) STRICT, WITHOUT ROWID;
CREATE TABLE vesta_record (
  namespace   TEXT    NOT NULL REFERENCES vesta_namespace (name),
  machine     INTEGER NOT NULL CHECK (machine >= 0),
  epoch       INTEGER NOT NULL CHECK (epoch >= 0),
  owner       BLOB    NOT NULL CHECK (length(owner) = 16),
  bound       INTEGER NOT NULL CHECK (bound >= 0),
  attempt     INTEGER NOT NULL CHECK (attempt >= 0),
  released    INTEGER NOT NULL CHECK (released IN (0, 1)),
  host        TEXT    NOT NULL,
  pid         INTEGER NOT NULL CHECK (pid >= 0),
  info_time   INTEGER NOT NULL CHECK (info_time >= 0),
  PRIMARY KEY (namespace, machine)
) STRICT, WITHOUT ROWID;
";

/// Makes the tables in an empty database.
pub(super) fn create(connection: &Connection) -> Result<(), Failure> {
    make_durable(connection)?;
    connection.execute_batch(&format!(
        "{TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
    ))?;
    Ok(())
}

/// Refuses what is not a sound, writable database of this version of Vesta.
pub(super) fn check(connection: &Connection) -> Result<(), Failure> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let flaw = if number("page_count")? == 0 {
        "the database is empty, so nobody knows which machine IDs are taken; restore it, or delete \
         it only if no process made IDs with this pool in the last minute and the clock has not \
         been set back since"
            .into()
    } else if number("application_id")? != APPLICATION {
        "this is a SQLite database of another program; choose another path".into()
    } else if number("user_version")? != VERSION {
        let version = number("user_version")?;
        format!(
            "the database has schema version {version}, this build of Vesta knows {VERSION}; use the \
             version of Vesta that made it, or another path"
        )
    } else if connection.is_readonly(MAIN_DB)? {
        "the database is read-only; let this user write the file and its folder".into()
    } else {
        return check_pages(connection);
    };
    Err(StoreError::permanent(flaw).into())
}

fn check_pages(connection: &Connection) -> Result<(), Failure> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    Err(super::errors::damaged(&found).into())
}

/// Has every change synced before it is acknowledged, and makes sure of it.
pub(super) fn make_durable(connection: &Connection) -> Result<(), Failure> {
    // On macOS only a "full" sync reaches the disk.
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON; \
         PRAGMA foreign_keys = ON;",
    )?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    let synchronous: i32 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if mode != "wal" || synchronous != 2 {
        return Err(StoreError::permanent(format!(
            "SQLite cannot make changes durable here (journal_mode {mode}, synchronous \
             {synchronous}); put the database on a local disk"
        ))
        .into());
    }
    Ok(())
}
