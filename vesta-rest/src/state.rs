//! State that all handlers share, and the call that one of them answers.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::web::{self, Bytes, Payload};
use vesta_boot::{Auth, Denied, Metrics, Scopes};
use vesta_service::{LocalIdService, SegmentService};

use crate::params::Params;

/// State shared by all handlers.
#[derive(Debug)]
pub struct State {
    /// The generator.
    pub service: Arc<LocalIdService>,
    /// The segment service, if segment mode is on.
    pub segments: Option<Arc<SegmentService>>,
    /// Request metrics, created with [`METHODS`](crate::METHODS).
    pub metrics: Arc<Metrics>,
    /// Accepted tokens; `None` if callers need none.
    pub auth: Option<Auth>,
    /// True if callers reach this server over https.
    pub encrypted: bool,
    /// Time limit of a request, for receiving its body and for waiting for an ID.
    pub request_timeout: Duration,
}

impl State {
    /// The state that `app::configure` added to the application.
    pub(crate) fn of(req: &HttpRequest) -> &State {
        req.app_data::<web::Data<State>>().expect("configure() adds the state to every application")
    }

    /// Checks a request's token, if the server requires tokens.
    pub(crate) fn authorize(&self, headers: &HeaderMap, needs: Scopes) -> Result<(), Denied> {
        let token = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        self.auth.as_ref().map_or(Ok(()), |auth| auth.check(token, needs))
    }
}

/// An authorized request with checked parameter names.
pub(crate) struct Call {
    pub(crate) req: HttpRequest,
    pub(crate) params: Params,
    pub(crate) payload: Payload,
}

impl Call {
    pub(crate) fn state(&self) -> &State {
        State::of(&self.req)
    }
}

/// The OpenAPI document of the application.
pub(crate) struct Document(pub(crate) Bytes);
