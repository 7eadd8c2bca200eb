//! Segment mode: sequences by tag.

use vesta_intf::{IdRun, check_tag};

use super::v1::MAX_COUNT;
use super::{Answer, decimal, in_path};
use crate::dto::{ManyIds, OneId};
use crate::problem::Problem;
use crate::responses::{json, no_store};
use crate::state::Call;

/// The next number of the tag in the path.
pub(super) async fn next_number(call: &Call) -> Result<u64, Problem> {
    let (running, tag) = (call.running(), in_path(call, "tag"));
    let service = running.segments()?;
    check_tag(&tag)?;
    let next = async { service.segment_async(&tag).await?.next_async().await };
    Ok(running.within(None, next).await?)
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
    let service = running.segments()?;
    check_tag(&tag)?;
    let runs = async {
        service
            .segment_async(&tag)
            .await?
            .next_runs_async(count as u32)
            .await
    };
    let runs = running.within(None, runs).await?;
    let ids = runs.iter().flat_map(IdRun::iter).map(decimal).collect();
    Ok(no_store(json(&ManyIds { ids, once })))
}
