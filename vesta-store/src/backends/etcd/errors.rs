//! Maps etcd errors to `StoreError`.

use std::error::Error as _;

use tonic::{Code, Status};
use vesta_service::lease::StoreError;

use crate::backends::ServerMessage;
use crate::backends::channel::whole_story;

/// True if the status comes from etcd itself, not from the connection or an intermediary.
fn is_etcds(status: &Status) -> bool {
    status.message().starts_with("etcdserver: ")
}

pub(super) fn needs_no_login(status: &Status) -> bool {
    is_etcds(status) && status.message().contains("authentication is not enabled")
}

/// Maps a status to the error for the caller.
pub(super) fn explain(member: &str, status: &Status) -> StoreError {
    let what = whole_story(status.message(), status.source());
    let answer = |what| ServerMessage(format!("{member}: {what}"));
    let says = |text| is_etcds(status) && what.contains(text);
    let advice = match status.code() {
        // A request that took effect may be answered with this, too.
        Code::ResourceExhausted if says("database space exceeded") => {
            "etcd's database is full; have its history compacted, defragment it and disarm the alarm"
        }
        Code::Unavailable if is_etcds(status) => "etcd cannot answer at the moment",
        // Unavailable, because an operator can grant the role again.
        _ if says("permission denied") || says("user name not found") => {
            "etcd refuses; let the user read and write the keys with this prefix"
        }
        _ if is_etcds(status) => {
            return match refusal(status) {
                Some(advice) => StoreError::permanent(format!("{member}: {what}; {advice}")),
                None => StoreError::unavailable("etcd refuses the request", answer(what)),
            };
        }
        Code::Unimplemented => "the server does not speak etcd's v3 API; check the address",
        _ => "etcd cannot be reached",
    };
    StoreError::unavailable(advice, answer(what))
}

/// Advice for errors that need an operator; retrying is useless.
fn refusal(status: &Status) -> Option<&'static str> {
    let says = |text| status.message().contains(text);
    if says("authentication failed") {
        Some("check the user and the password in the URL")
    } else if says("user name is empty") {
        Some("etcd requires a user: write etcd://user:password@host")
    } else if says("corrupt cluster") {
        Some("restore the cluster and disarm the alarm")
    } else if says("request is too large") {
        Some("allow larger requests in etcd")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(code: Code, message: &str) -> StoreError {
        explain("h:1", &Status::new(code, message))
    }

    #[test]
    fn transient_errors_are_unavailable() {
        for (code, message, meaning) in [
            (
                Code::Unavailable,
                "etcdserver: leader changed",
                "cannot answer at the moment",
            ),
            (
                Code::Unavailable,
                "etcdserver: no leader",
                "cannot answer at the moment",
            ),
            (
                Code::Unavailable,
                "etcdserver: request timed out",
                "cannot answer at the moment",
            ),
            (
                Code::ResourceExhausted,
                "etcdserver: mvcc: database space exceeded",
                "compacted",
            ),
            (
                Code::ResourceExhausted,
                "etcdserver: too many requests",
                "refuses the request",
            ),
            (
                Code::InvalidArgument,
                "etcdserver: revision of auth store is old",
                "refuses",
            ),
            (
                Code::Unauthenticated,
                "etcdserver: invalid auth token",
                "refuses the request",
            ),
            (
                Code::Unknown,
                "etcdserver: something new",
                "refuses the request",
            ),
            (
                Code::PermissionDenied,
                "etcdserver: permission denied",
                "let the user read and write",
            ),
            (
                Code::FailedPrecondition,
                "etcdserver: user name not found",
                "let the user read",
            ),
            (
                Code::DeadlineExceeded,
                "context deadline exceeded",
                "etcd cannot be reached",
            ),
            (
                Code::Unavailable,
                "tcp connect error",
                "etcd cannot be reached",
            ),
            // These messages do not come from etcd itself.
            (
                Code::PermissionDenied,
                "grpc-status header missing, HTTP status 403",
                "cannot be reached",
            ),
            (
                Code::Unauthenticated,
                "permission denied by the proxy",
                "cannot be reached",
            ),
            (
                Code::Unimplemented,
                "unknown service etcdserverpb.KV",
                "does not speak etcd's v3",
            ),
        ] {
            let error = explained(code, message);
            assert!(!error.is_permanent(), "{message}");
            assert!(error.to_string().contains(meaning), "{error}");
            assert!(
                error.to_string().ends_with(&format!(": h:1: {message}")),
                "{error}"
            );
        }
    }

    #[test]
    fn errors_that_need_an_operator_are_permanent_with_advice() {
        for (code, message, advice) in [
            (
                Code::InvalidArgument,
                "etcdserver: authentication failed, invalid user ID or password",
                "check the user and the password",
            ),
            (
                Code::InvalidArgument,
                "etcdserver: user name is empty",
                "write etcd://user:password@",
            ),
            (
                Code::DataLoss,
                "etcdserver: corrupt cluster",
                "restore the cluster",
            ),
            (
                Code::InvalidArgument,
                "etcdserver: request is too large",
                "allow larger requests",
            ),
        ] {
            let error = explained(code, message);
            assert!(error.is_permanent(), "{message}");
            assert!(error.to_string().contains(advice), "{error}");
        }
    }
}
