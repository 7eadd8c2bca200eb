//! Maps Redis errors to `StoreError`.

use redis::RedisError;
use vesta_service::lease::StoreError;

use crate::backends::ServerMessage;

/// Refusal of a key that would expire.
pub(super) fn expires(key: &str) -> StoreError {
    StoreError::permanent(format!(
        "key `{key}` would expire, and IDs could repeat; run `PERSIST {key}`, and do not set times to \
         live here"
    ))
}

/// Refusal of segment tags.
pub(super) fn forgetful(doubts: &[&str]) -> StoreError {
    StoreError::permanent(format!(
        "this Redis server may forget which numbers it handed out, and hand them out again: {}. \
         Segment tags need a server without replicas, with appendonly yes and appendfsync always",
        doubts.join("; ")
    ))
}

/// An error of a request.
pub(super) fn explain(error: RedisError) -> StoreError {
    let Some(code) = error.code() else {
        return StoreError::unavailable("Redis does not answer", error);
    };
    let detail = error.detail().unwrap_or_default();
    answered(code, detail, ServerMessage(format!("{code} {detail}")))
}

/// Maps an error of a request about a key. A key of the wrong type is named, because the user can
/// fix that.
pub(super) fn explain_about(key: &str, to_do: &str, error: RedisError) -> StoreError {
    // Some versions wrap the errors of commands in a script.
    if format!("{error}").contains("WRONGTYPE") {
        return StoreError::permanent(format!("key `{key}` is {to_do}"));
    }
    explain(error)
}

/// Maps an error of the request with the password, which some servers repeat in their reply.
pub(super) fn explain_login(error: RedisError) -> StoreError {
    let Some(code) = error.code() else {
        return explain(error);
    };
    let detail = error.detail().unwrap_or_default();
    if detail.contains("without any password configured") {
        return StoreError::permanent(
            "the URL has a password, but Redis has none; set one there, or remove it from the URL",
        );
    }
    // Messages of older servers. Other errors with this code may come from a proxy.
    let former = ["invalid password", "unknown command", "wrong number"];
    if code == "WRONGPASS" || code == "ERR" && former.iter().any(|it| detail.starts_with(it)) {
        return StoreError::permanent(format!(
            "Redis refuses the user or the password ({code}); check the URL"
        ));
    }
    let harmless = if no_connection_left(code, detail) {
        detail
    } else {
        ""
    };
    answered(code, harmless, ServerMessage(code.into()))
}

fn no_connection_left(code: &str, detail: &str) -> bool {
    code == "ERR" && detail.starts_with("max number of clients")
}

fn answered(code: &str, detail: &str, said: ServerMessage) -> StoreError {
    let meaning = match code {
        "LOADING" => "Redis is still loading its data",
        "READONLY" => "this Redis server is a replica; a fail-over may be in progress",
        "MASTERDOWN" => "this Redis server is a replica that has lost its primary",
        "CLUSTERDOWN" | "TRYAGAIN" | "ASK" => "the cluster is down or being resharded",
        "MOVED" => "the cluster keeps this namespace on another node; write that node into the URL",
        "OOM" => "Redis is out of memory; raise its maxmemory",
        "MISCONF" => "Redis cannot write to its disk; see its log",
        "NOREPLICAS" => "Redis has fewer replicas than its min-replicas-to-write",
        "BUSY" => "Redis is busy running a script",
        "NOAUTH" => {
            return StoreError::permanent(
                "Redis requires a password; write redis://:password@host:6379/0, or with a user \
                 redis://user:password@host:6379/0",
            );
        }
        "WRONGPASS" | "DENIED" => {
            return StoreError::permanent(format!(
                "Redis refuses: {said}; grant this user the permission"
            ));
        }
        "NOPERM" => "Redis refuses; grant this user the permission",
        "ERR" if no_connection_left(code, detail) => {
            "Redis has no free connection; raise its maxclients"
        }
        "ERR" if detail.starts_with("unknown command") => {
            return StoreError::permanent(format!(
                "Redis refuses: {said}; it must be version 5 or newer and allow scripts"
            ));
        }
        _ => "Redis failed",
    };
    StoreError::unavailable(meaning, said)
}

#[cfg(test)]
mod tests {
    use redis::{ErrorKind, ServerErrorKind, Value};

    use super::*;

    /// Parses a reply line like the client does.
    fn said(line: &str) -> RedisError {
        match redis::parse_redis_value(format!("-{line}\r\n").as_bytes()) {
            Ok(Value::ServerError(error)) => error.into(),
            other => panic!("no error: {other:?}"),
        }
    }

    #[test]
    fn transient_errors_are_unavailable() {
        for (line, meaning) in [
            (
                "LOADING Redis is loading the dataset in memory",
                "still loading",
            ),
            (
                "READONLY You can't write against a read only replica.",
                "fail-over",
            ),
            ("MASTERDOWN Link with MASTER is down", "lost its primary"),
            ("CLUSTERDOWN The cluster is down", "cluster is down"),
            ("MOVED 3999 127.0.0.1:6381", "another node"),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                "raise its maxmemory",
            ),
            (
                "MISCONF Errors writing to the AOF file: No space left on device",
                "its disk",
            ),
            (
                "NOREPLICAS Not enough good replicas to write.",
                "min-replicas-to-write",
            ),
            ("BUSY Redis is busy running a script.", "running a script"),
            ("ERR max number of clients reached", "raise its maxclients"),
            ("ERR upstream failure", "Redis failed"),
            (
                "NOPERM User vesta has no permissions to run the 'eval' command",
                "grant this user",
            ),
            ("SOMETHING new", "Redis failed: SOMETHING new"),
        ] {
            let error = explain(said(line));
            assert!(!error.is_permanent(), "{error}");
            assert!(error.to_string().contains(meaning), "{error}");
            assert!(!explain_login(said(line)).is_permanent(), "{line}");
        }
        for error in [
            std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into(),
            std::io::Error::from(std::io::ErrorKind::WouldBlock).into(),
            RedisError::from((ErrorKind::Parse, "no Redis")),
        ] {
            assert!(!explain(error).is_permanent());
        }
    }

    #[test]
    fn errors_that_need_an_operator_are_permanent_with_advice() {
        for (line, advice) in [
            ("NOAUTH Authentication required.", "redis://:password@host"),
            (
                "DENIED Redis is running in protected mode",
                "grant this user",
            ),
            (
                "ERR unknown command 'EVALSHA', with args beginning with: ",
                "allow scripts",
            ),
        ] {
            let error = explain(said(line));
            assert!(error.is_permanent(), "{error}");
            assert!(error.to_string().contains(advice), "{error}");
        }
    }

    #[test]
    fn a_reply_that_repeats_the_password_is_not_passed_on() {
        for line in [
            "ERR unknown command 'AUTH', with args beginning with: 'vesta' 'hunter2'",
            "WRONGPASS hunter2 is wrong",
            "NOPERM hunter2",
            "SOMETHING hunter2",
            "OOM hunter2",
        ] {
            let error = explain_login(said(line));
            assert!(
                !format!("{error} {error:?}").contains("hunter2"),
                "{error:?}"
            );
        }
        let none =
            "ERR AUTH <password> called without any password configured for the default user.";
        assert!(
            explain_login(said(none))
                .to_string()
                .contains("remove it from the URL")
        );
        let kind = ErrorKind::Server(ServerErrorKind::NoPerm);
        assert_eq!(said("NOPERM x").kind(), kind);
    }
}
