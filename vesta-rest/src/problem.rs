//! Errors as RFC 9457 `application/problem+json`. Status and kind come from the one table in
//! vesta-intf; errors of HTTP alone (405, 408, 413, 415) are added here.

use std::fmt;
use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, ResponseError};
use vesta_boot::Denied;
use vesta_intf::{ErrorKind, IdError};

use crate::dto::ProblemBody;

/// The media type of RFC 9457.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// Default `Retry-After` of a 503: a drained server is usually replaced, and a lost machine ID
/// usually re-claimed, within a second.
const RETRY_UNKNOWN: Duration = Duration::from_secs(1);

/// An error response.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    kind: ErrorKind,
    /// The kind's stable name; the errors of HTTP alone have names of their own.
    name: &'static str,
    title: &'static str,
    // Errors travel by value: boxed text keeps them small.
    detail: Box<str>,
    parameter: Option<Box<str>>,
    retry_after: Option<Duration>,
    allow: Option<&'static str>,
    challenge: Option<&'static str>,
}

impl Problem {
    fn of_kind(kind: ErrorKind, detail: impl Into<Box<str>>) -> Self {
        Self {
            status: StatusCode::from_u16(kind.http_status())
                .expect("the table of kinds holds statuses from 400 to 599"),
            kind,
            name: kind.name(),
            title: title_of(kind),
            detail: detail.into(),
            parameter: None,
            retry_after: None,
            allow: None,
            challenge: None,
        }
    }

    /// An error of HTTP alone.
    fn of_http(
        status: StatusCode,
        name: &'static str,
        title: &'static str,
        detail: impl Into<Box<str>>,
    ) -> Self {
        Self { status, name, title, ..Self::of_kind(ErrorKind::Invalid, detail) }
    }

    /// 400: a parameter or member that cannot be read, or is missing, repeated or unknown.
    pub fn invalid(parameter: &str, detail: impl Into<Box<str>>) -> Self {
        Self { parameter: Some(parameter.into()), ..Self::of_kind(ErrorKind::Invalid, detail) }
    }

    /// 400: a number that does not fit.
    pub fn out_of_range(parameter: &str, detail: impl Into<Box<str>>) -> Self {
        Self { parameter: Some(parameter.into()), ..Self::of_kind(ErrorKind::OutOfRange, detail) }
    }

    /// 400: a body that cannot be read.
    pub fn bad_body(detail: impl Into<Box<str>>) -> Self {
        Self::of_kind(ErrorKind::Invalid, detail)
    }

    /// 404: nothing is at this path.
    pub fn no_such_path(path: &str) -> Self {
        let path = crate::params::quoted(path);
        Self::of_kind(
            ErrorKind::NotFound,
            format!("nothing is at {path}; GET / lists the endpoints"),
        )
    }

    /// 405, with the methods that this path has.
    pub fn method_not_allowed(allow: &'static str) -> Self {
        Self {
            allow: Some(allow),
            ..Self::of_http(
                StatusCode::METHOD_NOT_ALLOWED,
                "METHOD_NOT_ALLOWED",
                "Method not allowed",
                format!("this path answers {allow}"),
            )
        }
    }

    /// 408: the body did not arrive in time.
    pub fn body_too_slow(limit: Duration) -> Self {
        Self::of_http(
            StatusCode::REQUEST_TIMEOUT,
            "REQUEST_TIMEOUT",
            "Request too slow",
            format!("the body must arrive within {} ms", limit.as_millis()),
        )
    }

    /// 413: the body is larger than the limit in bytes.
    pub fn body_too_large(limit: usize) -> Self {
        Self::of_http(
            StatusCode::PAYLOAD_TOO_LARGE,
            "PAYLOAD_TOO_LARGE",
            "Payload too large",
            format!("the body must not be larger than {limit} bytes"),
        )
    }

    /// 415: the body is not JSON.
    pub fn not_json() -> Self {
        Self::of_http(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UNSUPPORTED_MEDIA_TYPE",
            "Unsupported media type",
            "send the body as content-type: application/json",
        )
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Delay after which another attempt makes sense, where it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The kind, for the metrics; errors of HTTP alone count as [`ErrorKind::Invalid`].
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The response: status, `Retry-After`, `Allow` or `WWW-Authenticate` where they belong, and the
    /// body.
    pub fn response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status);
        response.insert_header((header::CONTENT_TYPE, PROBLEM_JSON));
        response.insert_header((header::CACHE_CONTROL, "no-store"));
        if let Some(retry_after) = self.retry_after {
            response.insert_header((header::RETRY_AFTER, whole_seconds(retry_after)));
        }
        if let Some(challenge) = self.challenge {
            response.insert_header((header::WWW_AUTHENTICATE, challenge));
        }
        if let Some(allow) = self.allow {
            response.insert_header((header::ALLOW, allow));
        }
        response
            .body(serde_json::to_vec(&self.body()).expect("strings and numbers always serialise"))
    }

    /// The response body.
    pub fn body(&self) -> ProblemBody<'_> {
        ProblemBody {
            type_uri: format!(
                "urn:vesta:problem:{}",
                self.name.to_ascii_lowercase().replace('_', "-")
            ),
            title: self.title,
            status: self.status.as_u16(),
            detail: &self.detail,
            kind: self.name,
            parameter: self.parameter.as_deref(),
            retry_after_ms: self.retry_after.map(whole_millis),
        }
    }
}

/// `Retry-After` in whole seconds; rounded down, a client would come too early.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

fn whole_millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

fn title_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::SequenceUsedUp => "Every ID of this moment is used",
        ErrorKind::AwaitingLease => "Waiting for the store",
        ErrorKind::ClockBehind => "The server's clock is behind",
        ErrorKind::OutOfRange => "Value out of range",
        ErrorKind::Invalid => "Invalid request",
        ErrorKind::TimeExhausted => "The layout's time field has run out",
        ErrorKind::Sealed => "The generator has stopped",
        ErrorKind::DeadlineExceeded => "Too late",
        ErrorKind::NotFound => "Not found",
        ErrorKind::Unsupported => "Not offered here",
        ErrorKind::Unauthenticated => "Credentials needed",
        ErrorKind::PermissionDenied => "Not allowed",
        ErrorKind::Unavailable => "Unavailable",
        _ => "Internal error",
    }
}

impl From<IdError> for Problem {
    fn from(error: IdError) -> Self {
        let kind = error.kind();
        let retry_after = error.retry_after().or_else(|| {
            (kind.http_status() == StatusCode::SERVICE_UNAVAILABLE.as_u16())
                .then_some(RETRY_UNKNOWN)
        });
        let parameter = match &error {
            IdError::OutOfRange { field, .. } | IdError::Invalid { field, .. } => {
                Some((*field).into())
            }
            _ => None,
        };
        Self { retry_after, parameter, ..Self::of_kind(kind, error.to_string()) }
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let challenge = Some(denied.challenge());
        Self { challenge, ..Self::from(IdError::from(denied)) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        self.response()
    }
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use serde_json::Value;
    use vesta_intf::{NotReady, NotReadyReason};

    use super::*;

    async fn render(error: IdError) -> (u16, Option<String>, Value) {
        let response = Problem::from(error).response();
        let status = response.status().as_u16();
        assert_eq!(response.headers().get("content-type").unwrap(), PROBLEM_JSON);
        let retry_after =
            response.headers().get("retry-after").map(|v| v.to_str().unwrap().to_owned());
        let body = to_bytes(response.into_body()).await.unwrap();
        (status, retry_after, serde_json::from_slice(&body).unwrap())
    }

    #[actix_web::test]
    async fn not_ready_carries_retry_after_in_whole_seconds_rounded_up_and_in_milliseconds() {
        for (wait, seconds, millis) in [
            (Duration::from_micros(1), "1", 1),
            (Duration::from_millis(999), "1", 999),
            (Duration::from_millis(1000), "1", 1000),
            (Duration::from_millis(1001), "2", 1001),
        ] {
            let not_ready = NotReady { retry_after: wait, why: NotReadyReason::SequenceUsedUp };
            let (status, retry_after, body) = render(not_ready.into()).await;
            assert_eq!((status, retry_after.as_deref()), (429, Some(seconds)));
            assert_eq!(body["retry_after_ms"], millis);
            assert_eq!(body["kind"], "SEQUENCE_USED_UP");
            assert_eq!(body["type"], "urn:vesta:problem:sequence-used-up");
            assert_eq!(body["status"], 429);
        }
    }

    #[actix_web::test]
    async fn a_stopped_generator_is_a_503_that_invites_another_attempt() {
        let (status, retry_after, body) =
            render(IdError::Sealed { reason: "shut down".into() }).await;
        assert_eq!((status, retry_after.as_deref()), (503, Some("1")));
        assert_eq!(body["detail"], "the generator has stopped: shut down");
    }

    #[actix_web::test]
    async fn an_error_that_cannot_be_retried_has_no_retry_after() {
        let (status, retry_after, body) = render(IdError::TimeExhausted).await;
        assert_eq!((status, retry_after), (500, None));
        assert_eq!(body.get("retry_after_ms"), None);
    }

    #[test]
    fn every_kind_has_a_title_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for kind in ErrorKind::all() {
            assert!(seen.insert(title_of(kind)), "{kind:?}");
        }
    }
}
