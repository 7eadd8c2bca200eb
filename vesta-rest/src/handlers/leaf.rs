//! Leaf-compatible endpoints: the same paths, parameters and bodies.

use actix_web::http::header;
use actix_web::http::header::{Accept, Header as _, HeaderValue};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use vesta_intf::IdService;

use super::vesta::in_system_zone;
use super::{digits, json, new_id, no_store, text};
use crate::app::State;
use crate::dto::LeafDecoded;
use crate::openapi::{BadInput, CannotMake};
use crate::params::Params;
use crate::problem::Problem;

/// A new ID, as in Leaf's snowflake mode
///
/// The key is ignored, as in Leaf. The ID has this server's layout; with `snowflake` it is
/// Leaf's own.
#[utoipa::path(
    get, path = "/api/snowflake/get/{key}", tag = "leaf",
    params(("key" = String, Path, description = "Any text", example = "test")),
    responses(
        (status = 200, description = "The ID; `application/json` if `Accept` prefers that, else text.",
         content((String = "text/plain", example = "1234567890123456789"),
                 (u64 = "application/json", example = json!(1_234_567_890_123_456_789_u64)))),
        CannotMake,
    )
)]
pub(crate) async fn snowflake(req: HttpRequest, method: usize) -> HttpResponse {
    match new_id(&req, method).await {
        Ok(id) => decimal(&req, digits(id)),
        Err(problem) => problem.response(),
    }
}

/// The fields of an ID, as Leaf's monitor shows them
///
/// By this server's own layout. The moment is in milliseconds since 1970 and, in brackets, readable in
/// the server's time zone.
#[utoipa::path(
    get, path = "/decodeSnowflakeId", tag = "leaf",
    params(("snowflakeId" = String, Query, description = "The ID in decimal digits",
            example = "2407837855670862845")),
    responses(
        (status = 200, description = "Every member is a string.", body = LeafDecoded),
        BadInput,
    )
)]
pub(crate) async fn decode(req: HttpRequest) -> Result<HttpResponse, Problem> {
    let params = Params::read(req.query_string(), &["snowflakeId"])?;
    let service = &State::of(&req).service;
    let raw = params.number("snowflakeId", 0, u64::MAX)?;
    let id = service.exp_id(raw)?;
    let moment = service.meta().explaining(raw).moment_of(id.time)?;
    let readable = in_system_zone(moment, "%Y-%m-%d %H:%M:%S%.3f");
    Ok(json(&LeafDecoded {
        timestamp: format!("{}({readable})", moment.0),
        worker_id: id.machine.to_string(),
        sequence_id: id.seq.to_string(),
    }))
}

/// A number as Leaf sends it: the same digits under either media type, the preferred one of the two.
pub(super) fn decimal(req: &HttpRequest, digits: Bytes) -> HttpResponse {
    let mut response = no_store(text(digits));
    if prefers_json(req) {
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
    }
    response
}

/// True if `Accept` ranks JSON before text; false without that header.
pub(super) fn prefers_json(req: &HttpRequest) -> bool {
    let Ok(accept) = Accept::parse(req) else { return false };
    accept
        .ranked()
        .iter()
        .map(|media| media.essence_str().to_owned())
        .find(|media| {
            matches!(&**media, "application/json" | "text/plain" | "text/html" | "text/*")
        })
        .is_some_and(|media| media == "application/json")
}
