//! Machine IDs of Leaf, in ZooKeeper.

use vesta_store::import::{ForeignOwner, leaf_machine_ids};

use super::unread;
use crate::{StartError, StoreUrl};

pub(super) fn read(from: &StoreUrl) -> Result<Vec<ForeignOwner>, StartError> {
    leaf_machine_ids(from.expose()).map_err(unread)
}
