//! The JSON API. IDs in it are strings.

use actix_web::HttpResponse;
use vesta_boot::TextFormat;
use vesta_explain::rounded;
use vesta_intf::{AsyncIdService, Id, IdError, IdFormat, MAX_RUN_IDS_PER_CALL, MakeId};
use vesta_service::LocalIdService;

use super::{Answer, decimal, new_id, new_ids};
use crate::dto::{
    Bounds, Explained, IdText, KnownLayout, KnownLayouts, Layout, ManyIds, OneId, Parts, Rounding,
    Run, Runs,
};
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
    let format = call.format()?;
    let raw = call.id_of(call.req.match_info().query("id"), &format)?;
    let meta = call.params.layout(call.running().service.meta(), raw)?;
    let id = meta.unpack(raw)?;
    Ok(json(&Explained {
        id: IdText::new(raw, &format)?,
        layout: meta.name(),
        moment: meta.moment_of(id.time)?.to_string(),
        fields: id.into(),
        // Only decimal IDs get rounded: programs take no other format for a number.
        rounded: rounded(raw)
            .filter(|_| matches!(format, TextFormat::Plain(IdFormat::Decimal)))
            .map(|it| Rounding {
                by: it.by,
                from: IdText::Decimal(it.from),
                until: IdText::Decimal(it.until),
            }),
    }))
}

pub(crate) async fn make(call: Call) -> Answer {
    let (format, once) = (call.format()?, call.params.once()?);
    let service = &call.running().service;
    let mut members: Parts = serde_json::from_slice(&call.body).map_err(|error| {
        Problem::bad_body(format!("the body does not match its schema: {error}"))
    })?;
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
    let service = &call.running().service;
    let period = call.params.period()?;
    let (meta, base) = call.params.above_time(service.meta(), &own(service)?)?;
    let format = call.format()?;
    if let TextFormat::Opaque(..) = format {
        let why = "format must not be opaque here: opaque IDs do not sort, so they have no bounds";
        return Err(Problem::invalid("format", why));
    }
    let lower = meta.lower_bound(*period.start(), &base)?;
    let upper = meta.upper_bound(*period.end(), &base)?;
    Ok(json(&Bounds {
        lower: IdText::new(lower, &format)?,
        upper: IdText::new(upper, &format)?,
        moment: meta.moment_of(meta.unpack(lower)?.time)?.to_string(),
        layout: meta.name(),
    }))
}

pub(crate) async fn layout(call: Call) -> Answer {
    let service = &call.running().service;
    Ok(json(&Layout::new(service.meta(), &own(service)?)))
}

/// Default fields of an assembled ID: the server's own.
fn own(service: &LocalIdService) -> Result<Id, IdError> {
    service.meta().unpack(service.make_id(&MakeId::new(0, 0))?)
}

pub(crate) async fn layouts(call: Call) -> Answer {
    let own = call.running().service.meta();
    let layouts = params::layouts(own)
        .iter()
        .map(|meta| KnownLayout::new(meta, own))
        .collect();
    Ok(json(&KnownLayouts { layouts }))
}
