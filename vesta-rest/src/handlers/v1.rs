//! The JSON API. IDs are strings in it.

use std::time::Duration;

use actix_web::http::header;
use actix_web::web::{Bytes, Payload};
use actix_web::{HttpMessage, HttpRequest, HttpResponse};
use serde::Deserialize;
use serde_json::Value;
use vesta_intf::{Id, IdError, IdService, MakeId};
use vesta_service::LocalIdService;

use super::{json, new_id_text, new_ids, no_store};
use crate::app::State;
use crate::dto::{
    Bounds, Explained, IdText, KnownLayout, KnownLayouts, Layout, ManyIds, OneId, Parts,
};
use crate::openapi::{BadInput, BadJson, CannotMake, FormatParam, LayoutParam};
use crate::params::{self, Params, number, parts};
use crate::problem::Problem;

/// Maximum number of IDs per request.
pub(crate) const MAX_COUNT: u64 = 1_000;

/// Maximum body size in bytes.
pub(crate) const MAX_BODY: usize = 16 * 1024;

/// A new ID
#[utoipa::path(
    get, path = "/v1/id", tag = "v1",
    params(FormatParam),
    responses(
        (status = 200, description = "The ID. Never the same twice, so `Cache-Control: no-store`.", body = OneId),
        CannotMake,
    )
)]
pub(crate) async fn id(req: HttpRequest, method: usize) -> HttpResponse {
    match new_id_text(&req, method).await {
        Ok(id) => no_store(json(&OneId { id })),
        Err(problem) => problem.response(),
    }
}

/// Several new IDs, strictly ascending
#[utoipa::path(
    get, path = "/v1/ids", tag = "v1",
    params(
        ("count" = u64, Query, minimum = 1, maximum = 1000, example = 2,
         description = "How many, 1 to 1,000. More is refused, not cut down"),
        FormatParam,
    ),
    responses(
        (status = 200, description = "The requested number of IDs.", body = ManyIds),
        CannotMake,
    )
)]
pub(crate) async fn ids(req: HttpRequest) -> Result<HttpResponse, Problem> {
    let params = Params::read(req.query_string(), &["count", "format"])?;
    let count = params.number("count", 1, MAX_COUNT)?;
    let format = params.format()?;
    let ids = new_ids(&req, u32::try_from(count).expect("at most MAX_COUNT")).await?;
    Ok(no_store(json(&ManyIds { ids: ids.into_iter().map(|id| IdText { id, format }).collect() })))
}

/// The fields of an ID, and its time
///
/// By this server's layout, or the one that `layout` names. Of Vesta's two layouts, the ID's own
/// type bit chooses.
#[utoipa::path(
    get, path = "/v1/ids/{id}", tag = "v1",
    params(
        ("id" = String, Path, description = "The ID, 0 to 18446744073709551615, in the format that `format` names",
         example = "2407837855670862845"),
        FormatParam, LayoutParam,
    ),
    responses(
        (status = 200, description = "The ID explained.", body = Explained),
        BadInput,
    )
)]
pub(crate) async fn explain(req: HttpRequest) -> Result<HttpResponse, Problem> {
    let params = Params::read(req.query_string(), &["format", "layout"])?;
    let format = params.format()?;
    let raw = params::id(req.match_info().query("id"), format)?;
    let meta = params.layout(State::of(&req).service.meta(), raw)?;
    let id = meta.unpack(raw)?;
    Ok(json(&Explained {
        id: IdText { id: raw, format },
        layout: meta.name(),
        moment: meta.moment_of(id.time)?.to_string(),
        fields: id.into(),
    }))
}

/// An ID assembled from its fields
///
/// For tests and repairs: it is not a new ID. Nothing is masked, a field that does not fit is refused.
#[utoipa::path(
    post, path = "/v1/ids:make", tag = "v1",
    params(FormatParam),
    request_body(content = Parts, description = "At most 16 KiB."),
    responses(
        (status = 200, description = "The ID.", body = OneId),
        BadInput, BadJson,
    )
)]
pub(crate) async fn make(req: HttpRequest, payload: Payload) -> Result<HttpResponse, Problem> {
    let format = Params::read(req.query_string(), &["format"])?.format()?;
    let State { service, request_timeout, .. } = State::of(&req);
    let body = read_json(&req, payload, *request_timeout).await?;
    let mut members: Members = serde_json::from_slice(&body).map_err(|error| {
        Problem::bad_body(format!("the body does not match its schema: {error}"))
    })?;
    let parts: MakeId = parts(service.meta(), |name, max| members.number(name, max))?;
    Ok(json(&OneId { id: IdText { id: service.make_id(&parts)?, format } }))
}

/// The smallest and the largest ID of a moment
///
/// For `WHERE id >= lower(a) AND id < lower(b)`: all IDs from the moment a up to, but without, the
/// moment b. Both are those of the whole tick (second or millisecond) to which the moment belongs.
/// Version, type and genMethod stand above the time: the bounds hold among the IDs that agree in them.
#[utoipa::path(
    get, path = "/v1/ids:bound", tag = "v1",
    params(
        ("time" = String, Query, description = "Digits alone: milliseconds since 1970. Else RFC 3339 with its offset; \
          a `+` in it is written `%2B`", example = "2026-01-01T00:00:00Z"),
        ("type" = Option<u64>, Query, description = "0 max-peak, 1 min-granularity; left out: the server's own", example = 0),
        ("genMethod" = Option<u64>, Query, description = "0 to 3; left out: the server's own", example = 2),
        ("version" = Option<u64>, Query, description = "0 or 1; left out: the server's own", example = 0),
        FormatParam,
    ),
    responses(
        (status = 200, description = "The bounds, both inclusive.", body = Bounds),
        BadInput,
    )
)]
pub(crate) async fn bound(req: HttpRequest) -> Result<HttpResponse, Problem> {
    let known = ["time", "type", "genMethod", "version", "format"];
    let params = Params::read(req.query_string(), &known)?;
    let service = &State::of(&req).service;
    let moment = params.moment()?;
    let (meta, base) = params.above_time(service.meta(), &own(service)?)?;
    let format = params.format()?;
    let lower = meta.lower_bound(moment, &base)?;
    let upper = meta.upper_bound(moment, &base)?;
    Ok(json(&Bounds {
        lower: IdText { id: lower, format },
        upper: IdText { id: upper, format },
        moment: meta.moment_of(meta.unpack(lower)?.time)?.to_string(),
        layout: meta.name(),
    }))
}

/// The layout of this server's IDs, and the machine ID it holds
#[utoipa::path(
    get, path = "/v1/layout", tag = "v1",
    responses(
        (status = 200, description = "The layout.", body = Layout),
        BadInput,
    )
)]
pub(crate) async fn layout(req: HttpRequest) -> Result<HttpResponse, Problem> {
    Params::read(req.query_string(), &[])?;
    let service = &State::of(&req).service;
    Ok(json(&Layout::new(service.meta(), &own(service)?)))
}

/// Default fields of an assembled ID: the server's own.
fn own(service: &LocalIdService) -> Result<Id, IdError> {
    service.meta().unpack(service.make_id(&MakeId::new(0, 0))?)
}

/// The layouts that IDs can be explained by
///
/// Those that `layout` takes. The server's own is marked; if it has no name, it is there as `custom`.
#[utoipa::path(
    get, path = "/v1/layouts", tag = "v1",
    responses(
        (status = 200, description = "The layouts.", body = KnownLayouts),
        BadInput,
    )
)]
pub(crate) async fn layouts(req: HttpRequest) -> Result<HttpResponse, Problem> {
    Params::read(req.query_string(), &[])?;
    let own = State::of(&req).service.meta();
    let layouts = params::layouts(own).iter().map(|meta| KnownLayout::new(meta, own)).collect();
    Ok(json(&KnownLayouts { layouts }))
}

/// The members of a body of `/v1/ids:make`, values not yet parsed, so that a wrong one is
/// refused with its name and range. Unknown and repeated members are refused by serde.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Members {
    time: Option<Value>,
    seq: Option<Value>,
    machine: Option<Value>,
    gen_method: Option<Value>,
    #[serde(rename = "type")]
    id_type: Option<Value>,
    version: Option<Value>,
}

impl Members {
    fn number(&mut self, name: &'static str, max: u64) -> Result<Option<u64>, Problem> {
        let member = match name {
            "time" => &mut self.time,
            "seq" => &mut self.seq,
            "machine" => &mut self.machine,
            "genMethod" => &mut self.gen_method,
            "type" => &mut self.id_type,
            _ => &mut self.version,
        };
        // A string, a fraction or anything else prints as JSON, which is not digits.
        member.take().map(|value| number(name, &value.to_string(), 0, max)).transpose()
    }
}

/// Reads a JSON body within the size and time limits.
async fn read_json(req: &HttpRequest, payload: Payload, limit: Duration) -> Result<Bytes, Problem> {
    // A client that sends no type at all, like a hand-written one, is accepted.
    if req.headers().contains_key(header::CONTENT_TYPE) && req.content_type() != "application/json"
    {
        return Err(Problem::not_json());
    }
    match tokio::time::timeout(limit, payload.to_bytes_limited(MAX_BODY)).await {
        Err(_) => Err(Problem::body_too_slow(limit)),
        Ok(Err(_)) => Err(Problem::body_too_large(MAX_BODY)),
        Ok(Ok(Err(error))) => Err(Problem::bad_body(format!("the body cannot be read: {error}"))),
        Ok(Ok(Ok(body))) => Ok(body),
    }
}
