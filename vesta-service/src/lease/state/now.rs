//! The present as a value.

use std::time::Duration;

use vesta_intf::UnixMillis;

/// The present, as the driver passes it in with each step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// The monotonic clock.
    pub(crate) monotonic: Duration,
    /// The wall clock; for a holder, as far as it is believed.
    pub(crate) wall: UnixMillis,
    /// The tick of the wall clock; 0 before the epoch.
    pub(crate) wall_tick: u64,
    /// The tick from which windows count: that of the effective clock, or under a doubt that of the
    /// wall clock.
    pub(crate) tick: u64,
    /// True if the wall clock jumped so far ahead that it is not believed.
    pub(crate) suspect: bool,
    /// A fresh random number.
    pub(crate) random: u128,
    /// A random number shared by the machine IDs of a process, so that their renewals coincide.
    pub(crate) jitter: u64,
}

impl Now {
    /// 63 bits of the random number.
    #[allow(clippy::cast_possible_truncation, reason = "63 bits of it are wanted")]
    pub(crate) const fn number(&self) -> u64 {
        self.random as u64 & (u64::MAX >> 1)
    }

    /// The duration ± 10 %, so that processes started together do not renew together; the same for
    /// all machine IDs of a process.
    pub(super) fn spread(&self, duration: Duration) -> Duration {
        let percent = u32::try_from(90 + self.jitter % 21).unwrap_or(100);
        duration * percent / 100
    }
}
