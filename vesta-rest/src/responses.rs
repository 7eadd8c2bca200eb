//! Responses of status 200.

use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::web::Bytes;
use serde::Serialize;

pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// A response of status 200.
pub(crate) fn ok(content_type: &'static str, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = HttpResponse::with_body(StatusCode::OK, BoxBody::new(body.into()));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A cacheable text response.
pub(crate) fn text(body: impl Into<Bytes>) -> HttpResponse {
    ok(TEXT, body)
}

/// A cacheable JSON response.
pub(crate) fn json(body: &impl Serialize) -> HttpResponse {
    ok(
        JSON,
        serde_json::to_vec(body).expect("strings and numbers always serialise"),
    )
}

/// Marks a response as not cacheable: a cached ID would be a duplicate.
pub(crate) fn no_store(mut response: HttpResponse) -> HttpResponse {
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
