//! A word to the compiler about what is likely.

/// Says that the path that calls it is rarely taken: its code then stands out of the way of the others.
#[cold]
#[inline(always)]
pub(crate) const fn unlikely() {}
