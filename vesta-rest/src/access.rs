//! Authorization of REST requests: the scopes each endpoint needs.

use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpRequest};
use vesta_boot::{Denied, Outcome, Scopes};

use crate::app::State;
use crate::problem::Problem;

/// Checks a request's token, if the server requires tokens.
pub(crate) fn authorize(state: &State, headers: &HeaderMap, needs: Scopes) -> Result<(), Denied> {
    match &state.auth {
        Some(auth) => {
            auth.check(headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes), needs)
        }
        None => Ok(()),
    }
}

pub(crate) fn of_request(req: &HttpRequest, needs: Scopes) -> Result<(), Problem> {
    Ok(authorize(State::of(req), req.headers(), needs)?)
}

/// Middleware of one endpoint. A refusal counts as a request to it.
pub(crate) async fn check(
    method: usize,
    needs: Scopes,
    req: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if let Err(problem) = of_request(req.request(), needs) {
        let outcome = Outcome::Error(problem.kind());
        State::of(req.request()).metrics.observe(method, outcome, Duration::ZERO);
        return Ok(req.into_response(problem.response()));
    }
    Ok(next.call(req).await?.map_into_boxed_body())
}
