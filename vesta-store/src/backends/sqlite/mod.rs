//! SQLite: the pool for the processes of one host.
//!
//! The file must be on a local disk: SQLite's locks do not work over a network. It is in WAL mode and
//! every change is synced before it is acknowledged (`synchronous=FULL`); both are checked. The
//! tables are created by the `*.sql` files beside this one.

mod errors;
mod file;
mod group;
mod kv;
mod lock;
mod worker_nodes;

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, MAIN_DB, OpenFlags};
use vesta_service::lease::{StoreError, Timing, check_local};

use crate::options::not_prepared;
use crate::{OpenError, Options, StoreUrl};
use errors::Failure;
use file::Identity;
use group::Group;
use lock::Locks;

/// "VSTA"
const APPLICATION: i32 = 0x5653_5441;
const VERSION: i32 = 2;
/// Page size in bytes, SQLite's minimum: room for one record. The log is written in whole pages, so a
/// renewal writes little more than its record.
const PAGE: u32 = 512;
/// Log size in pages at which SQLite copies it into the database: 4 MB.
const CHECKPOINT: u32 = 8000;

/// A database.
#[derive(Debug)]
pub(crate) struct Database {
    /// Path as typed, for display.
    shown: String,
    /// Absolute: the program may change its working folder.
    path: PathBuf,
    options: Options,
    /// Changes that wait for the connection.
    group: Group,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` after an error: the next request opens a new connection.
    connection: Option<Connection>,
    /// Identity of the file opened first. A file that replaces it does not know our claims.
    identity: Identity,
    /// The same file, for locks. Dropped last.
    locks: Option<Locks>,
}

impl Database {
    /// Opens a database, or creates it and its folder. A database that is only locked at the moment
    /// is not an error.
    pub(crate) fn open(url: &StoreUrl, options: &Options) -> Result<Self, OpenError> {
        if url.path.contains(":memory:") {
            return Err(url.malformed("a pool in memory would forget which machine IDs are in use"));
        }
        let path = std::path::absolute(&url.path)
            .map_err(|error| url.malformed(format!("the path is not usable: {error}")))?;
        let shown = format!("SQLite {}", url.path);
        let database = Self {
            shown,
            path,
            options: options.clone(),
            group: Group::default(),
            state: Mutex::default(),
        };
        match database.first_connected() {
            Ok(()) => Ok(database),
            Err(source) => Err(OpenError::Store {
                store: database.shown,
                source,
            }),
        }
    }

    fn first_connected(&self) -> Result<(), StoreError> {
        let path = &self.path;
        check_local(path, self.options.network_fs).map_err(StoreError::permanent)?;
        if self.options.auto_init {
            file::create_if_missing(path)?;
        } else if !path.exists() {
            return Err(not_prepared("the database"));
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Err(failure) = self.connected(&mut state) else {
            return Ok(());
        };
        let cannot_open = failure.cannot_open();
        let error = failure.explain();
        if cannot_open {
            return Err(StoreError::permanent(error.to_string()));
        }
        if error.is_permanent() {
            return Err(error);
        }
        tracing::warn!(store = self.shown, %error, "the store does not answer yet");
        Ok(())
    }

    fn connect(&self) -> Result<Connection, Failure> {
        lock::check_not_inherited(&self.path)?;
        lock::check_single_name(&self.path)?;
        // Without CREATE: a deleted file must not come back empty. Without URI: a path is a path.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.options.limit(Timing::ONE_HOST))?;
        check(&connection)?;
        make_durable(&connection)?;
        connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT, |_| Ok(()))?;
        Ok(connection)
    }

    fn connected<'a>(&self, state: &'a mut State) -> Result<&'a mut Connection, Failure> {
        if state.connection.is_none() {
            state.connection = Some(self.connect()?);
        }
        state.identity = state.identity.or_else(|| file::identity(&self.path));
        if state.locks.is_none() {
            let locks = Locks::of(&self.path);
            let failed = |error| StoreError::unavailable("the database cannot be opened", error);
            state.locks = Some(locks.map_err(failed)?);
        }
        Ok(state.connection.as_mut().expect("it was just made"))
    }

    /// Locks an entry of the file opened first.
    fn lock_entry(&self, area: &str, key: &str) -> Result<Option<Box<dyn Any + Send>>, StoreError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.connected(&mut state).map_err(Failure::explain)?;
        let locks = state.locks.as_ref().expect("it is open");
        let failed = |error| StoreError::unavailable("the database cannot be locked", error);
        locks.lock(area, key).map_err(failed)
    }

    /// Runs a request on the existing connection or on a new one.
    fn ask<T>(
        &self,
        request: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        // A panic inside left at most one transaction, which was rolled back.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.connected(&mut state).and_then(request);
        // Checked last: a change to a deleted file must not count.
        if state.identity.is_some() && state.identity != file::identity(&self.path) {
            return Err(StoreError::replaced(
                "the database file was deleted or replaced while in use; restart, and before \
                 replacing it stop every process that uses it",
            ));
        }
        answer.map_err(|failure| {
            if failure.breaks_connection() {
                state.connection = None;
            }
            failure.explain()
        })
    }
}

/// Creates a complete database at a path with an empty file.
fn fill(path: &Path) -> Result<(), Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Nothing is synced here: the whole file is synced before it is renamed.
    connection.execute_batch("PRAGMA synchronous = OFF")?;
    connection.pragma_update(None, "page_size", PAGE)?;
    connection.execute_batch(concat!("BEGIN; ", include_str!("vesta_kv.sql"), "COMMIT;"))?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error.into())
}

/// Refuses anything but a sound, writable database of this version of Vesta.
fn check(connection: &Connection) -> Result<(), Failure> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let flaw = if number("page_count")? == 0 {
        "the database is empty, so it is unknown which machine IDs are in use; restore it, or delete \
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
        let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        return if found == "ok" {
            Ok(())
        } else {
            Err(errors::damaged(&found).into())
        };
    };
    Err(StoreError::permanent(flaw).into())
}

/// Has every change synced before it is acknowledged, and verifies the settings.
fn make_durable(connection: &Connection) -> Result<(), Failure> {
    // On macOS only a "full" sync reaches the disk.
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;",
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

#[cfg(test)]
mod tests;
