//! Maps database errors to `StoreError`.

use std::io::ErrorKind;

use sqlx::Error;
use vesta_service::lease::StoreError;

use super::dialect::{Class, Dialect};
use crate::backends::ServerMessage;

/// Not permanent: a certificate may still be renewed.
const NOT_SAFE: &str = "no safe connection could be made; check the server's certificate and the options of the URL that \
     begin with ssl";

const READ_ONLY: &str = "the server is read-only: it is a replica, or a fail-over is in progress";

/// The error for a read-only server.
pub(crate) fn read_only(setting: String) -> StoreError {
    StoreError::unavailable(READ_ONLY, ServerMessage(setting))
}

const IN_THE_WAY: &str = "other processes were in the way";

pub(super) fn class<D: Dialect>(error: &Error) -> Option<Class> {
    error.as_database_error().map(D::class)
}

/// Maps a driver error to `StoreError`. No driver's error shows a password.
pub(crate) fn explain<D: Dialect>(error: Error) -> StoreError {
    let said = ServerMessage(match &error {
        Error::Database(error) => D::said(&**error),
        Error::Decode(error) => error.to_string(),
        error => error.to_string(),
    });
    let name = D::NAME;
    let passing = match (class::<D>(&error), error) {
        (Some(Class::Contended), _) => IN_THE_WAY,
        (Some(Class::Unavailable), _) => "the server refuses for now",
        (Some(Class::ReadOnly), _) => READ_ONLY,
        (Some(Class::Denied), _) => return denied(&said),
        (Some(Class::Refused), _) => {
            "the server refuses; check the tables, and what the user may do"
        }
        (Some(Class::Exists | Class::Unfit), _) => {
            return StoreError::permanent(format!("{name} refuses: {said}"));
        }
        // An authentication method unknown to the driver.
        (None, Error::Protocol(text)) if text.contains("authentication") => return denied(&said),
        (None, Error::Tls(_)) => NOT_SAFE,
        (None, Error::Io(error)) if error.kind() == ErrorKind::InvalidData => NOT_SAFE,
        (None, Error::Io(_) | Error::Protocol(_) | Error::WorkerCrashed) => {
            "the server cannot be reached"
        }
        (None, Error::ColumnDecode { .. } | Error::Decode(_)) => {
            return StoreError::permanent(format!("a row is not a Vesta record: {said}"));
        }
        (None, Error::Configuration(_)) => {
            return StoreError::permanent(format!("{name} cannot be used: {said}"));
        }
        (None, _) => "unexpected response from the server",
    };
    StoreError::unavailable(passing, said)
}

/// The error of a look that is insufficient for a claim; the next look shows more.
pub(super) fn unsettled() -> StoreError {
    let privilege = "GRANT REPLICATION CLIENT shows it at once";
    let unknown = "whether this server replicates from another shows within a second";
    StoreError::unavailable(unknown, ServerMessage(privilege.into()))
}

/// The doubt about a server that does not say whether it has replicas.
pub(crate) fn unsaid<D: Dialect>(error: Error) -> Result<Vec<String>, StoreError> {
    let refuses = matches!(class::<D>(&error), Some(Class::Refused | Class::Unfit));
    let error = explain::<D>(error);
    let doubt = || format!("it does not say whether it has replicas: {error}");
    if refuses {
        Ok(vec![doubt()])
    } else {
        Err(error)
    }
}

fn denied(said: &ServerMessage) -> StoreError {
    StoreError::permanent(format!(
        "{said}; check the user, the password and the database"
    ))
}

/// The same statement was refused repeatedly.
pub(super) fn contended() -> StoreError {
    let again = "other processes repeatedly changed the same row";
    StoreError::unavailable(IN_THE_WAY, ServerMessage(again.into()))
}
