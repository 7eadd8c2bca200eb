//! Loom: every interleaving of a few threads, and every value that a load may see.

use std::time::Duration;

pub use ::loom::{sync, thread};

/// Loom has no time: every waiting thread is woken, or the model is deadlocked.
pub(super) fn ends_by_itself(_limit: Duration) -> bool {
    false
}
