//! Shuttle: many random interleavings of many threads.

use std::time::Duration;

pub use ::shuttle::{sync, thread};

/// Tests that detect threads that are never woken use waits of this length.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// `true` if a wait with this limit may time out, which can then happen at any moment.
pub(super) fn ends_by_itself(limit: Duration) -> bool {
    limit < FOR_EVER
}
