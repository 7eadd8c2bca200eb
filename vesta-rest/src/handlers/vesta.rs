//! Vesta's own four endpoints, with the bodies of the Java REST servers.

use actix_http::{HttpMessage as _, Request, Response};
use actix_web::body::BoxBody;
use actix_web::http::Method;
use actix_web::{HttpRequest, HttpResponse};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use vesta_boot::Scopes;
use vesta_intf::{Field, IdService, UnixMillis};

use super::{characters, digits, id_now, json, new_id_text, no_store, text};
use crate::access::authorize;
use crate::app::{METHODS, State};
use crate::dto::{Fields, IdText};
use crate::openapi::{BadInput, CannotMake, FormatParam, LayoutParam};
use crate::params::{Params, parts, quoted};
use crate::problem::Problem;

/// A new ID as text, in decimal digits unless `format` names another format
#[utoipa::path(
    get, path = "/genid", tag = "vesta",
    params(FormatParam),
    responses(
        (status = 200, description = "The ID. Never the same twice, so `Cache-Control: no-store`.",
         body = String, content_type = "text/plain", example = "2407837855670862845"),
        CannotMake,
    )
)]
pub(crate) async fn genid(req: HttpRequest, method: usize) -> HttpResponse {
    match new_id_text(&req, method).await {
        Ok(id) => no_store(text(characters(id))),
        Err(problem) => problem.response(),
    }
}

/// Index of `/genid` in the endpoint table.
const GENID: usize = 0;

/// Fast path in front of the router: answers `GET /genid` if the caller is authorized and an ID is
/// ready, which it nearly always is. Everything else is `None`, and goes through the router to
/// [`genid`].
pub(crate) fn genid_now(state: &State, req: &Request) -> Option<Response<BoxBody>> {
    if req.uri().path_and_query()?.as_str() != METHODS[GENID] || req.method() != Method::GET {
        return None;
    }
    authorize(state, req.headers(), Scopes::GENERATE).ok()?;
    let id = id_now(state, GENID).ok()?;
    Some(no_store(text(digits(id))).into())
}

/// The fields of an ID
///
/// By this server's layout, or the one that `layout` names. Of Vesta's two layouts, the ID's own
/// type bit chooses.
#[utoipa::path(
    get, path = "/expid", tag = "vesta",
    params(
        ("id" = String, Query, description = "The ID, 0 to 18446744073709551615, in the format that `format` names",
         example = "2407837855670862845"),
        FormatParam, LayoutParam,
    ),
    responses(
        (status = 200, description = "The fields of the ID.", body = Fields),
        BadInput,
    )
)]
pub(crate) async fn expid(req: HttpRequest) -> Result<HttpResponse, Problem> {
    let params = Params::read(req.query_string(), &["id", "format", "layout"])?;
    let raw = params.id()?;
    let meta = params.layout(State::of(&req).service.meta(), raw)?;
    Ok(json(&Fields::from(meta.unpack(raw)?)))
}

/// The moment of a time field
///
/// RFC 3339, to the millisecond: in UTC, or in the time zone `tz` with its offset.
#[utoipa::path(
    get, path = "/transtime", tag = "vesta",
    params(
        ("time" = u64, Query, description = "The time field: ticks since the layout's epoch", example = 94990103),
        ("tz" = Option<String>, Query, description = "An IANA time zone; left out: UTC", example = "Asia/Shanghai"),
    ),
    responses(
        (status = 200, description = "The beginning of that tick.", body = String,
         content_type = "text/plain", example = "2018-01-04T10:08:23.000+08:00"),
        BadInput,
    )
)]
pub(crate) async fn transtime(req: HttpRequest) -> Result<HttpResponse, Problem> {
    let params = Params::read(req.query_string(), &["time", "tz"])?;
    let service = &State::of(&req).service;
    let time = params.number("time", 0, service.meta().max(Field::Time))?;
    let moment = service.meta().moment_of(time)?;
    let readable = match params.text("tz") {
        None => moment.to_string(),
        Some(tz) => in_zone(moment, tz)?,
    };
    Ok(text(readable))
}

fn in_zone(moment: UnixMillis, tz: &str) -> Result<String, Problem> {
    let zone = TimeZone::get(tz).map_err(|_| {
        Problem::invalid(
            "tz",
            format!(
                "tz must be an IANA time zone, for example Asia/Shanghai, but is {}",
                quoted(tz)
            ),
        )
    })?;
    let timestamp = timestamp(moment).ok_or_else(|| {
        Problem::invalid(
            "tz",
            format!("{moment} is beyond the year 9999, where zones end; leave tz out"),
        )
    })?;
    Ok(timestamp.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string())
}

fn timestamp(moment: UnixMillis) -> Option<Timestamp> {
    i64::try_from(moment.0).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok())
}

/// Formats a moment in this host's time zone, or in UTC beyond the year 9999, where zones end.
pub(super) fn in_system_zone(moment: UnixMillis, format: &str) -> String {
    match timestamp(moment) {
        Some(timestamp) => timestamp.to_zoned(TimeZone::system()).strftime(format).to_string(),
        None => moment.to_string(),
    }
}

/// Parameters of `/makeid`: the parts of an ID, and its format.
const MAKEID: [&str; 7] = ["time", "seq", "machine", "genMethod", "type", "version", "format"];

/// An ID assembled from its fields
///
/// For tests and repairs: it is not a new ID. Nothing is masked, a field that does not fit is refused.
#[utoipa::path(
    get, path = "/makeid", tag = "vesta",
    params(
        ("time" = u64, Query, description = "Ticks since the layout's epoch", example = 94990103),
        ("seq" = u64, Query, description = "The place inside the tick", example = 0),
        ("machine" = Option<u64>, Query, description = "The machine ID; left out: the server's own", example = 1021),
        ("genMethod" = Option<u64>, Query, description = "0 to 3; left out: the server's own", example = 2),
        ("type" = Option<u64>, Query, description = "0 max-peak, 1 min-granularity; left out: the server's own", example = 0),
        ("version" = Option<u64>, Query, description = "0 or 1; left out: the server's own", example = 0),
        FormatParam,
    ),
    responses(
        (status = 200, description = "The ID.", body = String,
         content_type = "text/plain", example = "2407837855670862845"),
        BadInput,
    )
)]
pub(crate) async fn makeid(req: HttpRequest) -> Result<HttpResponse, Problem> {
    let params = Params::read(req.query_string(), &MAKEID)?;
    let format = params.format()?;
    let service = &State::of(&req).service;
    let parts = parts(service.meta(), |name, max| params.optional(name, 0, max))?;
    Ok(text(characters(IdText { id: service.make_id(&parts)?, format })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_path_serves_genid() {
        assert_eq!(METHODS[GENID], "/genid");
    }
}
