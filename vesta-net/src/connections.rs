//! Counters of a listener's connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Connections of the public listeners.
#[derive(Debug, Default)]
pub struct Connections {
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// Each open connection holds one reference.
    pub(crate) open: Arc<()>,
}

impl Connections {
    /// Connections accepted so far.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Connections refused at the limit so far.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Connections open now.
    pub fn open(&self) -> usize {
        Arc::strong_count(&self.open) - 1
    }
}
