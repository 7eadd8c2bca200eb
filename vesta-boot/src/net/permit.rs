//! The right to one open connection.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

/// The right to one open connection, given back on drop.
#[derive(Debug)]
pub struct Permit {
    _permit: OwnedSemaphorePermit,
    counts: Vec<Arc<()>>,
}

impl Permit {
    pub(super) const fn new(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: permit, counts: Vec::new() }
    }

    /// Counts the connection: while it is open, it holds a reference of `count`.
    #[must_use]
    pub fn counted(mut self, count: &Arc<()>) -> Self {
        self.counts.push(Arc::clone(count));
        self
    }
}
