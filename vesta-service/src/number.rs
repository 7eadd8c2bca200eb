//! Conversions to 64 bits.

use std::time::Duration;

/// Converts a count, which never exceeds 64 bits.
pub fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
