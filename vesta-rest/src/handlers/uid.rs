//! uid-generator-compatible endpoints, for a server with a layout of its shape.

use vesta_intf::{FieldOrder, IdError, IdMeta, TimeUnit};

use super::vesta::in_system_zone;
use super::{Answer, new_id, with_once};
use crate::dto::UidParsed;
use crate::problem::Problem;
use crate::responses::{json, no_store, text};
use crate::state::Call;

pub(crate) async fn get(call: Call) -> Answer {
    layout(&call)?;
    let once = call.params.once()?;
    let id = new_id(&call).await?;
    Ok(no_store(text(with_once(id.to_string(), once))))
}

pub(crate) async fn parse(call: Call) -> Answer {
    let meta = layout(&call)?;
    let raw = call.params.number("uid", 0, u64::MAX)?;
    let id = meta.unpack(raw)?;
    Ok(json(&UidParsed {
        uid: raw.to_string(),
        timestamp: in_system_zone(meta.moment_of(id.time)?, "%Y-%m-%d %H:%M:%S"),
        worker_id: id.machine.to_string(),
        sequence: id.seq.to_string(),
    }))
}

/// The server's layout, if it has uid-generator's shape. There is no fallback: by another layout,
/// the fields of an ID that this server made would be wrong.
fn layout(call: &Call) -> Result<&IdMeta, Problem> {
    let meta = call.running().service.meta();
    if is_uid(meta) {
        return Ok(meta);
    }
    let what = format!(
        "a UID: this server makes IDs of layout {}, and uid-generator's are time-machine-seq in seconds, \
         without type and genMethod (docs/move/uid-generator.md); use /genid, and \
         /expid?layout=uid&id= for the UIDs of another server",
        meta.name()
    );
    Err(IdError::Unsupported { what: what.into() }.into())
}

/// True for any widths that uid-generator's `timeBits`, `workerBits` and `seqBits` choose, and any epoch.
pub(crate) fn is_uid(meta: &IdMeta) -> bool {
    let spec = meta.spec();
    (spec.type_bits, spec.gen_method_bits) == (0, 0)
        && (spec.order, spec.unit) == (FieldOrder::TimeMachineSeq, TimeUnit::Second)
}
