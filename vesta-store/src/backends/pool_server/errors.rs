//! Maps a pool server's errors to `StoreError`. The class of the real store's error is kept.

use std::error::Error as _;

use tonic::{Code, Status};
use vesta_intf::grpc::transport_hint;
use vesta_service::lease::{StoreError, TWO_STORES};

use crate::backends::ServerMessage;
use crate::backends::channel::whole_story;

/// Maps a status to the error for the caller.
pub(super) fn explain(server: &str, status: &Status) -> StoreError {
    let story = whole_story(status.message(), status.source());
    let hint = match status.source() {
        Some(_) => transport_hint(&story),
        None => "",
    };
    let what = format!("{server}: {story}{hint}");
    let advice = match status.code() {
        Code::Unauthenticated => {
            return StoreError::permanent(format!("{what}; write vesta://:TOKEN@host"));
        }
        // Sent by a pool server only, and for this reason only.
        Code::Aborted => {
            let why = status.message();
            let why = why
                .strip_prefix(TWO_STORES)
                .map_or(why, |it| it.trim_start_matches(": "));
            return StoreError::two_stores(format!("{server} refuses its members: {why}"));
        }
        Code::PermissionDenied | Code::FailedPrecondition | Code::InvalidArgument => {
            return StoreError::permanent(what);
        }
        // Another server of the URL may know it.
        Code::Unimplemented => {
            "no pool server is offered here: not a gRPC listener of Vesta, or of an older version"
        }
        Code::AlreadyExists => "the pool server refuses the change for now",
        Code::ResourceExhausted => "the pool server refuses the request",
        _ => "the pool server does not answer",
    };
    StoreError::unavailable(advice, ServerMessage(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_class_and_advice() {
        for (code, permanent, advice) in [
            (Code::Unauthenticated, true, "vesta://:TOKEN@host"),
            (Code::PermissionDenied, true, "h:1: said"),
            (Code::FailedPrecondition, true, "h:1: said"),
            (Code::InvalidArgument, true, "h:1: said"),
            (Code::Unimplemented, false, "of an older version"),
            (Code::AlreadyExists, false, "refuses the change for now"),
            (Code::ResourceExhausted, false, "refuses the request"),
            (Code::Unavailable, false, "does not answer"),
            (Code::DeadlineExceeded, false, "does not answer"),
        ] {
            let error = explain("h:1", &Status::new(code, "said"));
            assert_eq!(error.is_permanent(), permanent, "{code:?}");
            assert!(!error.is_replaced());
            let text = error.to_string();
            assert!(
                text.contains(advice) && text.contains("h:1: said"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_pool_server_of_a_second_store_stops_its_members() {
        let error = explain(
            "h:1",
            &Status::new(Code::Aborted, "TWO_STORES: it was copied"),
        );
        assert!(error.is_two_stores());
        assert_eq!(
            error.to_string(),
            "TWO_STORES: h:1 refuses its members: it was copied"
        );
    }
}
