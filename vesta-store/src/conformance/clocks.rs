//! A clock that runs an action while a thread sleeps.

use std::fmt;
use std::time::Duration;

use vesta_service::clock::Clock;
use vesta_service::contract::UnixMillis;
use vesta_service::testing::ManualClock;

/// A manual clock that runs this action whenever a thread would sleep.
pub(super) struct BusyClock<F> {
    pub(super) clock: ManualClock,
    pub(super) while_waiting: F,
}

impl<F> fmt::Debug for BusyClock<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clock.fmt(f)
    }
}

impl<F: Fn() + Send + Sync> Clock for BusyClock<F> {
    fn wall(&self) -> UnixMillis {
        self.clock.wall()
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    fn park(&self, duration: Duration) {
        self.clock.park(duration);
        (self.while_waiting)();
    }
}
