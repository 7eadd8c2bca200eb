//! Serials: numbers for people, by tag.

use vesta_boot::NewSerialRequest;
use vesta_intf::{IdError, MAX_IDS_PER_CALL, check_tag};
use vesta_numbers::serial::Reset;
use vesta_numbers::serial::SerialTag;

use super::{Answer, in_path};
use crate::dto::{ManySerials, NewSerial, Serial, SerialCreated, SerialParsed};
use crate::problem::Problem;
use crate::responses::{json, no_store};
use crate::state::Call;

/// The tag in the path, after checking the length of its name.
fn name(call: &Call) -> Result<String, IdError> {
    call.running().serials()?;
    let name = in_path(call, "tag");
    check_tag(&name)?;
    Ok(name)
}

/// The tag in the path, which may be made for this call.
async fn tag(call: &Call) -> Result<SerialTag, IdError> {
    call.running().serial_tag(&name(call)?).await
}

pub(crate) async fn next(call: Call) -> Answer {
    let once = call.params.once()?;
    let running = call.running();
    let Some(count) = call.params.optional("count", 1, MAX_IDS_PER_CALL.into())? else {
        let serial = async { tag(&call).await?.next_async().await };
        let serial = running.within(None, serial).await?;
        running.metrics.issue(call.caller, 1);
        return Ok(no_store(json(&Serial {
            once,
            ..serial.into()
        })));
    };
    let serials = async { tag(&call).await?.next_many_async(count as u32).await };
    let serials = running.within(None, serials).await?;
    running.metrics.issue(call.caller, count);
    let serials = serials.into_iter().map(Serial::from).collect();
    Ok(no_store(json(&ManySerials { serials, once })))
}

pub(crate) async fn create(call: Call) -> Answer {
    let new: NewSerial = serde_json::from_slice(&call.body).map_err(|error| {
        Problem::bad_body(format!("the body does not match its schema: {error}"))
    })?;
    let request = NewSerialRequest {
        tag: new.tag,
        pattern: new.pattern,
        reset: new.reset.map_or(Ok(Reset::Never), |reset| reset.parse())?,
        zone: new.zone,
        step: new.step,
        first: new.first,
        description: new.description,
        max_tags: new.max_tags,
    };
    let running = call.running();
    let created = running.within(None, request.create(running)).await?;
    let tag = request.tag;
    Ok(no_store(json(&SerialCreated { tag, created })))
}

pub(crate) async fn parse(call: Call) -> Answer {
    let missing = || Problem::invalid("serial", "serial is missing; it must be one of the tag");
    let serial = call.params.text("serial").ok_or_else(missing)?;
    let parsed = async {
        let serials = call.running().serials()?;
        serials.tag_async(&name(&call)?).await?.parse(serial)
    };
    let parsed = call.running().within(None, parsed).await?;
    Ok(json(&SerialParsed {
        tag: in_path(&call, "tag"),
        period: parsed.period,
        date: parsed.date,
        counter: parsed.counter.to_string(),
        check: parsed.check.map(|method| method.to_string()),
    }))
}
