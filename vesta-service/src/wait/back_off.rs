//! Back-off: after losing a race for the position, and after a request that failed.

use std::hint::spin_loop;
use std::sync::LazyLock;
use std::time::Duration;

use crate::clock::spins_per_microsecond;

/// The longest pause after a request to a store that failed.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The pause after a request to a store that failed, as so many did just before: 100 ms at first,
/// then twice as long each time.
pub(crate) fn retry_pause(failures: u32) -> Duration {
    let pause = Duration::from_millis(100) * 2_u32.saturating_pow(failures);
    pause.min(LONGEST_PAUSE)
}

/// Spin time of a caller that found the position taken: 4 µs at first, 16 at most.
///
/// Cores that fight over one word spend their time moving it between their caches. While one of them
/// backs off, the other works at the speed of a caller that is alone: an ID then costs under
/// contention what it costs without.
#[derive(Debug)]
pub(crate) struct BackOff {
    nanos: u32,
}

/// Spin hints in a microsecond, which differ tenfold between processors.
static SPINS: LazyLock<u32> = LazyLock::new(spins_per_microsecond);

impl BackOff {
    const FIRST: u32 = 4000;
    const LONGEST: u32 = 16_000;

    pub(crate) const fn new() -> Self {
        Self { nanos: Self::FIRST }
    }

    /// Spins, and the next time twice as long.
    #[cold]
    pub(crate) fn spin(&mut self) {
        let spins = u64::from(self.nanos) * u64::from(*SPINS) / 1000;
        (0..spins).for_each(|_| spin_loop());
        self.nanos = (self.nanos * 2).min(Self::LONGEST);
    }
}
