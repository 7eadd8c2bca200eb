//! Answers given before the router: a new ID that is ready, and the refusal of a foreign host name.

use std::time::Duration;

use actix_http::{HttpMessage as _, Request, Response};
use actix_web::body::BoxBody;
use actix_web::http::Method;
use actix_web::http::header;
use vesta_boot::{Outcome, Running, Scopes, may_be_traced};

use crate::dto::IdText;
use crate::endpoints::{METHODS, ONE_ID, OTHER};
use crate::problem::Problem;
use crate::state::{authorize, text};

/// Fast path in front of the router: answers a `GET` for one ID in decimal digits, with no query, no foreign origin and
/// no trace, if the caller is authorized and an ID is ready. It nearly always is. For everything else it returns
/// `None`, and the request goes through the router. It neither waits nor writes, and reads no clock beyond what the ID
/// itself needs.
pub(crate) fn id_now(running: &Running, req: &Request) -> Option<Response<BoxBody>> {
    let uri = req.uri().path_and_query()?.as_str();
    let (method, respond) = ONE_ID
        .into_iter()
        .find(|(method, _)| METHODS[*method] == uri)?;
    let other_origin = req.headers().contains_key(header::ORIGIN);
    let is_traced = may_be_traced(|name| text(req.headers(), name));
    if req.method() != Method::GET
        || is_traced
        || other_origin && !running.config.cors_origins.is_empty()
    {
        return None;
    }
    let caller = authorize(running, req.headers(), Scopes::GENERATE).ok()?;
    let id = running.service.try_gen_id().ok()?;
    // Far below the histogram's lowest bucket; measuring it would cost more than the ID.
    running.metrics.observe(method, Outcome::Ok, Duration::ZERO);
    running.metrics.issue(caller, 1);
    Some(respond(IdText::Decimal(id)).into())
}

/// Refuses a request whose `Host` names another site.
pub(crate) fn foreign_host(running: &Running) -> Response<BoxBody> {
    let problem = Problem::foreign_host();
    running
        .metrics
        .observe(OTHER, Outcome::Error(problem.kind()), Duration::ZERO);
    problem.response().into()
}
