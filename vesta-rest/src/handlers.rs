//! Handlers: Vesta's own four endpoints, the JSON API, those of Leaf and uid-generator, and the
//! documentation pages.

pub(crate) mod leaf;
pub(crate) mod pages;
pub(crate) mod segments;
pub(crate) mod serials;
pub(crate) mod tinyid;
pub(crate) mod uid;
pub(crate) mod v1;
pub(crate) mod vesta;

use std::time::Duration;

use actix_http::{HttpMessage as _, Request, Response};
use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::web::Bytes;
use serde::Serialize;
use vesta_boot::{Outcome, Running, Scopes, may_be_traced};
use vesta_intf::{AsyncIdService, IdFormat};

use crate::dto::IdText;
use crate::endpoints::{METHODS, ONE_ID, OTHER};
use crate::problem::Problem;
use crate::state::{Call, authorize, text as text_of};

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// The result of a handler.
type Answer = Result<HttpResponse, Problem>;

/// A new ID. Parameters are checked before, as a refused request takes no ID.
async fn new_id(call: &Call) -> Result<u64, Problem> {
    let running = call.running();
    let id = running.within(None, AsyncIdService::gen_id(&*running.service)).await?;
    running.metrics.issue(call.caller, 1);
    Ok(id)
}

/// Fast path in front of the router: answers a request for one ID in decimal digits, `GET` with no
/// query, from no page of another origin and from nobody who is traced, if the caller is authorized and an
/// ID is ready, which it nearly always is. Everything else is `None`, and goes through the router. It neither waits nor writes,
/// and reads no clock beyond what the ID itself needs.
pub(crate) fn id_now(running: &Running, req: &Request) -> Option<Response<BoxBody>> {
    let uri = req.uri().path_and_query()?.as_str();
    let (method, respond) = ONE_ID.into_iter().find(|(method, _)| METHODS[*method] == uri)?;
    let other_origin = req.headers().contains_key(header::ORIGIN);
    let is_traced = may_be_traced(|name| text_of(req.headers(), name));
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
    Some(respond(decimal(id)).into())
}

/// Refuses a request that calls the listener by a name of another site.
pub(crate) fn foreign_host(running: &Running) -> Response<BoxBody> {
    let problem = Problem::foreign_host();
    running.metrics.observe(OTHER, Outcome::Error(problem.kind()), Duration::ZERO);
    problem.response().into()
}

/// New IDs, ascending.
async fn new_ids(call: &Call, count: u32) -> Result<Vec<u64>, Problem> {
    let running = call.running();
    let ids = running.within(None, AsyncIdService::gen_ids(&*running.service, count)).await?;
    running.metrics.issue(call.caller, u64::from(count));
    Ok(ids)
}

pub(crate) fn ok(content_type: &'static str, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = HttpResponse::with_body(StatusCode::OK, BoxBody::new(body.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A cacheable text response.
fn text(body: impl Into<Bytes>) -> HttpResponse {
    ok(TEXT, body)
}

/// A cacheable JSON response.
fn json(body: &impl Serialize) -> HttpResponse {
    ok(JSON, serde_json::to_vec(body).expect("strings and numbers always serialise"))
}

/// Marks a response as not cacheable: a cached ID would be a duplicate.
pub(crate) fn no_store(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A name in the path. The router leaves three characters percent-encoded, because decoding them
/// would change where the path is split or how it decodes a second time.
fn in_path(call: &Call, name: &str) -> String {
    let text = call.req.match_info().query(name).replace("%2F", "/").replace("%2f", "/");
    text.replace("%2B", "+").replace("%2b", "+").replace("%25", "%")
}

fn decimal(id: u64) -> IdText {
    IdText { id, format: IdFormat::Decimal }
}

/// The text of an ID.
fn characters(id: IdText) -> Bytes {
    id.with(|text| Bytes::copy_from_slice(text.as_bytes()))
}
