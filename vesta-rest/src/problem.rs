//! Errors as RFC 9457 `application/problem+json`. Status and kind come from the one table in
//! vesta-intf; errors of HTTP alone (405, 408, 413, 415) are added here.

use std::fmt;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName};
use vesta_boot::Denied;
use vesta_intf::{ErrorKind, IdError, is_control};

use crate::dto::ProblemBody;
use crate::responses::{no_store, ok};

/// The media type of RFC 9457.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// Default `Retry-After` of a 503: a drained server is usually replaced, and a lost machine ID
/// usually re-claimed, within a second.
const RETRY_UNKNOWN: Duration = Duration::from_secs(1);

/// Maximum length of a caller's input repeated in an error, in characters.
const QUOTED: usize = 40;

/// Quotes input for an error: short, in backquotes, without control characters.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("`");
    out.extend(
        text.chars()
            .take(QUOTED)
            .map(|c| if is_control(c) { '\u{fffd}' } else { c }),
    );
    out.push_str(if text.chars().nth(QUOTED).is_some() {
        "…`"
    } else {
        "`"
    });
    out
}

/// An error response.
#[derive(Debug, Clone)]
pub struct Problem {
    kind: ErrorKind,
    /// `Allow` or `WWW-Authenticate`.
    header: Option<(HeaderName, &'static str)>,
    // Errors travel by value: a box keeps them small.
    body: Box<ProblemBody>,
    /// Media type and body for clients of another system, which expect errors in a 200.
    told: Option<Box<(&'static str, String)>>,
}

impl Problem {
    fn of_kind(kind: ErrorKind, detail: impl Into<String>) -> Self {
        let mut problem = Self::of_http(kind.http_status(), kind.name(), kind.title(), detail);
        problem.kind = kind;
        problem
    }

    /// An error that only HTTP has, with its own kind.
    fn of_http(
        status: u16,
        name: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        let urn = name.to_ascii_lowercase().replace('_', "-");
        let body = Box::new(ProblemBody {
            type_uri: format!("urn:vesta:problem:{urn}"),
            title,
            status,
            detail: detail.into(),
            kind: name,
            parameter: None,
            retry_after_ms: None,
        });
        Self {
            kind: ErrorKind::Invalid,
            header: None,
            body,
            told: None,
        }
    }

    fn about(mut self, parameter: &str) -> Self {
        self.body.parameter = Some(parameter.to_owned());
        self
    }

    /// 400: a parameter or member that cannot be read, or is missing, repeated or unknown.
    pub fn invalid(parameter: &str, detail: impl Into<String>) -> Self {
        Self::of_kind(ErrorKind::Invalid, detail).about(parameter)
    }

    /// 400: a number that does not fit.
    pub fn out_of_range(parameter: &str, detail: impl Into<String>) -> Self {
        Self::of_kind(ErrorKind::OutOfRange, detail).about(parameter)
    }

    /// 400: a body that cannot be read.
    pub fn bad_body(detail: impl Into<String>) -> Self {
        Self::of_kind(ErrorKind::Invalid, detail)
    }

    /// 403: the request's `Host` is not a name of this listener.
    pub fn foreign_host() -> Self {
        let detail = "the header host must name this listener by an address, by localhost, or by a name in \
                      the setting hosts (--hosts)";
        Self::of_kind(ErrorKind::PermissionDenied, detail)
    }

    /// 404: unknown path of a server with this base path.
    pub fn no_such_path(base: &str, path: &str) -> Self {
        let path = quoted(path);
        let detail = format!("unknown path {path}; GET {base}/docs/ lists the endpoints");
        Self::of_kind(ErrorKind::NotFound, detail)
    }

    /// 405, with the methods that this path supports.
    pub fn method_not_allowed(allow: &'static str) -> Self {
        let detail = format!("this path supports {allow}");
        let problem = Self::of_http(405, "METHOD_NOT_ALLOWED", "Method not allowed", detail);
        Self {
            header: Some((header::ALLOW, allow)),
            ..problem
        }
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
        let detail = "send the body as content-type: application/json";
        Self::of_http(
            415,
            "UNSUPPORTED_MEDIA_TYPE",
            "Unsupported media type",
            detail,
        )
    }

    /// The kind, for the metrics; errors of HTTP alone count as [`ErrorKind::Invalid`].
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The response body.
    pub fn body(&self) -> &ProblemBody {
        &self.body
    }

    /// The same error for clients of another system, which look for it in the body of a 200.
    pub(crate) fn told_as(self, media: &'static str, body: String) -> Self {
        Self {
            told: Some(Box::new((media, body))),
            ..self
        }
    }

    /// The response: status, `Retry-After`, `Allow` or `WWW-Authenticate` where they belong, and the
    /// body.
    pub fn response(&self) -> HttpResponse {
        if let Some((media, body)) = self.told.as_deref() {
            return no_store(ok(media, body.clone()));
        }
        let status = StatusCode::from_u16(self.body.status).expect("one of 400 to 599");
        let mut response = HttpResponse::build(status);
        response.insert_header((header::CONTENT_TYPE, PROBLEM_JSON));
        response.insert_header((header::CACHE_CONTROL, "no-store"));
        if let Some(millis) = self.body.retry_after_ms {
            // Rounded up: rounded down, a client would retry too early.
            response.insert_header((header::RETRY_AFTER, millis.div_ceil(1000)));
        }
        if let Some((name, value)) = &self.header {
            response.insert_header((name, *value));
        }
        response.body(serde_json::to_vec(&self.body).expect("strings and numbers always serialise"))
    }
}

fn whole_millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

impl From<IdError> for Problem {
    fn from(error: IdError) -> Self {
        let mut problem = Self::of_kind(error.kind(), error.to_string());
        let unknown = (problem.body.status == 503).then_some(RETRY_UNKNOWN);
        problem.body.retry_after_ms = error.retry_after().or(unknown).map(whole_millis);
        match error {
            IdError::OutOfRange { field, .. } | IdError::Invalid { field, .. } => {
                problem.about(field)
            }
            _ => problem,
        }
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let header = Some((header::WWW_AUTHENTICATE, denied.challenge()));
        Self {
            header,
            ..Self::from(IdError::from(denied))
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.body.detail)
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
        assert_eq!(
            response.headers().get("content-type").unwrap(),
            PROBLEM_JSON
        );
        let retry_after = response
            .headers()
            .get("retry-after")
            .map(|v| v.to_str().unwrap().to_owned());
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
            let not_ready = NotReady {
                retry_after: wait,
                why: NotReadyReason::SequenceUsedUp,
            };
            let (status, retry_after, body) = render(not_ready.into()).await;
            assert_eq!((status, retry_after.as_deref()), (429, Some(seconds)));
            assert_eq!(body["retryAfterMs"], millis);
            assert_eq!(body["kind"], "SEQUENCE_USED_UP");
            assert_eq!(body["type"], "urn:vesta:problem:sequence-used-up");
            assert_eq!(body["status"], 429);
        }
    }

    #[actix_web::test]
    async fn a_stopped_generator_is_a_503_that_invites_another_attempt() {
        let (status, retry_after, body) = render(IdError::Sealed {
            reason: "shut down".into(),
        })
        .await;
        assert_eq!((status, retry_after.as_deref()), (503, Some("1")));
        assert_eq!(body["detail"], "the generator has stopped: shut down");
    }

    #[actix_web::test]
    async fn an_error_that_cannot_be_retried_has_no_retry_after() {
        let (status, retry_after, body) = render(IdError::TimeExhausted).await;
        assert_eq!((status, retry_after), (500, None));
        assert_eq!(body.get("retryAfterMs"), None);
    }

    #[test]
    fn an_error_repeats_only_the_start_of_its_input() {
        let text = quoted(&"x\n".repeat(500));
        assert!(
            text.chars().count() <= QUOTED + 3 && !text.contains('\n'),
            "{text}"
        );
    }
}
