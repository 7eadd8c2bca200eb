//! uid-generator-compatible endpoints, for a server with its layout.

use vesta_intf::{IdError, IdMeta, LayoutSpec};

use super::vesta::in_system_zone;
use super::{Answer, characters, decimal, json, new_id, no_store, text};
use crate::dto::UidParsed;
use crate::state::Call;

pub(crate) async fn get(call: Call) -> Answer {
    let meta = call.running().service.meta();
    if !is_uid(meta) {
        let what = format!(
            "a UID: this server makes IDs of layout {}; start one with the widths of uid-generator \
             (docs/FROM-UID-GENERATOR.md), or use /genid",
            meta.name()
        );
        return Err(IdError::Unsupported { what: what.into() }.into());
    }
    let id = new_id(&call).await?;
    Ok(no_store(text(characters(decimal(id)))))
}

pub(crate) async fn parse(call: Call) -> Answer {
    // The server's layout if it is uid-generator's, else uid-generator's default.
    let own = call.running().service.meta();
    let meta = if is_uid(own) { own } else { &IdMeta::UID };
    let raw = call.params.number("uid", 0, u64::MAX)?;
    let id = meta.unpack(raw)?;
    Ok(json(&UidParsed {
        uid: raw.to_string(),
        timestamp: in_system_zone(meta.moment_of(id.time)?, "%Y-%m-%d %H:%M:%S"),
        worker_id: id.machine.to_string(),
        sequence: id.seq.to_string(),
    }))
}

/// Compares all but the epoch: the default's time field ran out in 2024.
fn is_uid(meta: &IdMeta) -> bool {
    LayoutSpec { epoch: IdMeta::UID.spec().epoch, ..*meta.spec() } == *IdMeta::UID.spec()
}
