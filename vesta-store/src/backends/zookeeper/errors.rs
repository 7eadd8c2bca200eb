//! Maps ZooKeeper errors to `StoreError`.

use vesta_service::lease::StoreError;
use zookeeper_client::Error;

use super::Zookeeper;

impl Zookeeper {
    /// Maps a client error to the error for the caller.
    pub(crate) fn explain(&self, error: Error) -> StoreError {
        let path = &self.config.path;
        match error {
            Error::AuthFailed => StoreError::permanent(
                "ZooKeeper refuses the user or the password; check them in the URL",
            ),
            Error::NoAuth | Error::InvalidAcl => StoreError::unavailable(
                format!(
                    "access to the znodes of {path} is denied; check the user and the password in \
                     the URL, and the ACL of these znodes"
                ),
                error,
            ),
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
                StoreError::unavailable("no ZooKeeper server can be reached", error)
            }
            error => StoreError::unavailable("ZooKeeper did not answer", error),
        }
    }
}

/// The error for a znode that differs from those that Vesta creates.
pub(super) fn foreign(path: &str, finding: &str) -> StoreError {
    StoreError::permanent(format!(
        "the znode {path} is damaged or not written by Vesta ({finding}); restore it, or use another path only \
         if no process made IDs with this one in the last minute"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::options::Purpose;
    use crate::remote::Client as _;

    fn explain(error: Error) -> StoreError {
        let url = "zookeeper://zk1".parse().unwrap();
        Zookeeper::new(&url, &Options::default(), Purpose::Leases)
            .unwrap()
            .explain(error)
    }

    #[test]
    fn transient_errors_are_unavailable() {
        for error in [
            Error::ConnectionLoss,
            Error::SessionExpired,
            Error::SessionMoved,
            Error::ClientClosed,
            Error::Timeout,
            Error::NoHosts,
            Error::Throttled,
            Error::QuotaExceeded,
            Error::NoAuth,
            Error::NotReadOnly,
            Error::UnexpectedErrorCode(-1),
            Error::UnexpectedError("x".into()),
        ] {
            let shown = error.to_string();
            let explained = explain(error);
            assert!(!explained.is_permanent(), "{shown}");
            assert!(explained.to_string().ends_with(&shown), "{explained}");
        }
    }

    #[test]
    fn errors_that_need_an_operator_are_permanent_with_advice() {
        for (error, advice) in [
            (Error::AuthFailed, "check them in the URL"),
            (Error::NoChildrenForEphemerals, "use another path"),
            (Error::Unimplemented, "3.5 or newer"),
        ] {
            let explained = explain(error);
            assert!(explained.is_permanent());
            assert!(explained.to_string().contains(advice), "{explained}");
        }
    }
}
