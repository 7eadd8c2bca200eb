//! Maps SQLite errors to `StoreError`.

use rusqlite::{Error, ErrorCode, ffi};
use vesta_service::lease::StoreError;

/// The cause of a failed request.
#[derive(Debug)]
pub(super) enum Failure {
    Sqlite(Error),
    Store(StoreError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn is_busy(error: &Error) -> bool {
    use ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed)
    )
}

pub(super) fn damaged(finding: &str) -> StoreError {
    StoreError::permanent(format!(
        "the database is damaged or not a database ({finding}); restore it, or choose another path \
         only if no process made IDs with this pool in the last minute"
    ))
}

impl Failure {
    /// True if the database could not be opened at all: on the first attempt a wrong setting, later
    /// more likely a lack of file descriptors.
    pub(super) fn cannot_open(&self) -> bool {
        matches!(self, Self::Sqlite(e) if e.sqlite_error_code() == Some(ErrorCode::CannotOpen))
    }

    /// True if the next request should use a new connection.
    pub(super) fn breaks_connection(&self) -> bool {
        matches!(self, Self::Sqlite(error) if !is_busy(error))
    }

    /// Maps the error to `StoreError`.
    pub(super) fn explain(self) -> StoreError {
        let error = match self {
            Self::Store(error) => return error,
            Self::Sqlite(error) => error,
        };
        if is_busy(&error) {
            return StoreError::unavailable("the database is locked by another process", error);
        }
        let extended = error.sqlite_error().map_or(0, |error| error.extended_code);
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                damaged(&error.to_string())
            }
            Some(ErrorCode::DiskFull) => {
                StoreError::unavailable("the disk is full; free some space", error)
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                StoreError::permanent(format!(
                    "the database is not writable ({error}); let this user write the file and its \
                 folder"
                ))
            }
            Some(ErrorCode::CannotOpen) => StoreError::unavailable(
                "check that the database is a file, and that this user may read and write it and \
                 its folder",
                error,
            ),
            // After a failed sync the state of the disk is unknown; a later sync would not reveal
            // it.
            Some(ErrorCode::SystemIoFailure) if is_final(extended) => StoreError::replaced(
                format!("the disk failed ({error}, code {extended}); check it before restarting"),
            ),
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::OperationAborted
                | ErrorCode::OperationInterrupted
                | ErrorCode::SchemaChanged,
            ) => StoreError::unavailable("SQLite failed", error),
            Some(_) => StoreError::permanent(format!("SQLite refuses: {error}")),
            None => StoreError::permanent(format!("a row is not a Vesta record: {error}")),
        }
    }
}

fn is_final(extended: i32) -> bool {
    matches!(
        extended,
        ffi::SQLITE_IOERR_FSYNC
            | ffi::SQLITE_IOERR_DIR_FSYNC
            | ffi::SQLITE_IOERR_WRITE
            | ffi::SQLITE_IOERR_TRUNCATE
            | ffi::SQLITE_IOERR_DATA
            | ffi::SQLITE_IOERR_CORRUPTFS
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(code: i32) -> StoreError {
        Failure::Sqlite(Error::SqliteFailure(ffi::Error::new(code), None)).explain()
    }

    #[test]
    fn transient_errors_are_unavailable() {
        for code in [
            ffi::SQLITE_BUSY,
            ffi::SQLITE_BUSY_SNAPSHOT,
            ffi::SQLITE_LOCKED,
            ffi::SQLITE_PROTOCOL,
            ffi::SQLITE_FULL,
            ffi::SQLITE_CANTOPEN,
            ffi::SQLITE_NOMEM,
            ffi::SQLITE_IOERR_SHMOPEN,
        ] {
            assert!(!explained(code).is_permanent(), "{code}");
        }
    }

    #[test]
    fn errors_that_need_an_operator_are_permanent_with_advice() {
        for (code, advice) in [
            (ffi::SQLITE_CORRUPT, "restore it"),
            (ffi::SQLITE_NOTADB, "choose another path"),
            (ffi::SQLITE_READONLY, "let this user write"),
            (ffi::SQLITE_READONLY_DBMOVED, "let this user write"),
            (ffi::SQLITE_IOERR_FSYNC, "check it before restarting"),
            (ffi::SQLITE_ERROR, "refuses"),
            (ffi::SQLITE_CONSTRAINT_CHECK, "refuses"),
        ] {
            let error = explained(code);
            assert!(error.is_permanent(), "{code}");
            assert!(error.to_string().contains(advice), "{error}");
        }
    }
}
