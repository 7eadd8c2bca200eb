//! Loom: every interleaving of a few threads, and every value that a load may see.

use std::time::Duration;

/// One for each thread of a model.
pub use ::loom::thread_local as per_thread;
pub use ::loom::{sync, thread};

/// Loom has no time: every waiting thread is woken, or the model is deadlocked.
pub(super) fn ends_by_itself(_limit: Duration) -> bool {
    false
}
