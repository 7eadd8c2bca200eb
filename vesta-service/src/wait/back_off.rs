//! Back-off after losing a race for the position.

use std::hint::spin_loop;

/// Spin time of a caller that found the position taken: about half a microsecond at first, two at
/// most.
///
/// Cores that fight over one word spend their time moving it between their caches. While one of them
/// backs off, the other works at the speed of a caller that is alone: an ID then costs under
/// contention what it costs without.
#[derive(Debug)]
pub(crate) struct BackOff {
    pauses: u32,
}

impl BackOff {
    const FIRST: u32 = 32;
    const LONGEST: u32 = 128;

    pub(crate) const fn new() -> Self {
        Self { pauses: Self::FIRST }
    }

    /// Spins, and the next time twice as long.
    #[cold]
    pub(crate) fn spin(&mut self) {
        (0..self.pauses).for_each(|_| spin_loop());
        self.pauses = (self.pauses * 2).min(Self::LONGEST);
    }
}
