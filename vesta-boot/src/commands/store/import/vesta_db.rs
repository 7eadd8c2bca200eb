//! Machine IDs of the Java Vesta ID Generator, in MySQL.

use vesta_store::import::ForeignOwner;
use vesta_store::mysql::vesta_machine_ids;

use super::unread;
use crate::{StartError, StoreUrl};

pub(super) fn read(from: &StoreUrl) -> Result<Vec<ForeignOwner>, StartError> {
    vesta_machine_ids(from.expose()).map_err(unread)
}
