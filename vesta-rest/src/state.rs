//! The call that a handler answers, and what all of them share.

use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::web::{self, Bytes, Payload};
use vesta_boot::{Denied, Running, Scopes};

use crate::params::Params;

/// The program that `app::configure` added to the application.
pub(crate) fn running(req: &HttpRequest) -> &Running {
    req.app_data::<web::Data<Running>>().expect("configure() adds it to every application")
}

/// Checks a request's token, if the server requires tokens.
pub(crate) fn authorize(
    running: &Running,
    headers: &HeaderMap,
    needs: Scopes,
) -> Result<(), Denied> {
    let token = headers.get_all(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    running.security.check(token, needs)
}

/// An authorized request with checked parameter names.
pub(crate) struct Call {
    pub(crate) req: HttpRequest,
    pub(crate) params: Params,
    pub(crate) payload: Payload,
}

impl Call {
    pub(crate) fn running(&self) -> &Running {
        running(&self.req)
    }
}

/// The OpenAPI document of the application, made when it is first asked for: a start is faster.
pub(crate) struct Document(pub(crate) fn() -> Bytes);
