//! Vesta's own four endpoints, with the bodies of the Java REST servers.

use std::time::Duration;

use actix_http::{HttpMessage as _, Request, Response};
use actix_web::body::BoxBody;
use actix_web::http::Method;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use vesta_boot::{Outcome, Running, Scopes};
use vesta_intf::{Field, IdService, UnixMillis};

use super::{Answer, characters, decimal, json, new_id, no_store, text};
use crate::dto::{Fields, IdText};
use crate::params::parts;
use crate::problem::{Problem, quoted};
use crate::state::{Call, authorize};

pub(crate) async fn genid(call: Call) -> Answer {
    let format = call.params.format()?;
    let id = new_id(call.running()).await?;
    Ok(no_store(text(characters(IdText { id, format }))))
}

/// Fast path in front of the router: answers `GET /genid` if the caller is authorized and an ID is
/// ready, which it nearly always is. Everything else is `None`, and goes through the router to
/// [`genid`]. It neither waits nor writes, and reads no clock beyond what the ID itself needs. `method`
/// is its index in the metrics.
pub(crate) fn genid_now(
    running: &Running,
    req: &Request,
    method: usize,
) -> Option<Response<BoxBody>> {
    if req.uri().path_and_query()?.as_str() != "/genid" || req.method() != Method::GET {
        return None;
    }
    authorize(running, req.headers(), Scopes::GENERATE).ok()?;
    let id = running.service.try_gen_id().ok()?;
    // Far below the histogram's lowest bucket; measuring it would cost more than the ID.
    running.metrics.observe(method, Outcome::Ok, Duration::ZERO);
    running.metrics.issued.inc_by(1);
    Some(no_store(text(characters(decimal(id)))).into())
}

pub(crate) async fn expid(call: Call) -> Answer {
    let raw = call.params.id()?;
    let meta = call.params.layout(call.running().service.meta(), raw)?;
    Ok(json(&Fields::from(meta.unpack(raw)?)))
}

pub(crate) async fn transtime(call: Call) -> Answer {
    let meta = call.running().service.meta();
    let time = call.params.number("time", 0, meta.max(Field::Time))?;
    let moment = meta.moment_of(time)?;
    let readable = match call.params.text("tz") {
        None => moment.to_string(),
        Some(tz) => in_zone(moment, tz)?,
    };
    Ok(text(readable))
}

fn in_zone(moment: UnixMillis, tz: &str) -> Result<String, Problem> {
    let invalid = |reason| Problem::invalid("tz", reason);
    let zone = TimeZone::get(tz).map_err(|_| {
        let given = quoted(tz);
        invalid(format!("tz must be an IANA time zone, for example Asia/Shanghai, but is {given}"))
    })?;
    let timestamp = timestamp(moment).ok_or_else(|| {
        invalid(format!("{moment} is beyond the year 9999, where zones end; leave tz out"))
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

pub(crate) async fn makeid(call: Call) -> Answer {
    let format = call.params.format()?;
    let service = &call.running().service;
    let parts = parts(service.meta(), |name, max| call.params.optional(name, 0, max))?;
    Ok(text(characters(IdText { id: service.make_id(&parts)?, format })))
}
