//! The pool of one host: a SQLite database.

mod errors;
mod file;
mod records;
mod schema;
mod segments;
mod worker_nodes;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use vesta_service::{
    Cas, Expect, LeaseStore, Namespace, NewSegmentTag, NextRange, Record, SegmentStore, SegmentTag,
    StoreError, Timing, WorkerNodeStore,
};

use crate::{OpenError, Options};
use errors::Failure;
use file::Identity;

pub(crate) const BUILT_IN: bool = true;

pub(crate) fn open(url: &str, options: &Options) -> Result<Arc<dyn LeaseStore>, OpenError> {
    Ok(Arc::new(open_path(path_of(url)?, options)?))
}

pub(crate) fn open_worker_nodes(
    url: &str,
    options: &Options,
) -> Result<Arc<dyn WorkerNodeStore>, OpenError> {
    Ok(Arc::new(open_path(path_of(url)?, options)?))
}

pub(crate) fn open_segments(
    url: &str,
    options: &Options,
) -> Result<Arc<dyn SegmentStore>, OpenError> {
    Ok(Arc::new(open_path(path_of(url)?, options)?))
}

fn open_path(path: &Path, options: &Options) -> Result<SqliteStore, OpenError> {
    SqliteStore::open_with(path, options)
        .map_err(|source| OpenError::Store { store: describe(path), source })
}

fn path_of(url: &str) -> Result<&Path, OpenError> {
    let rest = url.split_once(':').map_or(url, |(_, rest)| rest);
    let path = rest.strip_prefix("//").unwrap_or(rest);
    let flaw = if path.is_empty() {
        "the path of the database is missing"
    } else if path.contains(":memory:") {
        "a pool in memory would forget which machine IDs are taken"
    } else if path.contains('?') {
        "the sqlite URL takes no options, and the path no question mark"
    } else if path.contains('\0') {
        "the path of the database contains a NUL"
    } else {
        return Ok(Path::new(path));
    };
    let example = "sqlite:PATH, for example sqlite:vesta-data/vesta.db";
    Err(OpenError::Malformed { reason: flaw.into(), example })
}

/// Records in a SQLite database: the pool of the processes of one host.
///
/// The file must lie on a local disk: SQLite's locks do not work over a network. It is in WAL mode
/// and every change is synced before it counts (`synchronous=FULL`); both are checked.
///
/// ```sql
/// PRAGMA application_id = 0x56535441;  -- "VSTA"
/// PRAGMA user_version = 1;             -- a newer one is refused
///
/// CREATE TABLE vesta_namespace (
///   name        TEXT    NOT NULL PRIMARY KEY,
///   uuid        BLOB    NOT NULL CHECK (length(uuid) = 16),
///   fingerprint TEXT    NOT NULL,       -- the one layout the namespace is for
///   floor       INTEGER NOT NULL CHECK (floor >= 0)
/// ) STRICT, WITHOUT ROWID;
///
/// CREATE TABLE vesta_record (           -- a row is never deleted
///   namespace   TEXT    NOT NULL REFERENCES vesta_namespace (name),
///   machine     INTEGER NOT NULL CHECK (machine >= 0),
///   epoch       INTEGER NOT NULL CHECK (epoch >= 0),       -- claims so far
///   owner       BLOB    NOT NULL CHECK (length(owner) = 16), -- big-endian; zeros: nobody
///   bound       INTEGER NOT NULL CHECK (bound >= 0),       -- first position not reserved
///   attempt     INTEGER NOT NULL CHECK (attempt >= 0),     -- of the request that wrote the row
///   released    INTEGER NOT NULL CHECK (released IN (0, 1)),
///   host        TEXT    NOT NULL,                          -- this and the rest: for people
///   pid         INTEGER NOT NULL CHECK (pid >= 0),
///   info_time   INTEGER NOT NULL CHECK (info_time >= 0),   -- milliseconds since 1970
///   PRIMARY KEY (namespace, machine)
/// ) STRICT, WITHOUT ROWID;
/// ```
/// Numbers have 63 bits; larger ones are refused.
#[derive(Debug)]
pub struct SqliteStore {
    /// As it was given, for people.
    shown: PathBuf,
    /// Absolute: the program may change its working folder.
    path: PathBuf,
    /// Otherwise what is missing is an error.
    auto_init: bool,
    request_timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` after an error: the next request connects anew.
    connection: Option<Connection>,
    /// The file that was opened first. Another one in its place knows nothing of our claims.
    identity: Identity,
}

fn describe(path: &Path) -> String {
    format!("SQLite {}", path.display())
}

impl SqliteStore {
    /// Opens a database, or creates it and its folder.
    ///
    /// # Errors
    /// A permanent [`StoreError`] if this is no database of Vesta's, or a damaged one, or may not be
    /// written. One that is only locked at the moment is no error.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with(path, &Options::default())
    }

    /// As [`open`](Self::open), with options.
    ///
    /// # Errors
    /// As [`open`](Self::open); and if something is missing that the options forbid to create.
    pub fn open_with(path: impl Into<PathBuf>, options: &Options) -> Result<Self, StoreError> {
        let shown = path.into();
        let path = std::path::absolute(&shown)
            .map_err(|error| StoreError::permanent(format!("the path is not usable: {error}")))?;
        let auto_init = options.auto_init;
        if auto_init {
            file::create_if_missing(&path)?;
        } else if !path.exists() {
            return Err(not_prepared("the database does not exist"));
        }
        let request_timeout = options.request_timeout.unwrap_or(Timing::ONE_HOST.request_timeout);
        let store = Self { shown, path, auto_init, request_timeout, state: Mutex::default() };
        let mut state = State::default();
        match store.connected(&mut state) {
            Ok(_) => {}
            Err(failure) if failure.cannot_open() => {
                return Err(StoreError::permanent(failure.explain().to_string()));
            }
            Err(failure) => {
                let error = failure.explain();
                if error.is_permanent() {
                    return Err(error);
                }
                tracing::warn!(store = describe(&store.shown), %error, "the store does not answer yet");
            }
        }
        Ok(Self { state: Mutex::new(state), ..store })
    }

    fn connect(&self) -> Result<Connection, Failure> {
        // Not CREATE: a file that vanished must not come back empty. Not URI: a path is a path.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.request_timeout)?;
        schema::check(&connection)?;
        schema::make_durable(&connection)?;
        Ok(connection)
    }

    fn connected<'a>(&self, state: &'a mut State) -> Result<&'a mut Connection, Failure> {
        if state.connection.is_none() {
            state.connection = Some(self.connect()?);
        }
        state.identity = state.identity.or_else(|| file::identity(&self.path));
        Ok(state.connection.as_mut().expect("it was just made"))
    }

    /// Carries out a request, over the connection there is or over a new one.
    fn ask<T>(
        &self,
        request: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        // A panic inside left at most a transaction, which was rolled back.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.connected(&mut state).and_then(request);
        // Looked at last: what went into a file that is gone must not count.
        if state.identity.is_some() && state.identity != file::identity(&self.path) {
            return Err(StoreError::permanent(
                "the database file was deleted or replaced while in use; start again, and before \
                 doing such a thing stop every process that uses it",
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

pub(crate) fn not_prepared(what: &str) -> StoreError {
    StoreError::permanent(format!(
        "{what}, and auto_init is off; have it created by `vesta-server store init`"
    ))
}

impl LeaseStore for SqliteStore {
    fn describe(&self) -> String {
        describe(&self.shown)
    }

    fn timing(&self) -> Timing {
        Timing { request_timeout: self.request_timeout, ..Timing::ONE_HOST }
    }

    fn open_namespace(&self, namespace: &str, fingerprint: &str) -> Result<Namespace, StoreError> {
        self.ask(|connection| {
            if !self.auto_init && records::namespace(connection, namespace)?.is_none() {
                return Err(not_prepared("the namespace does not exist").into());
            }
            records::open_namespace(connection, namespace, fingerprint)
        })
    }

    fn raise_floor(&self, namespace: &str, floor: u64) -> Result<u64, StoreError> {
        self.ask(|connection| records::raise_floor(connection, namespace, floor))
    }

    fn list(&self, namespace: &str) -> Result<Vec<(u64, Record)>, StoreError> {
        self.ask(|connection| records::list(connection, namespace))
    }

    fn read(&self, namespace: &str, machine: u64) -> Result<Option<Record>, StoreError> {
        self.ask(|connection| records::read_opened(connection, namespace, machine))
    }

    fn cas(
        &self,
        namespace: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        self.ask(|connection| records::cas(connection, namespace, machine, expect, new))
    }
}

impl WorkerNodeStore for SqliteStore {
    fn describe(&self) -> String {
        describe(&self.shown)
    }

    fn insert(&self, host: &str, pid: u32) -> Result<u64, StoreError> {
        self.ask(|connection| worker_nodes::insert(connection, self.auto_init, host, pid))
    }
}

impl SegmentStore for SqliteStore {
    fn describe(&self) -> String {
        describe(&self.shown)
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        self.ask(|connection| segments::tags(connection, self.auto_init))
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        self.ask(|connection| segments::next_range(connection, self.auto_init, key, step))
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        self.ask(|connection| segments::create(connection, self.auto_init, tag))
    }
}

#[cfg(test)]
mod tests;
