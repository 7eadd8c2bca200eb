//! Problems as responses, with their headers.

use std::fmt;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName};
use vesta_boot::{Denied, answers};
use vesta_intf::{ErrorKind, IdError, is_control};

use crate::responses::{no_store, ok};

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
    /// For the metrics; errors of HTTP alone count as [`ErrorKind::Invalid`].
    kind: ErrorKind,
    /// `Allow` or `WWW-Authenticate`.
    header: Option<(HeaderName, &'static str)>,
    // Errors travel by value: a box keeps them small.
    body: Box<answers::Problem>,
    /// Media type and body for clients of another system, which expect errors in a 200.
    told: Option<Box<(&'static str, String)>>,
}

impl From<answers::Problem> for Problem {
    fn from(body: answers::Problem) -> Self {
        Self {
            kind: ErrorKind::from_name(body.kind).unwrap_or(ErrorKind::Invalid),
            header: None,
            body: Box::new(body),
            told: None,
        }
    }
}

impl Problem {
    fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        answers::Problem::new(kind, detail).into()
    }

    fn about(mut self, parameter: &str) -> Self {
        self.body.parameter = Some(parameter.to_owned().into());
        self
    }

    /// 400: a parameter or member that cannot be read, or is missing, repeated or unknown.
    pub fn invalid(parameter: &str, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, detail).about(parameter)
    }

    /// 400: a number that does not fit.
    pub fn out_of_range(parameter: &str, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::OutOfRange, detail).about(parameter)
    }

    /// 400: a body that cannot be read.
    pub fn bad_body(detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, detail)
    }

    /// 403: a page of this origin may not call.
    pub(crate) fn foreign_origin(origin: &str) -> Self {
        let origin = quoted(origin);
        let detail =
            format!("the setting cors.origins (--cors-origins) does not name the origin {origin}");
        Self::new(ErrorKind::PermissionDenied, detail)
    }

    /// 404: unknown path of a server with this base path.
    pub fn no_such_path(base: &str, path: &str) -> Self {
        let path = quoted(path);
        let detail = format!("unknown path {path}; GET {base}/docs/ lists the endpoints");
        Self::new(ErrorKind::NotFound, detail)
    }

    /// 405, with the methods that this path supports.
    pub fn method_not_allowed(allow: &'static str) -> Self {
        Self {
            header: Some((header::ALLOW, allow)),
            ..answers::Problem::method_not_allowed(allow).into()
        }
    }

    /// The kind, for the metrics; errors of HTTP alone count as [`ErrorKind::Invalid`].
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The response body.
    pub fn body(&self) -> &answers::Problem {
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
        response.insert_header((header::CONTENT_TYPE, answers::Problem::MEDIA));
        response.insert_header((header::CACHE_CONTROL, "no-store"));
        if let Some(seconds) = self.body.retry_after_seconds() {
            response.insert_header((header::RETRY_AFTER, seconds));
        }
        if let Some((name, value)) = &self.header {
            response.insert_header((name, *value));
        }
        response.body(serde_json::to_vec(&self.body).expect("strings and numbers always serialise"))
    }
}

impl From<IdError> for Problem {
    fn from(error: IdError) -> Self {
        answers::Problem::from(error).into()
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
    use std::time::Duration;

    use actix_web::body::to_bytes;
    use serde_json::Value;
    use vesta_intf::{NotReady, NotReadyReason};

    use super::*;

    async fn render(error: IdError) -> (u16, Option<String>, Value) {
        let response = Problem::from(error).response();
        let status = response.status().as_u16();
        assert_eq!(
            response.headers().get("content-type").unwrap(),
            answers::Problem::MEDIA
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
