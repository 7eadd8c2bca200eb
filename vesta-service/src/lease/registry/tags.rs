//! Changes of segment and serial tags: ranges only rise, but for what the last taker gives back.

use super::{Put, Refusal, definitions};
use crate::lease::codec::Entry as _;
use crate::segment::kv::{Written, entry_key};

pub(super) fn check_range(put: &Put) -> Result<(), Refusal> {
    let read = |text: &str| Written::decode(text).map_err(Refusal::undecoded);
    let (old, new) = (put.old.as_deref().map(read).transpose()?, read(&put.new)?);
    if entry_key(&new.tag.key) != put.key {
        return Err(Refusal::of(ANOTHER_TAG));
    }
    let Some(old) = old else {
        return Ok(());
    };
    if new.tag.max_id >= old.tag.max_id {
        return Ok(());
    }
    let is_takers = put.secret.bytes().is_some() && put.secret.attempt() == old.attempt;
    if is_takers
        && old
            .from
            .is_some_and(|from| u64::try_from(new.tag.max_id).is_ok_and(|end| end >= from))
    {
        return Ok(());
    }
    Err(Refusal::of("the range of a tag falls"))
}

/// A serial's definition never changes.
pub(super) fn check_definition(put: &Put) -> Result<(), Refusal> {
    definitions::check(put)?;
    let changes = put.old.as_ref().is_some_and(|old| *old != put.new);
    if changes {
        Err(Refusal::of(
            "the definition of a serial tag does not change",
        ))
    } else {
        Ok(())
    }
}

pub(super) const ANOTHER_TAG: &str = "it is the entry of another tag";
