//! What stands in for a backend that was left out of this build.

use std::sync::Arc;

use vesta_service::{LeaseStore, SegmentStore, WorkerNodeStore};

use crate::{OpenError, Options};

pub(crate) const BUILT_IN: bool = false;

pub(crate) fn open(_url: &str, _: &Options) -> Result<Arc<dyn LeaseStore>, OpenError> {
    unreachable!("callers look at BUILT_IN first")
}

#[allow(dead_code, reason = "not every backend has worker nodes")]
pub(crate) fn open_worker_nodes(
    _url: &str,
    _: &Options,
) -> Result<Arc<dyn WorkerNodeStore>, OpenError> {
    unreachable!("callers look at BUILT_IN first")
}

#[allow(dead_code, reason = "not every backend keeps segment tags")]
pub(crate) fn open_segments(_url: &str, _: &Options) -> Result<Arc<dyn SegmentStore>, OpenError> {
    unreachable!("callers look at BUILT_IN first")
}
