//! The gRPC protocol: messages, client and server stubs, and the encoding of [`IdError`].
//!
//! An error is a `tonic::Status` with the code from this crate's one table and a message for humans. Its details are
//! `google.rpc.ErrorInfo` (domain `vesta`, reason = the name of the kind), `google.rpc.BadRequest` with the field of
//! a bad request and, where a retry can succeed, `google.rpc.RetryInfo`. Programs never need to parse the message.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::error::{EXISTS, MISSING, STOPPED};
use crate::{ErrorKind, Id, IdError, IdRun, MakeId, NotReady, NotReadyReason};

/// The generated code: messages, `id_service_client`, `id_service_server`.
#[allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    clippy::all,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_lossless,
    clippy::cast_precision_loss
)]
pub mod v1 {
    include!("generated/vesta.v1.rs");
}

/// Shows that there is a secret, but not which.
impl fmt::Debug for v1::PutEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutEntry")
            .field("key", &self.key)
            .field("old", &self.old)
            .field("new", &self.new)
            .field("secret", &self.secret.as_ref().map(|_| "…"))
            .finish()
    }
}

/// The protocol as a `FileDescriptorSet`, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/vesta.v1.bin");

/// The domain of `google.rpc.ErrorInfo` in Vesta's errors.
pub const ERROR_DOMAIN: &str = "vesta";

impl From<IdError> for Status {
    fn from(error: IdError) -> Self {
        let kind = error.kind();
        let mut details = ErrorDetails::with_error_info(kind.name(), ERROR_DOMAIN, HashMap::new());
        if let Some(after) = error.retry_after() {
            details.set_retry_info(Some(after));
        }
        if let IdError::OutOfRange { field, .. } | IdError::Invalid { field, .. } = &error {
            details.add_bad_request_violation(*field, error.to_string());
        }
        Status::with_error_details(Code::from(kind.grpc_code()), error.to_string(), details)
    }
}

/// Advice for a person about an error of h2, httparse or rustls: another scheme, another port or another certificate.
pub fn transport_hint(error: &str) -> &'static str {
    let has = |part| error.contains(part);
    if has("requires HTTP/1.1") || has("HTTP_1_1_REQUIRED") {
        "; this port speaks REST: take that of gRPC, grpc.listen (50051 by default)"
    } else if has("InvalidContentType") {
        "; this port has no TLS: write http:// (a pool: vesta://)"
    } else if has("frame with invalid size") || has("invalid HTTP version") {
        "; this port has TLS: write https:// (a pool: vestas://)"
    } else if has("CaUsedAsEndEntity") {
        "; the server shows a CA as its own certificate: make it one with basicConstraints CA:FALSE, signed by itself or \
         by that CA"
    } else if has("UnknownIssuer") {
        "; its CA is not trusted here: name the file of that CA (a program: ca_certificate; a command: --ca; a pool: ?ca=FILE)"
    } else if has("NotValidForName") {
        "; the certificate is for another host name: connect by a name that it has"
    } else {
        ""
    }
}

/// The error kind of a status: from its details, or, for a status without them (from a proxy or the
/// transport), from its code.
#[must_use]
pub fn kind_of(status: &Status) -> ErrorKind {
    let info = status
        .get_details_error_info()
        .filter(|info| info.domain == ERROR_DOMAIN);
    let named = info.and_then(|info| ErrorKind::from_name(&info.reason));
    named.unwrap_or_else(|| kind_of_code(status.code()))
}

/// Decodes an error.
impl From<Status> for IdError {
    fn from(status: Status) -> Self {
        let retry_after = status
            .get_details_retry_info()
            .and_then(|info| info.retry_delay);
        let kind = kind_of(&status);
        let not_ready = |why| {
            IdError::NotReady(NotReady {
                retry_after: retry_after.unwrap_or(Duration::ZERO),
                why,
            })
        };
        let message: Box<str> = status.message().into();
        let before = |end| message.strip_suffix(end).unwrap_or(&message).into();
        match kind {
            ErrorKind::SequenceUsedUp => not_ready(NotReadyReason::SequenceUsedUp),
            ErrorKind::AwaitingLease => not_ready(NotReadyReason::AwaitingLease),
            ErrorKind::ClockBehind => not_ready(NotReadyReason::ClockBehind),
            ErrorKind::NotHolder => not_ready(NotReadyReason::NotHolder),
            // The range is not transmitted as numbers; the message contains it.
            ErrorKind::OutOfRange | ErrorKind::Invalid => IdError::Invalid {
                field: "request",
                reason: message,
            },
            ErrorKind::TimeExhausted => IdError::TimeExhausted,
            ErrorKind::Sealed => IdError::Sealed {
                reason: message.strip_prefix(STOPPED).unwrap_or(&message).into(),
            },
            ErrorKind::Reentered => IdError::Reentered,
            ErrorKind::UsedUp => IdError::UsedUp { reason: message },
            ErrorKind::DeadlineExceeded => IdError::DeadlineExceeded,
            ErrorKind::NotFound => IdError::NotFound {
                what: before(MISSING),
            },
            ErrorKind::AlreadyExists => IdError::AlreadyExists {
                what: before(EXISTS),
            },
            ErrorKind::Unsupported => IdError::Unsupported { what: message },
            ErrorKind::Unauthenticated => IdError::Unauthenticated { reason: message },
            ErrorKind::PermissionDenied => IdError::PermissionDenied { reason: message },
            ErrorKind::Unavailable => IdError::Unavailable {
                reason: message,
                retry_after,
                source: Some(Arc::new(status)),
            },
            ErrorKind::Internal => IdError::Internal {
                reason: message,
                source: Some(Arc::new(status)),
            },
        }
    }
}

fn kind_of_code(code: Code) -> ErrorKind {
    match code {
        Code::InvalidArgument | Code::OutOfRange => ErrorKind::Invalid,
        Code::DeadlineExceeded | Code::Cancelled => ErrorKind::DeadlineExceeded,
        Code::NotFound => ErrorKind::NotFound,
        Code::AlreadyExists => ErrorKind::AlreadyExists,
        Code::Unimplemented => ErrorKind::Unsupported,
        Code::Unauthenticated => ErrorKind::Unauthenticated,
        Code::PermissionDenied => ErrorKind::PermissionDenied,
        Code::Unavailable | Code::ResourceExhausted | Code::Aborted => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    }
}

/// A value and its message become each other. A field that one of them gets does not compile until the other has it.
macro_rules! alike {
    ($ours:ident, $theirs:ident: $($field:ident = $there:ident),*) => {
        impl From<$ours> for v1::$theirs {
            fn from($ours { $($field),* }: $ours) -> Self {
                Self { $($there: $field),* }
            }
        }

        impl From<v1::$theirs> for $ours {
            fn from(v1::$theirs { $($there: $field),* }: v1::$theirs) -> Self {
                Self { $($field),* }
            }
        }
    };
}

alike!(IdRun, IdRun: first = first, step = step, count = count);
alike!(Id, Id: version = version, id_type = r#type, gen_method = gen_method, time = time, seq = seq, machine = machine);
alike!(MakeId, MakeIdRequest:
    version = version, id_type = r#type, gen_method = gen_method, time = time, seq = seq, machine = machine);

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost_types::field_descriptor_proto::{Label, Type};
    use prost_types::field_options::JsType;
    use prost_types::{DescriptorProto, FileDescriptorSet};

    use super::*;

    /// 64-bit fields below a message that JavaScript would round, and repeated ones that prost would no longer pack:
    /// it takes `packed` for false where a field has other options.
    fn rounded(message: &DescriptorProto) -> Vec<String> {
        let is_long = |of: Type| {
            matches!(
                of,
                Type::Int64 | Type::Uint64 | Type::Sint64 | Type::Fixed64 | Type::Sfixed64
            )
        };
        let fields = message.field.iter().filter(|field| is_long(field.r#type()));
        let wrong = fields.filter(|field| {
            let options = field.options.clone().unwrap_or_default();
            let unpacked = field.label() == Label::Repeated && options.packed != Some(true);
            options.jstype() != JsType::JsString || unpacked
        });
        let named = wrong.map(|field| format!("{}.{}", message.name(), field.name()));
        named
            .chain(message.nested_type.iter().flat_map(rounded))
            .collect()
    }

    #[test]
    fn every_64_bit_field_is_a_string_in_javascript() {
        let mut files = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("it is generated");
        let own = files
            .file
            .iter_mut()
            .filter(|file| file.package().starts_with("vesta."));
        let mut messages: Vec<_> = own.flat_map(|file| &mut file.message_type).collect();
        let all = |messages: &[&mut DescriptorProto]| {
            messages
                .iter()
                .flat_map(|it| rounded(it))
                .collect::<Vec<_>>()
        };
        assert_eq!(all(&messages), [""; 0]);

        // Planted: a repeated field that is not packed, and one without the option in a message within another.
        let named = |name| messages.iter().position(|message| message.name() == name);
        let [ids, run] = ["GenIdsResponse", "IdRun"].map(|name| named(name).expect("it is there"));
        let mut run = messages[run].clone();
        run.field[1].options = None;
        messages[ids].field[0]
            .options
            .as_mut()
            .expect("some")
            .packed = None;
        messages[ids].nested_type.push(run);
        assert_eq!(all(&messages), ["GenIdsResponse.ids", "IdRun.step"]);
    }

    #[test]
    fn a_sentence_is_the_same_after_the_wire() {
        let reason = || "a reason".into();
        for sent in [
            IdError::Sealed { reason: reason() },
            IdError::UsedUp { reason: reason() },
            IdError::NotFound { what: reason() },
            IdError::AlreadyExists { what: reason() },
            IdError::Unsupported { what: reason() },
        ] {
            let back = IdError::from(Status::from(sent.clone()));
            assert_eq!(
                (back.kind(), back.to_string()),
                (sent.kind(), sent.to_string())
            );
        }
        let of_a_proxy = Status::new(Code::AlreadyExists, "a sentence");
        assert_eq!(IdError::from(of_a_proxy).kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn kind_and_retry_delay_survive_the_wire() {
        for why in [
            NotReadyReason::SequenceUsedUp,
            NotReadyReason::AwaitingLease,
            NotReadyReason::ClockBehind,
            NotReadyReason::NotHolder,
        ] {
            let sent = IdError::from(NotReady {
                retry_after: Duration::from_micros(1500),
                why,
            });
            let back = IdError::from(Status::from(sent.clone()));
            assert_eq!(back.kind(), sent.kind());
            assert_eq!(back.retry_after(), sent.retry_after());
        }
        let sent = IdError::OutOfRange {
            field: "count",
            value: 0,
            min: 1,
            max: 10_000,
        };
        let status = Status::from(sent);
        assert_eq!(status.code(), Code::InvalidArgument);
        let violations = status
            .get_details_bad_request()
            .expect("the field")
            .field_violations;
        assert_eq!((violations.len(), &*violations[0].field), (1, "count"));
        assert_eq!(violations[0].description, status.message());
        let back = IdError::from(status);
        assert!(
            back.to_string()
                .contains("count must be 1 to 10000, but is 0"),
            "{back}"
        );
    }

    #[test]
    fn only_a_bad_request_names_a_field() {
        let named = |error: IdError| Status::from(error).get_details_bad_request().is_some();
        assert!(named(IdError::invalid("tag", "it must not be empty")));
        assert!(!named(IdError::TimeExhausted));
    }

    #[test]
    fn a_refusal_keeps_its_message() {
        let sent = IdError::PermissionDenied {
            reason: "the token `ci` has no scope `read`".into(),
        };
        let status = Status::from(sent.clone());
        assert_eq!(status.code(), Code::PermissionDenied);
        assert_eq!(IdError::from(status).to_string(), sent.to_string());
        let back = IdError::from(Status::unauthenticated("no token"));
        assert_eq!(
            (back.kind(), &*back.to_string()),
            (ErrorKind::Unauthenticated, "no token")
        );
    }

    #[test]
    fn a_transport_status_is_mapped_by_its_code() {
        let back = IdError::from(Status::unavailable("connection refused"));
        assert_eq!(back.kind(), ErrorKind::Unavailable);
        assert_eq!(back.retry_after(), None);
        assert_eq!(back.to_string(), "connection refused");
    }
}
