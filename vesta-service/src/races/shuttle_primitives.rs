//! Shuttle: many random interleavings of many threads.

use std::time::Duration;

pub(crate) use ::shuttle::{sync, thread, thread_local as per_thread};

/// A test that wants to see who is never woken makes its waits this long.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// `true` if a wait with this limit may time out, which then can happen at any moment.
pub(super) fn ends_by_itself(limit: Duration) -> bool {
    limit < FOR_EVER
}
