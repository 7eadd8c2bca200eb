//! Stub for a backend disabled by its feature.

use vesta_store::import::ForeignOwner;

use super::unread;
use crate::{StartError, StoreUrl};

pub(super) fn read(from: &StoreUrl) -> Result<Vec<ForeignOwner>, StartError> {
    match vesta_store::open(from.expose()) {
        Err(error) => Err(unread(error)), // it names the feature to enable
        Ok(_) => unreachable!("callers look at the scheme first"),
    }
}
