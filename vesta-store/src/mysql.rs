//! Records in MySQL.

use std::sync::Arc;

use vesta_service::{LeaseStore, WorkerNodeStore};

use crate::{OpenError, Options};

pub(crate) const BUILT_IN: bool = true;

pub(crate) fn open(_url: &str, _options: &Options) -> Result<Arc<dyn LeaseStore>, OpenError> {
    unimplemented!()
}

pub(crate) fn open_worker_nodes(
    _url: &str,
    _options: &Options,
) -> Result<Arc<dyn WorkerNodeStore>, OpenError> {
    unimplemented!()
}
