//! A clock that moves only on request.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use vesta_intf::UnixMillis;

use crate::clock::Clock;
use crate::number::millis;

/// A scripted clock for tests of Vesta and of programs that use it. Clones share one time.
///
/// ```
/// use std::time::Duration;
/// use vesta_service::clock::Clock;
/// use vesta_service::contract::UnixMillis;
/// use vesta_service::testing::ManualClock;
///
/// let clock = ManualClock::at(UnixMillis(1_700_000_000_000));
/// clock.advance(Duration::from_millis(5));
/// clock.set_wall(UnixMillis(1_600_000_000_000)); // a step back of the wall clock
/// assert_eq!(clock.monotonic(), Duration::from_millis(5));
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    time: Arc<Mutex<Time>>,
}

#[derive(Debug)]
struct Time {
    wall: Duration,
    monotonic: Duration,
}

impl ManualClock {
    /// A clock whose wall clock shows `wall`.
    pub fn at(wall: UnixMillis) -> Self {
        let wall = Duration::from_millis(wall.0);
        Self {
            time: Arc::new(Mutex::new(Time {
                wall,
                monotonic: Duration::ZERO,
            })),
        }
    }

    /// Lets time pass, on both clocks.
    pub fn advance(&self, by: Duration) {
        let mut time = self.time.lock();
        time.wall += by;
        time.monotonic += by;
    }

    /// Steps the wall clock; the monotonic clock is unaffected.
    pub fn set_wall(&self, wall: UnixMillis) {
        self.time.lock().wall = Duration::from_millis(wall.0);
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> UnixMillis {
        UnixMillis(millis(self.time.lock().wall))
    }

    fn until(&self, moment: UnixMillis) -> Duration {
        Duration::from_millis(moment.0).saturating_sub(self.time.lock().wall)
    }

    fn monotonic(&self) -> Duration {
        self.time.lock().monotonic
    }

    /// Advances the time by `duration` and returns at once.
    fn park(&self, duration: Duration) {
        self.advance(duration);
    }
}
