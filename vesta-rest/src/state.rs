//! The call passed to a handler, and the state that all handlers share.

use std::cell::OnceCell;

use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::web::{self, Bytes};
use vesta_boot::{Caller, Denied, Running, Scopes};

use crate::params::Params;

/// The program that `app::configure` added to the application.
pub(crate) fn running(req: &HttpRequest) -> &Running {
    req.app_data::<web::Data<Running>>()
        .expect("configure() adds it to every application")
}

/// Checks a request's token, if the server requires tokens.
pub(crate) fn authorize(
    running: &Running,
    headers: &HeaderMap,
    needs: Scopes,
) -> Result<Caller, Denied> {
    let token = headers
        .get_all(header::AUTHORIZATION)
        .map(HeaderValue::as_bytes);
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

/// The OpenAPI document of the application, generated on first use: start-up is faster.
pub(crate) struct Document {
    made: OnceCell<Bytes>,
    make: fn(&Running) -> Bytes,
}

impl Document {
    pub(crate) const fn new(make: fn(&Running) -> Bytes) -> Self {
        Self {
            made: OnceCell::new(),
            make,
        }
    }

    pub(crate) fn get(&self, running: &Running) -> Bytes {
        self.made.get_or_init(|| (self.make)(running)).clone()
    }
}
