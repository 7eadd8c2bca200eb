//! The call that a handler answers, and what all of them share.

use std::cell::OnceCell;

use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::web::{self, Bytes, Payload};
use actix_web::{HttpMessage as _, HttpRequest};
use vesta_boot::{Caller, Denied, Running, Scopes};

use crate::endpoints::Verb;
use crate::openapi;
use crate::params::{MAX_BODY, Params};
use crate::problem::Problem;

/// The program that `app::configure` added to the application.
pub(crate) fn running(req: &HttpRequest) -> &Running {
    req.app_data::<web::Data<Running>>().expect("configure() adds it to every application")
}

/// Checks a request's token, if the server requires tokens.
pub(crate) fn authorize(
    running: &Running,
    headers: &HeaderMap,
    needs: Scopes,
) -> Result<Caller, Denied> {
    let token = headers.get_all(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    running.security.check(token, needs)
}

/// A header that is text.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// An authorized request with checked parameter names and its body.
pub(crate) struct Call {
    pub(crate) req: HttpRequest,
    pub(crate) caller: Caller,
    pub(crate) params: Params,
    /// JSON, or empty.
    pub(crate) body: Bytes,
}

impl Call {
    pub(crate) fn running(&self) -> &Running {
        running(&self.req)
    }
}

/// Reads the body that an endpoint takes, JSON or a form, within the limits of size and time. Any other
/// is left unread.
pub(crate) async fn body(
    verb: Verb,
    req: &HttpRequest,
    payload: Payload,
) -> Result<Bytes, Problem> {
    let is = |content_type| req.content_type().eq_ignore_ascii_case(content_type);
    match verb {
        // A client that sends no type at all, like a hand-written one, is accepted.
        Verb::Post
            if req.headers().contains_key(header::CONTENT_TYPE) && !is("application/json") =>
        {
            return Err(Problem::not_json());
        }
        Verb::Post => {}
        Verb::Any | Verb::Every if is("application/x-www-form-urlencoded") => {}
        Verb::Any | Verb::Every | Verb::Get => return Ok(Bytes::new()),
    }
    let limit = running(req).config.limits.request_timeout;
    match tokio::time::timeout(limit, payload.to_bytes_limited(MAX_BODY)).await {
        Err(_) => Err(Problem::body_too_slow(limit)),
        Ok(Err(_)) => Err(Problem::body_too_large(MAX_BODY)),
        Ok(Ok(Err(error))) => Err(Problem::bad_body(format!("the body cannot be read: {error}"))),
        Ok(Ok(Ok(body))) => Ok(body),
    }
}

/// The OpenAPI document of the application, made when it is first asked for: a start is faster.
#[derive(Default)]
pub(crate) struct Document(OnceCell<Bytes>);

impl Document {
    pub(crate) fn get(&self, running: &Running) -> Bytes {
        self.0.get_or_init(|| openapi::document(running)).clone()
    }
}
