//! Segment mode: sequences by tag.

use vesta_boot::answers::{ManyIds, OneId};
use vesta_intf::IdRun;

use super::v1::MAX_COUNT;
use super::{Answer, decimal, in_path};
use crate::problem::Problem;
use crate::responses::{json, no_store};
use crate::state::Call;

/// The next number of the tag in the path.
pub(super) async fn next_number(call: &Call) -> Result<u64, Problem> {
    let (running, tag) = (call.running(), in_path(call, "tag"));
    let number = running.within(None, running.next_number(&tag)).await?;
    running.metrics.issue(call.caller, 1);
    Ok(number)
}

pub(crate) async fn next(call: Call) -> Answer {
    let once = call.params.once()?;
    let Some(count) = call.params.optional("count", 1, MAX_COUNT)? else {
        return Ok(no_store(json(&OneId {
            id: decimal(next_number(&call).await?),
            once,
        })));
    };
    let (running, tag) = (call.running(), in_path(&call, "tag"));
    let runs = running.next_numbers(&tag, count as u32);
    let runs = running.within(None, runs).await?;
    running.metrics.issue(call.caller, count);
    let ids = runs.iter().flat_map(IdRun::iter).map(decimal).collect();
    Ok(no_store(json(&ManyIds { ids, once })))
}
