//! Errors, classified by what the caller can do about them, and the one table that maps them to gRPC
//! codes and HTTP statuses.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Error of generating, explaining or assembling an ID.
#[derive(Clone)]
#[non_exhaustive]
pub enum IdError {
    /// Not possible now; carries the delay after which to retry.
    NotReady(NotReady),
    /// A value is outside its range.
    OutOfRange {
        /// The name of the field or parameter.
        field: &'static str,
        /// The value given.
        value: u64,
        /// The smallest valid value.
        min: u64,
        /// The largest valid value.
        max: u64,
    },
    /// A malformed parameter, or an inconsistent setting.
    Invalid {
        /// The name of the field or parameter.
        field: &'static str,
        /// The defect, and what a valid value looks like.
        reason: Box<str>,
    },
    /// The layout's time field has run out. No further ID can be made; the layout has to change.
    TimeExhausted,
    /// The generator has stopped for good: it was shut down, or it lost its machine ID.
    Sealed {
        /// The reason it stopped.
        reason: Box<str>,
    },
    /// The call comes from a signal handler that interrupted another call of the same thread, which would undo it.
    Reentered,
    /// The tag has issued its last number. No later attempt succeeds, on no server, until its end is raised.
    UsedUp {
        /// The tag and its last number.
        reason: Box<str>,
    },
    /// The caller's deadline passed before an answer was ready.
    DeadlineExceeded,
    /// The named thing does not exist.
    NotFound {
        /// Description of the thing that was not found.
        what: Box<str>,
    },
    /// A thing of this name exists already, and is another than the requested one. It stays as it is.
    AlreadyExists {
        /// Description of the thing that exists.
        what: Box<str>,
    },
    /// The service does not offer the requested feature, or it is disabled.
    Unsupported {
        /// The missing feature, and how to enable it.
        what: Box<str>,
    },
    /// The caller is not authenticated.
    Unauthenticated {
        /// The missing or rejected credential.
        reason: Box<str>,
    },
    /// The caller lacks a permission.
    PermissionDenied {
        /// The missing permission.
        reason: Box<str>,
    },
    /// A remote service cannot be reached or is not ready.
    Unavailable {
        /// The attempt and its failure.
        reason: Box<str>,
        /// The delay after which another attempt makes sense, where it is known.
        retry_after: Option<Duration>,
        /// The underlying error.
        source: Option<Arc<dyn Error + Send + Sync>>,
    },
    /// A fault of the service itself.
    Internal {
        /// Description of the fault.
        reason: Box<str>,
        /// The underlying error.
        source: Option<Arc<dyn Error + Send + Sync>>,
    },
}

/// "Not now", with the delay after which to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotReady {
    /// Delay after which a retry can succeed; earlier retries cannot.
    pub retry_after: Duration,
    /// The condition being waited for.
    pub why: NotReadyReason,
}

/// Condition that a [`NotReady`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotReadyReason {
    /// The next tick: every sequence number of the current one has been issued.
    SequenceUsedUp,
    /// The store's acknowledgement of the next window: the durable bound has been reached.
    AwaitingLease,
    /// The wall clock: it is too far behind the IDs already issued.
    ClockBehind,
    /// The machine ID: another process holds it, and this one stands by.
    NotHolder,
}

/// The kinds of errors: the rows of the table that gRPC and HTTP share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "each is documented at the corresponding variant of IdError"
)]
pub enum ErrorKind {
    SequenceUsedUp,
    AwaitingLease,
    ClockBehind,
    NotHolder,
    OutOfRange,
    Invalid,
    TimeExhausted,
    Sealed,
    Reentered,
    UsedUp,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    Unsupported,
    Unauthenticated,
    PermissionDenied,
    Unavailable,
    Internal,
}

/// Kind, stable name, gRPC code, HTTP status, title.
type Row = (ErrorKind, &'static str, i32, u16, &'static str);

#[rustfmt::skip]
const TABLE: [Row; 18] = [
    (ErrorKind::SequenceUsedUp, "SEQUENCE_USED_UP", 8, 429, "Every ID of the current tick is used"),
    (ErrorKind::AwaitingLease, "AWAITING_LEASE", 14, 503, "Waiting for the store"),
    (ErrorKind::ClockBehind, "CLOCK_BEHIND", 14, 503, "The server's clock is behind"),
    (ErrorKind::NotHolder, "NOT_HOLDER", 14, 503, "Another server holds the machine ID"),
    (ErrorKind::OutOfRange, "OUT_OF_RANGE", 3, 400, "Value out of range"),
    (ErrorKind::Invalid, "INVALID", 3, 400, "Invalid request"),
    (ErrorKind::TimeExhausted, "TIME_EXHAUSTED", 9, 500, "The layout's time field has run out"),
    (ErrorKind::Sealed, "SEALED", 14, 503, "The generator has stopped"),
    (ErrorKind::Reentered, "REENTERED", 13, 500, "Called in the middle of another call"),
    (ErrorKind::UsedUp, "USED_UP", 9, 409, "Every number of the tag is used"),
    (ErrorKind::DeadlineExceeded, "DEADLINE_EXCEEDED", 4, 504, "Too late"),
    (ErrorKind::NotFound, "NOT_FOUND", 5, 404, "Not found"),
    (ErrorKind::AlreadyExists, "ALREADY_EXISTS", 6, 409, "Exists already"),
    (ErrorKind::Unsupported, "UNSUPPORTED", 12, 501, "Not offered here"),
    (ErrorKind::Unauthenticated, "UNAUTHENTICATED", 16, 401, "Credentials needed"),
    (ErrorKind::PermissionDenied, "PERMISSION_DENIED", 7, 403, "Not allowed"),
    (ErrorKind::Unavailable, "UNAVAILABLE", 14, 503, "Unavailable"),
    (ErrorKind::Internal, "INTERNAL", 13, 500, "Internal error"),
];

impl ErrorKind {
    /// All kinds.
    pub fn all() -> impl Iterator<Item = ErrorKind> {
        TABLE.iter().map(|row| row.0)
    }

    fn row(self) -> &'static Row {
        TABLE
            .iter()
            .find(|row| row.0 == self)
            .expect("every kind has its row")
    }

    /// The stable name that errors carry over a wire: `SEQUENCE_USED_UP`, ….
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The kind with this stable name.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The number of the gRPC status code.
    pub fn grpc_code(self) -> i32 {
        self.row().2
    }

    /// The HTTP status.
    pub fn http_status(self) -> u16 {
        self.row().3
    }

    /// Its title in problems (RFC 9457), the same at every listener.
    pub fn title(self) -> &'static str {
        self.row().4
    }
}

impl IdError {
    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            IdError::NotReady(NotReady { why, .. }) => match why {
                NotReadyReason::SequenceUsedUp => ErrorKind::SequenceUsedUp,
                NotReadyReason::AwaitingLease => ErrorKind::AwaitingLease,
                NotReadyReason::ClockBehind => ErrorKind::ClockBehind,
                NotReadyReason::NotHolder => ErrorKind::NotHolder,
            },
            IdError::OutOfRange { .. } => ErrorKind::OutOfRange,
            IdError::Invalid { .. } => ErrorKind::Invalid,
            IdError::TimeExhausted => ErrorKind::TimeExhausted,
            IdError::Sealed { .. } => ErrorKind::Sealed,
            IdError::Reentered => ErrorKind::Reentered,
            IdError::UsedUp { .. } => ErrorKind::UsedUp,
            IdError::DeadlineExceeded => ErrorKind::DeadlineExceeded,
            IdError::NotFound { .. } => ErrorKind::NotFound,
            IdError::AlreadyExists { .. } => ErrorKind::AlreadyExists,
            IdError::Unsupported { .. } => ErrorKind::Unsupported,
            IdError::Unauthenticated { .. } => ErrorKind::Unauthenticated,
            IdError::PermissionDenied { .. } => ErrorKind::PermissionDenied,
            IdError::Unavailable { .. } => ErrorKind::Unavailable,
            IdError::Internal { .. } => ErrorKind::Internal,
        }
    }

    /// The delay after which another attempt makes sense, where it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            IdError::NotReady(not_ready) => Some(not_ready.retry_after),
            IdError::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Creates an [`IdError::Invalid`].
    pub fn invalid(field: &'static str, reason: impl Into<Box<str>>) -> Self {
        IdError::Invalid {
            field,
            reason: reason.into(),
        }
    }

    /// Refuses a value outside `min..=max`.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] with the field's name and range.
    pub const fn check(field: &'static str, value: u64, min: u64, max: u64) -> Result<(), Self> {
        if value < min || value > max {
            return Err(IdError::OutOfRange {
                field,
                value,
                min,
                max,
            });
        }
        Ok(())
    }
}

impl From<NotReady> for IdError {
    fn from(not_ready: NotReady) -> Self {
        IdError::NotReady(not_ready)
    }
}

impl fmt::Display for NotReadyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotReadyReason::SequenceUsedUp => "every sequence number of the current tick is used",
            NotReadyReason::AwaitingLease => "the store has not yet confirmed the next window",
            NotReadyReason::ClockBehind => "the clock is behind IDs that were already issued",
            NotReadyReason::NotHolder => {
                "another server holds the machine ID, and this one stands by"
            }
        })
    }
}

/// Kind and message in one line, as `unwrap` prints them; [`Error::source`] returns the underlying
/// error.
impl fmt::Debug for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdError({}: {self})", self.kind().name())
    }
}

/// Texts around the reason in the sentences of some kinds. Decoding removes them.
pub(crate) const STOPPED: &str = "the generator has stopped: ";
pub(crate) const MISSING: &str = " does not exist";
pub(crate) const EXISTS: &str = " already exists, and is another; nothing was changed";

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdError::NotReady(NotReady { retry_after, why }) => {
                write!(
                    f,
                    "{why}; try again in {} ms",
                    retry_after.as_micros().div_ceil(1000)
                )
            }
            IdError::OutOfRange {
                field,
                value,
                min,
                max,
            } => {
                write!(f, "{field} must be {min} to {max}, but is {value}")
            }
            IdError::Invalid { field, reason } => write!(f, "{field}: {reason}"),
            IdError::TimeExhausted => {
                f.write_str("the layout's time field has run out; a new layout or epoch is needed")
            }
            IdError::Sealed { reason } => write!(f, "{STOPPED}{reason}"),
            IdError::Reentered => f.write_str(
                "this call came from a signal handler in the middle of another call of its thread; take IDs outside \
                 of the handler, or after it",
            ),
            IdError::DeadlineExceeded => f.write_str("the deadline passed before an ID was ready"),
            IdError::NotFound { what } => write!(f, "{what}{MISSING}"),
            IdError::AlreadyExists { what } => write!(f, "{what}{EXISTS}"),
            IdError::Unsupported { what } => f.write_str(what),
            IdError::Unauthenticated { reason }
            | IdError::PermissionDenied { reason }
            | IdError::UsedUp { reason }
            | IdError::Unavailable { reason, .. }
            | IdError::Internal { reason, .. } => f.write_str(reason),
        }
    }
}

impl Error for IdError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            IdError::Unavailable { source, .. } | IdError::Internal { source, .. } => {
                source.as_deref().map(|e| e as &(dyn Error + 'static))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_kind_and_no_row_is_missing() {
        let mut seen = std::collections::HashSet::new();
        for kind in ErrorKind::all() {
            assert_eq!(ErrorKind::from_name(kind.name()), Some(kind));
            assert!((400..600).contains(&kind.http_status()), "{kind:?}");
            assert!((1..=16).contains(&kind.grpc_code()), "{kind:?}");
            assert!(seen.insert(kind.name()) && seen.insert(kind.title()));
        }
        assert_eq!(ErrorKind::from_name("NO_SUCH_KIND"), None);
    }

    #[test]
    fn debug_is_one_short_line_without_the_underlying_error() {
        let source = Some(Arc::new(std::io::Error::other("a\nb")) as _);
        let error = IdError::Internal {
            reason: "no".into(),
            source,
        };
        let expected = "IdError(INTERNAL: no)";
        assert_eq!([format!("{error:?}"), format!("{error:#?}")], [expected; 2]);
    }

    #[test]
    fn retryable_errors_carry_a_delay() {
        let hold = NotReady {
            retry_after: Duration::from_millis(3),
            why: NotReadyReason::SequenceUsedUp,
        };
        let error = IdError::from(hold);
        assert_eq!(error.retry_after(), Some(Duration::from_millis(3)));
        assert_eq!(error.kind().http_status(), 429);
        assert_eq!(
            error.to_string(),
            "every sequence number of the current tick is used; try again in 3 ms"
        );
    }
}
