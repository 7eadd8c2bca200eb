//! Back-off: after losing a race for the position, and after a request that failed.

use std::hint::spin_loop;
use std::time::Duration;

/// The longest pause after a request to a store that failed.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The pause after a request to a store that failed, as so many did just before: 100 ms at first,
/// then twice as long each time.
pub(crate) fn retry_pause(failures: u32) -> Duration {
    let pause = Duration::from_millis(100) * 2_u32.saturating_pow(failures);
    pause.min(LONGEST_PAUSE)
}

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
