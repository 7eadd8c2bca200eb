//! Branch prediction hint.

/// Marks the calling path as rarely taken: the compiler then moves its code out of the hot path.
#[cold]
#[inline(always)]
pub(crate) const fn unlikely() {}
