//! Handlers: Vesta's own four endpoints, the JSON API, those of Leaf and uid-generator, and the
//! documentation pages.

pub(crate) mod leaf;
pub(crate) mod pages;
pub(crate) mod segments;
pub(crate) mod uid;
pub(crate) mod v1;
pub(crate) mod vesta;

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::web::Bytes;
use serde::Serialize;
use vesta_intf::{AsyncIdService, IdError, IdFormat};

use crate::dto::IdText;
use crate::problem::Problem;
use crate::state::State;

const JSON: &str = "application/json";

/// The result of a handler.
type Answer = Result<HttpResponse, Problem>;

/// A new ID. Parameters are checked before, as a refused request takes no ID.
async fn new_id(State { service, metrics, request_timeout, .. }: &State) -> Result<u64, Problem> {
    let id = in_time(*request_timeout, AsyncIdService::gen_id(&**service)).await?;
    metrics.issued.inc_by(1);
    Ok(id)
}

/// New IDs, ascending.
async fn new_ids(
    State { service, metrics, request_timeout, .. }: &State,
    count: u32,
) -> Result<Vec<u64>, Problem> {
    let ids = in_time(*request_timeout, AsyncIdService::gen_ids(&**service, count)).await?;
    metrics.issued.inc_by(u64::from(count));
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
    ok(JSON, serde_json::to_vec(body).expect("strings and numbers always serialise"))
}

/// Marks a response as not cacheable: a cached ID would be a duplicate.
fn no_store(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn decimal(id: u64) -> IdText {
    IdText { id, format: IdFormat::Decimal }
}

/// The text of an ID.
fn characters(id: IdText) -> Bytes {
    id.with(|text| Bytes::copy_from_slice(text.as_bytes()))
}
