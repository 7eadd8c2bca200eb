//! Definitions of serial tags.

use super::tags::ANOTHER_TAG;
use super::{Put, Refusal};
use crate::lease::codec::Entry as _;
use crate::segment::kv::entry_key;
use crate::serial::Definition;

pub(super) fn check(put: &Put) -> Result<(), Refusal> {
    let new = Definition::decode(&put.new).map_err(Refusal::undecoded)?;
    match entry_key(new.tag()) == put.key {
        true => Ok(()),
        false => Err(Refusal::of(ANOTHER_TAG)),
    }
}
