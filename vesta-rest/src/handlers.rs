//! Handlers: Vesta's own four endpoints, the JSON API, those of Leaf and uid-generator, and the
//! documentation pages.

pub(crate) mod leaf;
pub(crate) mod pages;
pub(crate) mod segments;
pub(crate) mod uid;
pub(crate) mod v1;
pub(crate) mod vesta;

use std::time::Duration;

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use vesta_boot::Outcome;
use vesta_intf::{AsyncIdService, IdError, IdService};

use crate::app::State;
use crate::dto::IdText;
use crate::params::Params;
use crate::problem::Problem;

/// A new ID if one is ready, else the reason. The hot path of this server: it neither allocates, waits
/// nor writes, and reads no clock beyond what the ID itself needs.
fn id_now(State { service, metrics, .. }: &State, method: usize) -> Result<u64, IdError> {
    let id = service.try_gen_id()?;
    // Far below the histogram's lowest bucket; measuring it would cost more than the ID.
    metrics.observe(method, Outcome::Ok, Duration::ZERO);
    metrics.issued(1);
    Ok(id)
}

/// A new ID, for an endpoint without parameters.
async fn new_id(req: &HttpRequest, method: usize) -> Result<u64, Problem> {
    let nothing = Params::read(req.query_string(), &[]).map(drop);
    issue(req, method, nothing).await.map(|(id, ())| id)
}

/// A new ID in the format given by `format`.
async fn new_id_text(req: &HttpRequest, method: usize) -> Result<IdText, Problem> {
    let format = Params::read(req.query_string(), &["format"]).and_then(|params| params.format());
    issue(req, method, format).await.map(|(id, format)| IdText { id, format })
}

/// A new ID, at once if one is ready, else as soon as the service has one, along with the parsed
/// parameters. A refused request takes no ID.
async fn issue<T>(
    req: &HttpRequest,
    method: usize,
    params: Result<T, Problem>,
) -> Result<(u64, T), Problem> {
    let state = State::of(req);
    let State { service, metrics, request_timeout, .. } = state;
    let params = params.inspect_err(|problem| {
        metrics.observe(method, Outcome::Error(problem.kind()), Duration::ZERO);
    })?;
    let error = match id_now(state, method) {
        Ok(id) => return Ok((id, params)),
        Err(error) => error,
    };
    let call = metrics.start(method);
    let result = match error {
        IdError::NotReady(_) => in_time(*request_timeout, AsyncIdService::gen_id(&**service)).await,
        error => Err(error),
    };
    call.done(Outcome::from(&result));
    metrics.issued(u64::from(result.is_ok()));
    Ok((result?, params))
}

/// New IDs, ascending.
async fn new_ids(req: &HttpRequest, count: u32) -> Result<Vec<u64>, Problem> {
    let State { service, metrics, request_timeout, .. } = State::of(req);
    let ids = in_time(*request_timeout, AsyncIdService::gen_ids(&**service, count)).await?;
    metrics.issued(u64::from(count));
    Ok(ids)
}

/// Awaits the service, up to the limit.
async fn in_time<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, IdError>>,
) -> Result<T, IdError> {
    tokio::time::timeout(limit, answer).await.unwrap_or(Err(IdError::DeadlineExceeded))
}

fn ok(content_type: &'static str, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = HttpResponse::with_body(StatusCode::OK, BoxBody::new(body.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A cacheable text response.
fn text(body: impl Into<Bytes>) -> HttpResponse {
    ok("text/plain; charset=utf-8", body)
}

/// A cacheable JSON response.
fn json(body: &impl Serialize) -> HttpResponse {
    ok("application/json", serde_json::to_vec(body).expect("strings and numbers always serialise"))
}

/// Marks a response as not cacheable: a cached ID would be a duplicate.
fn no_store(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The decimal digits of an ID.
fn digits(id: u64) -> Bytes {
    Bytes::copy_from_slice(itoa::Buffer::new().format(id).as_bytes())
}

/// The text of an ID.
fn characters(id: IdText) -> Bytes {
    id.with(|text| Bytes::copy_from_slice(text.as_bytes()))
}
