//! Stub for definitions of serial tags, disabled by the feature `serial`: only their form is checked.

use super::{Put, Refusal};
use crate::lease::Fields;

pub(super) fn check(put: &Put) -> Result<(), Refusal> {
    Fields::parse(&put.new)
        .map_err(Refusal::undecoded)
        .map(drop)
}
