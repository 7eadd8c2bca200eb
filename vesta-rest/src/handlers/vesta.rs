//! Vesta's own four endpoints, with the bodies of the Java REST servers.

use actix_web::HttpResponse;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use vesta_boot::answers::{Fields, IdText};
use vesta_intf::{Field, UnixMillis};

use super::{Answer, characters, new_id, with_once};
use crate::params::parts;
use crate::problem::{Problem, quoted};
use crate::responses::{json, no_store, text};
use crate::state::Call;

pub(crate) async fn genid(call: Call) -> Answer {
    let (format, once) = (call.format()?, call.params.once()?);
    let id = IdText::new(new_id(&call).await?, &format)?;
    Ok(match once {
        None => new_id_text(id),
        once => no_store(text(with_once(id.with(str::to_owned), once))),
    })
}

pub(crate) fn new_id_text(id: IdText) -> HttpResponse {
    no_store(text(characters(id)))
}

pub(crate) async fn expid(call: Call) -> Answer {
    let raw = call.id()?;
    let meta = call.params.layout(call.running().service.meta(), raw)?;
    Ok(json(&Fields::from(meta.unpack(raw)?)))
}

pub(crate) async fn transtime(call: Call) -> Answer {
    let once = call.params.once()?;
    let meta = call.running().service.meta();
    let time = call.params.number("time", 0, meta.max(Field::Time))?;
    let moment = meta.moment_of(time)?;
    let readable = match call.params.text("tz") {
        None => moment.to_string(),
        Some(tz) => in_zone(moment, tz)?,
    };
    Ok(text(with_once(readable, once)))
}

fn in_zone(moment: UnixMillis, tz: &str) -> Result<String, Problem> {
    let invalid = |reason| Problem::invalid("tz", reason);
    let zone = TimeZone::get(tz).map_err(|_| {
        let given = quoted(tz);
        invalid(format!(
            "tz must be an IANA time zone, for example Asia/Shanghai, but is {given}"
        ))
    })?;
    let timestamp = timestamp(moment).ok_or_else(|| {
        invalid(format!(
            "{moment} is beyond the year 9999, where time zones end; omit tz"
        ))
    })?;
    Ok(timestamp
        .to_zoned(zone)
        .strftime("%Y-%m-%dT%H:%M:%S%.3f%:z")
        .to_string())
}

fn timestamp(moment: UnixMillis) -> Option<Timestamp> {
    i64::try_from(moment.0)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
}

/// Formats a moment in this host's time zone; beyond the year 9999, where time zones end, in UTC.
pub(super) fn in_system_zone(moment: UnixMillis, format: &str) -> String {
    match timestamp(moment) {
        Some(timestamp) => timestamp
            .to_zoned(TimeZone::system())
            .strftime(format)
            .to_string(),
        None => moment.to_string(),
    }
}

pub(crate) async fn makeid(call: Call) -> Answer {
    let (format, once) = (call.format()?, call.params.once()?);
    let service = &call.running().service;
    let parts = parts(service.meta(), |name, max| {
        call.params.optional(name, 0, max)
    })?;
    let id = IdText::new(service.make_id(&parts)?, &format)?;
    Ok(text(with_once(id.with(str::to_owned), once)))
}
