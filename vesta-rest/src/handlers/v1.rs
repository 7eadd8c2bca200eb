//! The JSON API. IDs in it are strings.

use actix_web::HttpResponse;
use vesta_boot::TextFormat;
use vesta_boot::answers::{
    Bounds, Explained, IdText, KnownLayout, KnownLayouts, ManyIds, OneId, Parts, Run, Runs,
};
use vesta_intf::{AsyncIdService, MAX_RUN_IDS_PER_CALL};

use super::{Answer, decimal, new_id, new_ids};
use crate::params::{self, parts};
use crate::problem::Problem;
use crate::responses::{JSON, json, no_store, ok};
use crate::state::Call;
use crate::values::number;

/// Maximum number of IDs per request.
pub(super) const MAX_COUNT: u64 = 1_000;

pub(crate) async fn id(call: Call) -> Answer {
    let (format, once) = (call.format()?, call.params.once()?);
    let id = IdText::new(new_id(&call).await?, &format)?;
    Ok(match once {
        None => new_id_json(id),
        once => no_store(json(&OneId { id, once })),
    })
}

/// Hand-written body of [`OneId`]: the text of an ID needs no escapes, and this is the busiest
/// body.
pub(crate) fn new_id_json(id: IdText) -> HttpResponse {
    no_store(ok(
        JSON,
        id.with(|text| [r#"{"id":""#, text, r#""}"#].concat()),
    ))
}

pub(crate) async fn ids(call: Call) -> Answer {
    let count = call.params.number("count", 1, MAX_COUNT)?;
    let (format, once) = (call.format()?, call.params.once()?);
    let ids = new_ids(&call, count as u32).await?.into_iter();
    let ids: Result<_, _> = ids.map(|id| IdText::new(id, &format)).collect();
    Ok(no_store(json(&ManyIds { ids: ids?, once })))
}

pub(crate) async fn runs(call: Call) -> Answer {
    let most = u64::from(MAX_RUN_IDS_PER_CALL);
    let count = call.params.number("count", 1, most)? as u32;
    let once = call.params.once()?;
    let running = call.running();
    let runs = AsyncIdService::gen_runs(&*running.service, count);
    let runs = running.within(None, runs).await?;
    running.metrics.issue(call.caller, u64::from(count));
    let runs = runs.into_iter().map(|run| Run {
        first: decimal(run.first),
        step: decimal(run.step),
        count: run.count,
    });
    Ok(no_store(json(&Runs {
        runs: runs.collect(),
        once,
    })))
}

pub(crate) async fn explain(call: Call) -> Answer {
    let (format, to) = (call.format()?, call.to()?);
    let raw = call.id_of(call.req.match_info().query("id"), &format)?;
    let meta = call.params.layout(call.running().service.meta(), raw)?;
    Ok(json(&Explained::new(raw, &meta, &to)?))
}

pub(crate) async fn make(call: Call) -> Answer {
    let (format, once) = (call.format()?, call.params.once()?);
    let service = &call.running().service;
    let mut members: Parts = call.json()?;
    let parts = parts(service.meta(), |name, max| {
        // A string, a fraction or any other value prints as JSON that is not all digits, and is
        // refused.
        let member = members.take(name).map(|value| value.to_string());
        member.map(|text| number(name, &text, 0, max)).transpose()
    })?;
    Ok(json(&OneId {
        id: IdText::new(service.make_id(&parts)?, &format)?,
        once,
    }))
}

pub(crate) async fn bound(call: Call) -> Answer {
    let running = call.running();
    let period = call.params.period()?;
    let own = running.own_fields()?;
    let (meta, base) = call.params.above_time(running.service.meta(), &own)?;
    let format = call.format()?;
    if let TextFormat::Opaque(..) = format {
        let why = "format must not be opaque here: opaque IDs do not sort, so they have no bounds";
        return Err(Problem::invalid("format", why));
    }
    let lower = meta.lower_bound(*period.start(), &base)?;
    let upper = meta.upper_bound(*period.end(), &base)?;
    Ok(json(&Bounds::new(lower, upper, &meta, &format)?))
}

pub(crate) async fn layout(call: Call) -> Answer {
    Ok(json(&call.running().layout()?))
}

pub(crate) async fn layouts(call: Call) -> Answer {
    let own = call.running().service.meta();
    let layouts = params::layouts(own)
        .iter()
        .map(|meta| KnownLayout::new(meta, own))
        .collect();
    Ok(json(&KnownLayouts { layouts }))
}
