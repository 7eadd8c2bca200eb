//! Errors of ZooKeeper by what the caller can do.

use vesta_service::StoreError;
use zookeeper_client::Error;

use crate::runtime::NoAnswer;

/// The reason for which a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Client(Error),
    Store(StoreError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The fate of the session that a request failed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It goes on: ZooKeeper has answered.
    Good,
    /// It has ended, or nobody knows; a new one may do better.
    Lost,
    /// It has ended, and a new one would fare the same.
    Refused,
}

impl Failure {
    pub(super) fn fate_of_session(&self) -> Fate {
        match self {
            Self::Store(_) => Fate::Good,
            Self::Client(Error::AuthFailed) => Fate::Refused,
            Self::Client(
                Error::NoNode
                | Error::NoAuth
                | Error::BadVersion
                | Error::NoChildrenForEphemerals
                | Error::NodeExists
                | Error::NotEmpty
                | Error::InvalidAcl
                | Error::BadArguments(_)
                | Error::QuotaExceeded
                | Error::Throttled
                | Error::Unimplemented,
            ) => Fate::Good,
            Self::Client(_) => Fate::Lost,
        }
    }

    /// The error for the caller. `path` is the znode below which everything lies.
    pub(super) fn explain(self, path: &str) -> StoreError {
        let error = match self {
            Self::Store(error) => return error,
            Self::Client(error) => error,
        };
        match error {
            Error::AuthFailed => StoreError::permanent(
                "ZooKeeper refuses the user or the password; check them in the URL",
            ),
            Error::NoAuth | Error::InvalidAcl => StoreError::permanent(format!(
                "access to the znodes of {path} is denied; check the user and the password in the \
                 URL, and the ACL of these znodes"
            )),
            Error::NoChildrenForEphemerals => StoreError::permanent(format!(
                "a znode of {path} is ephemeral, so another program made it; use another path"
            )),
            Error::Unimplemented => {
                StoreError::permanent("this server is too old; ZooKeeper 3.5 or newer is needed")
            }
            Error::BadArguments(what) => {
                StoreError::permanent(format!("ZooKeeper refuses the request: {what}"))
            }
            Error::QuotaExceeded => StoreError::unavailable(
                "the quota of the znodes is used up; raise it with `setquota`",
                error,
            ),
            Error::NoHosts | Error::Timeout => {
                StoreError::unavailable("no server of ZooKeeper can be reached", error)
            }
            error => StoreError::unavailable("ZooKeeper did not answer", error),
        }
    }
}

pub(super) fn no_answer(no_answer: NoAnswer) -> StoreError {
    StoreError::unavailable("ZooKeeper did not answer", no_answer)
}

/// The error for a znode that is not as Vesta makes it.
pub(super) fn foreign(path: &str, finding: impl std::fmt::Display) -> StoreError {
    StoreError::permanent(format!(
        "the znode {path} is damaged or not Vesta's ({finding}); restore it, or use another path only \
         if no process made IDs with this one in the last minute"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_unavailable() {
        for error in [
            Error::ConnectionLoss,
            Error::SessionExpired,
            Error::SessionMoved,
            Error::ClientClosed,
            Error::Timeout,
            Error::NoHosts,
            Error::Throttled,
            Error::QuotaExceeded,
            Error::NotReadOnly,
            Error::UnexpectedErrorCode(-1),
            Error::UnexpectedError("x".into()),
        ] {
            let shown = error.to_string();
            let explained = Failure::from(error).explain("/vesta");
            assert!(!explained.is_permanent(), "{shown}");
            assert!(explained.to_string().ends_with(&shown), "{explained}");
        }
    }

    #[test]
    fn what_needs_a_person_is_permanent_and_says_what_to_do() {
        for (error, advice) in [
            (Error::AuthFailed, "check them in the URL"),
            (Error::NoAuth, "check the user and the password in the URL"),
            (Error::NoChildrenForEphemerals, "use another path"),
            (Error::Unimplemented, "3.5 or newer"),
        ] {
            let explained = Failure::from(error).explain("/vesta");
            assert!(explained.is_permanent());
            assert!(explained.to_string().contains(advice), "{explained}");
        }
    }

    #[test]
    fn only_what_ends_a_session_gives_it_up() {
        let after = |error: Error| Failure::from(error).fate_of_session();
        assert_eq!(after(Error::BadVersion), Fate::Good);
        assert_eq!(after(Error::NoAuth), Fate::Good);
        assert_eq!(after(Error::SessionExpired), Fate::Lost);
        assert_eq!(after(Error::ConnectionLoss), Fate::Lost);
        assert_eq!(after(Error::AuthFailed), Fate::Refused);
    }
}
