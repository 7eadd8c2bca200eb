//! Loom: every interleaving, and every value that a load may see, of a few threads.

use std::time::Duration;

/// One for each thread of a model.
pub(crate) use ::loom::thread_local as per_thread;
pub(crate) use ::loom::{sync, thread};

/// Loom knows no time: whoever waits is woken, or the model is deadlocked.
pub(super) fn ends_by_itself(_limit: Duration) -> bool {
    false
}
