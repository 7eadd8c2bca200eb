//! Serials: numbers for people, by tag.

use vesta_boot::serials::{ManySerials, Serial};
use vesta_intf::MAX_IDS_PER_CALL;

use super::{Answer, in_path};
use crate::problem::Problem;
use crate::responses::{json, no_store};
use crate::state::Call;

pub(crate) async fn next(call: Call) -> Answer {
    let (running, tag, once) = (call.running(), in_path(&call, "tag"), call.params.once()?);
    let count = call.params.optional("count", 1, MAX_IDS_PER_CALL.into())?;
    let serials = running.next_serials(&tag, count.unwrap_or(1) as u32);
    let mut serials = running.within(None, serials).await?;
    running.metrics.issue(call.caller, serials.len() as u64);
    Ok(no_store(match count {
        Some(_) => json(&ManySerials { serials, once }),
        None => json(&Serial {
            once,
            ..serials.remove(0)
        }),
    }))
}

pub(crate) async fn create(call: Call) -> Answer {
    let running = call.running();
    let created = running.create_serial(call.json()?);
    Ok(no_store(json(&running.within(None, created).await?)))
}

pub(crate) async fn parse(call: Call) -> Answer {
    let missing = || Problem::invalid("serial", "serial is missing; it must be one of the tag");
    let serial = call.params.text("serial").ok_or_else(missing)?;
    let (running, tag) = (call.running(), in_path(&call, "tag"));
    let parsed = running.parse_serial(&tag, serial);
    Ok(json(&running.within(None, parsed).await?))
}
