//! Answers given before the router: a new ID that is ready, preflights of browsers, and the refusal of a foreign host
//! name.

use std::time::Duration;

use actix_http::{HttpMessage as _, Request, Response};
use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::{Method, StatusCode, header};
use vesta_boot::answers::{self, IdText};
use vesta_boot::{Config, Outcome, Running, Scopes, may_be_traced};

use crate::cors::Cors;
use crate::endpoints::{METHODS, ONE_ID, OTHER};
use crate::problem::Problem;
use crate::responses::{TEXT, no_store, ok};
use crate::state::{authorize, text};

/// Fast path in front of the router: answers a `GET` for one ID in decimal digits, with no query and no
/// trace, if the caller is authorized and an ID is ready. It nearly always is. For everything else it returns `None`,
/// and the request goes through the router. It neither waits nor writes, and reads no clock beyond what the ID itself
/// needs.
pub(crate) fn id_now(running: &Running, req: &Request) -> Option<Response<BoxBody>> {
    let uri = req.uri().path_and_query()?.as_str();
    let (method, respond) = ONE_ID
        .into_iter()
        .find(|(method, _)| METHODS[*method] == uri)?;
    if req.method() != Method::GET || may_be_traced(|name| text(req.headers(), name)) {
        return None;
    }
    let caller = authorize(running, req.headers(), Scopes::GENERATE).ok()?;
    let id = running.service.try_gen_id().ok()?;
    // Far below the histogram's lowest bucket; measuring it would cost more than the ID.
    running.metrics.observe(method, Outcome::Ok, Duration::ZERO);
    running.metrics.issue(caller, 1);
    Some(respond(IdText::Decimal(id)).into())
}

/// Answers a preflight, if the request is one.
pub(crate) fn preflight(
    running: &Running,
    cors: &Cors,
    req: &Request,
) -> Option<Response<BoxBody>> {
    let answer = cors.preflight(req)?;
    Some(answer.map_or_else(|problem| refused(running, &problem), Response::from))
}

/// Answers the readiness check, if this is its path.
pub(crate) fn readiness(
    config: &Config,
    req: &Request,
    why: impl FnOnce() -> Option<String>,
) -> Option<Response<BoxBody>> {
    let path = config.readiness_path.as_deref()?;
    let is_read = matches!(*req.method(), Method::GET | Method::HEAD);
    if req.path() != path || !is_read {
        return None;
    }
    let (status, said) = match why() {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(why) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {why}\n"),
        ),
    };
    let mut response = no_store(ok(TEXT, said));
    *response.status_mut() = status;
    Some(response.into())
}

/// Removes the base path from a request; answers one outside it, or for its page without the slash at the end.
pub(crate) fn outside_base(running: &Running, req: &mut Request) -> Option<Response<BoxBody>> {
    let base = running.config.base_path.as_str();
    if base.is_empty() {
        return None;
    }
    let uri = req.uri().path_and_query().map_or("", |uri| uri.as_str());
    let inside = uri.strip_prefix(base).unwrap_or_default();
    if inside.is_empty() && uri == base {
        let moved = HttpResponse::build(StatusCode::PERMANENT_REDIRECT)
            .insert_header((header::LOCATION, format!("{base}/")))
            .finish();
        return Some(moved.into());
    }
    match inside.starts_with('/').then(|| inside.parse()) {
        Some(Ok(uri)) => {
            req.head_mut().uri = uri;
            None
        }
        _ => Some(refused(running, &Problem::no_such_path(base, req.path()))),
    }
}

/// Refuses a request whose `Host` names another site.
pub(crate) fn foreign_host(running: &Running) -> Response<BoxBody> {
    refused(running, &answers::Problem::foreign_host().into())
}

/// A refusal before the router, counted.
fn refused(running: &Running, problem: &Problem) -> Response<BoxBody> {
    running
        .metrics
        .observe(OTHER, Outcome::Error(problem.kind()), Duration::ZERO);
    problem.response().into()
}
