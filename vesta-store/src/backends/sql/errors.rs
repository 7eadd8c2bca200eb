//! Errors of databases, told apart by what the caller can do.

use std::io::ErrorKind;

use sqlx::Error;
use vesta_service::StoreError;

use super::dialect::Dialect;

/// A certificate may still be renewed.
const NOT_SAFE: &str = "no safe connection could be made; check the server's certificate and the options of the URL that \
     begin with ssl";

/// The cause of a failed request.
#[derive(Debug)]
pub(crate) enum Failure {
    Driver(Error),
    Store(StoreError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The meaning of an error of the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Nothing happened, because of what others did at the same time: the same statement may go
    /// through now.
    Contended,
    /// It is there already.
    Exists,
    /// It passes by itself, or an operator sees to it.
    Unavailable,
    /// The server takes no changes at the moment.
    ReadOnly,
    /// The user may not do this.
    Denied,
    /// Anything else, which does not pass.
    Refused,
}

/// The reason for which nothing can be changed.
#[derive(Debug, thiserror::Error)]
#[error("it is read-only: a replica, or a fail-over is in progress")]
pub(crate) struct ReadOnly;

/// The same statement was refused again and again.
#[derive(Debug, thiserror::Error)]
#[error("other processes changed the same row again and again")]
pub(super) struct Contended;

pub(super) fn class<D: Dialect>(error: &Error) -> Option<Class> {
    error.as_database_error().map(D::class)
}

impl Failure {
    /// The class of an error of the server's.
    pub(super) fn class<D: Dialect>(&self) -> Option<Class> {
        match self {
            Self::Driver(error) => class::<D>(error),
            Self::Store(_) => None,
        }
    }

    /// The error in terms of what the caller can do. No driver's error shows a password.
    pub(super) fn explain<D: Dialect>(self) -> StoreError {
        let error = match self {
            Self::Store(error) => return error,
            Self::Driver(error) => error,
        };
        let said = ServerMessage(match &error {
            Error::Database(error) => D::said(&**error),
            _ => error.to_string(),
        });
        let name = D::NAME;
        match (class::<D>(&error), &error) {
            (Some(Class::Contended), _) => {
                StoreError::unavailable("other processes were in the way", said)
            }
            (Some(Class::Unavailable), _) => {
                StoreError::unavailable("the server refuses for now", said)
            }
            (Some(Class::ReadOnly), _) => {
                StoreError::unavailable(format!("the server takes no changes, {ReadOnly}"), said)
            }
            (Some(Class::Denied), _) => denied(&said),
            (Some(Class::Exists | Class::Refused), _) => {
                StoreError::permanent(format!("{name} refuses: {said}"))
            }
            // A way to log in that the driver does not know.
            (None, Error::Protocol(text)) if text.contains("authentication") => denied(&said),
            (None, Error::Tls(_)) => StoreError::unavailable(NOT_SAFE, said),
            (None, Error::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                StoreError::unavailable(NOT_SAFE, said)
            }
            (None, Error::Io(_) | Error::Protocol(_) | Error::WorkerCrashed) => {
                StoreError::unavailable("the server cannot be reached", said)
            }
            (None, Error::ColumnDecode { .. } | Error::Decode(_)) => {
                StoreError::permanent(format!("the database holds what no Vesta wrote: {said}"))
            }
            (None, _) => StoreError::permanent(format!("{name} cannot be used: {said}")),
        }
    }
}

/// The words of the driver or the server, and nothing that they keep beside them.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ServerMessage(String);

fn denied(said: &ServerMessage) -> StoreError {
    StoreError::permanent(format!(
        "{said}; check the user, the password, the database and what the user may do there"
    ))
}

pub(super) fn contended() -> Failure {
    StoreError::unavailable("other processes were in the way", Contended).into()
}
