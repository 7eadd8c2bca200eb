//! Errors as RFC 9457 problems.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;
use vesta_intf::{ErrorKind, IdError};

/// Default time before a retry of a 503: a drained server is usually replaced, and a lost machine ID usually
/// re-claimed, within a second.
const RETRY_UNKNOWN: Duration = Duration::from_secs(1);

/// An error in the form of RFC 9457.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "type": "urn:vesta:problem:out-of-range", "title": "Value out of range", "status": 400,
    "detail": "machine must be a whole number 0 to 1023, but is `1024`",
    "kind": "OUT_OF_RANGE", "parameter": "machine"
}))]
pub struct Problem {
    /// URN of the kind.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// Title of the kind; the same for every error of the kind.
    #[schema(value_type = String)]
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// Description of this error, and how to fix it.
    pub detail: String,
    /// Stable name of the kind, the same as over gRPC, for programs to branch on.
    #[schema(value_type = String)]
    pub kind: &'static str,
    /// The offending parameter or member, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<Cow<'static, str>>,
    /// Minimum delay before a retry, in milliseconds. `Retry-After` gives it in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl Problem {
    /// The media type of RFC 9457.
    pub const MEDIA: &'static str = "application/problem+json";

    /// An error of a kind.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self::of_http(kind.http_status(), kind.name(), kind.title(), detail)
    }

    /// An error that only HTTP has, with its own kind.
    fn of_http(
        status: u16,
        kind: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        let urn = kind.to_ascii_lowercase().replace('_', "-");
        Self {
            type_uri: format!("urn:vesta:problem:{urn}"),
            title,
            status,
            detail: detail.into(),
            kind,
            parameter: None,
            retry_after_ms: None,
        }
    }

    /// The same, about a parameter or member.
    #[must_use]
    pub fn about(mut self, parameter: impl Into<Cow<'static, str>>) -> Self {
        self.parameter = Some(parameter.into());
        self
    }

    /// 403: the request's `Host` is not a name of this listener.
    pub fn foreign_host() -> Self {
        let detail = "the header host must name this listener by an address, by localhost, or by a name in \
                      the setting hosts (--hosts)";
        Self::new(ErrorKind::PermissionDenied, detail)
    }

    /// 405: the path supports other methods.
    pub fn method_not_allowed(allowed: &str) -> Self {
        let detail = format!("this path supports {allowed}");
        Self::of_http(405, "METHOD_NOT_ALLOWED", "Method not allowed", detail)
    }

    /// 408: the body did not arrive in time.
    pub fn body_too_slow(limit: Duration) -> Self {
        let detail = format!("the body must arrive within {} ms", limit.as_millis());
        Self::of_http(408, "REQUEST_TIMEOUT", "Request too slow", detail)
    }

    /// 413: the body is larger than the limit in bytes.
    pub fn body_too_large(limit: usize) -> Self {
        let detail = format!("the body must not be larger than {limit} bytes");
        Self::of_http(413, "PAYLOAD_TOO_LARGE", "Payload too large", detail)
    }

    /// 415: the body is not JSON.
    pub fn not_json() -> Self {
        let (kind, title) = ("UNSUPPORTED_MEDIA_TYPE", "Unsupported media type");
        let detail = "send the body as content-type: application/json";
        Self::of_http(415, kind, title, detail)
    }

    /// Value of `Retry-After`. Rounded up: rounded down, a client would retry too early.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after_ms.map(|millis| millis.div_ceil(1000))
    }
}

fn whole_millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

impl From<&IdError> for Problem {
    fn from(error: &IdError) -> Self {
        let mut problem = Self::new(error.kind(), error.to_string());
        let unknown = (problem.status == 503).then_some(RETRY_UNKNOWN);
        problem.retry_after_ms = error.retry_after().or(unknown).map(whole_millis);
        match error {
            IdError::OutOfRange { field, .. } | IdError::Invalid { field, .. } => {
                problem.about(*field)
            }
            _ => problem,
        }
    }
}

impl From<IdError> for Problem {
    fn from(error: IdError) -> Self {
        Self::from(&error)
    }
}

// In a `Result` a box keeps it small.
impl From<IdError> for Box<Problem> {
    fn from(error: IdError) -> Self {
        Box::new(error.into())
    }
}
