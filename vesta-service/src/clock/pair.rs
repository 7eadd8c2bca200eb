//! Two clocks, compared at the moment of a reply. Pure.

use std::time::Duration;

use vesta_intf::UnixMillis;

use super::Clock;
use crate::number::millis;

/// The largest difference at which two clocks count as agreeing. Beyond it one of them is wrong.
const AGREE: Duration = Duration::from_secs(60);

/// Another clock's reading, and this host's clock before and after the request for it. The other
/// clock was read at some moment in between, so a slow reply does not count as a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockPair {
    /// This host's wall clock before the request: the reading after it, minus the duration of the
    /// request by the monotonic clock. So a step in between counts as a difference, not as duration.
    pub before: UnixMillis,
    /// The other clock's reading.
    pub theirs: UnixMillis,
    /// This host's wall clock after the reply.
    pub after: UnixMillis,
    /// This host's monotonic clock before the request.
    pub asked: Duration,
}

impl ClockPair {
    /// Reads this host's clock around a request for the other one; `None` if the other one does not exist.
    ///
    /// # Errors
    /// The errors of the request.
    pub fn read<E>(
        clock: &dyn Clock,
        ask: impl FnOnce() -> Result<Option<UnixMillis>, E>,
    ) -> Result<Option<Self>, E> {
        let asked = clock.monotonic();
        let theirs = ask()?;
        let (after, took) = (clock.wall(), clock.monotonic().saturating_sub(asked));
        let before = UnixMillis(after.0.saturating_sub(millis(took)));
        Ok(theirs.map(|theirs| Self {
            before,
            theirs,
            after,
            asked,
        }))
    }

    /// This host's reading that is nearest to the other clock's.
    pub fn ours(&self) -> UnixMillis {
        self.theirs.clamp(self.before, self.after)
    }

    /// The difference that the duration of the request does not explain.
    pub fn apart(&self) -> Duration {
        Duration::from_millis(self.ours().0.abs_diff(self.theirs.0))
    }

    /// True unless one of the clocks is wrong.
    pub fn agree(&self) -> bool {
        self.apart() <= AGREE
    }

    /// The latest time that the other clock can show at this moment of this host's monotonic clock.
    pub fn latest(&self, monotonic: Duration) -> UnixMillis {
        let since = monotonic.saturating_sub(self.asked);
        UnixMillis(self.theirs.0.saturating_add(millis(since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ManualClock;

    fn pair(before: u64, theirs: u64, after: u64) -> ClockPair {
        let [before, theirs, after] = [before, theirs, after].map(UnixMillis);
        ClockPair {
            before,
            theirs,
            after,
            asked: Duration::from_secs(5),
        }
    }

    #[test]
    fn a_difference_is_the_distance_to_the_nearest_reading() {
        for (readings, ours, apart) in [
            ((1_000, 1_000, 1_000), 1_000, 0),
            ((1_000, 1_700, 3_000), 1_700, 0),
            ((1_000, 400, 3_000), 1_000, 600),
            ((1_000, 3_600, 3_000), 3_000, 600),
        ] {
            let pair = pair(readings.0, readings.1, readings.2);
            let shown = (pair.ours(), pair.apart());
            assert_eq!(
                shown,
                (UnixMillis(ours), Duration::from_millis(apart)),
                "{pair:?}"
            );
        }
    }

    #[test]
    fn a_step_of_this_hosts_clock_during_the_request_is_a_difference() {
        for (step, took, apart) in [(0, 0, 0), (0, 1_500, 0), (7_200_000, 1_500, 7_198_500)] {
            let clock = ManualClock::at(UnixMillis(100_000));
            let pair = ClockPair::read(&clock, || {
                clock.advance(Duration::from_millis(took));
                clock.set_wall(UnixMillis(clock.wall().0 + step));
                Ok::<_, ()>(Some(UnixMillis(100_000 + took)))
            });
            assert_eq!(pair.unwrap().unwrap().apart(), Duration::from_millis(apart));
        }
    }

    #[test]
    fn clocks_agree_up_to_a_minute_apart() {
        assert!(pair(100_000, 160_000, 100_000).agree() && pair(100_000, 40_000, 100_000).agree());
        assert!(
            !pair(100_000, 160_001, 100_000).agree() && !pair(100_000, 39_999, 100_000).agree()
        );
    }

    #[test]
    fn the_other_clock_advances_at_most_the_time_since_the_request() {
        let pair = pair(1_000, 1_700, 3_000);
        assert_eq!(pair.latest(Duration::from_secs(5)), UnixMillis(1_700));
        assert_eq!(pair.latest(Duration::from_secs(8)), UnixMillis(4_700));
    }
}
