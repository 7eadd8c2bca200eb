//! The effective clock of generation: follows the wall clock and never goes back. Pure.

use std::time::Duration;

use vesta_intf::UnixMillis;

use super::ClockPair;
use crate::number::millis;

/// With more lead than this, generation stops and the effective clock stands still: the wall clock
/// then catches up at full speed.
pub(crate) const MAX_LEAD: Duration = Duration::from_nanos(MAX_LEAD_NANOS);

const MAX_LEAD_NANOS: u64 = 5_000_000_000;

/// A forward step of the wall clock beyond this, measured by the monotonic clock, is ignored at first.
const FAR_JUMP: u64 = 3_600_000_000_000;

/// A far jump is believed once it has lasted this long.
const BELIEVED_AFTER: Duration = Duration::from_secs(600);

/// Follows the wall clock and never goes back. While it is ahead of the wall clock, it advances on
/// the monotonic clock, 10 % slow, until the wall clock has caught up. All fields are in nanoseconds
/// since 1970, which fit a u64 until 2554.
#[derive(Debug, Clone)]
pub(crate) struct EffectiveClock {
    effective: u64,
    /// The last believed wall clock, advanced by the monotonic clock.
    believed: u64,
    /// Where the wall clock would be had it never been set back; never behind `effective`.
    furthest: u64,
    monotonic: Duration,
    /// A far jump that is not yet believed: when it was first seen, and the wall clock then.
    jumped: Option<(Duration, u64)>,
}

/// Reading of the effective clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The time for generation.
    pub(crate) effective: UnixMillis,
    /// Lead over the wall clock.
    pub(crate) lead: Duration,
    /// True if the wall clock jumped so far ahead that it is not believed.
    pub(crate) suspect: bool,
}

impl Reading {
    /// The wall clock, as far as it is believed.
    pub(crate) fn wall(&self) -> UnixMillis {
        UnixMillis(self.effective.0.saturating_sub(millis(self.lead)))
    }
}

impl EffectiveClock {
    /// Starts at the wall clock, or at `not_before` if that is later.
    pub(crate) fn new(wall: UnixMillis, monotonic: Duration, not_before: UnixMillis) -> Self {
        let [effective, wall] =
            [wall.max(not_before), wall].map(|moment| moment.0.saturating_mul(1_000_000));
        Self {
            effective,
            believed: wall,
            furthest: effective,
            monotonic,
            jumped: None,
        }
    }

    /// Believes the wall clock as far as a predecessor on the same clocks did: it may have been set
    /// back since.
    pub(crate) fn trust_as(&mut self, before: &Self) {
        let since = nanos(self.monotonic.saturating_sub(before.monotonic));
        self.furthest = self.furthest.max(before.furthest.saturating_add(since));
    }

    /// Takes a comparison with a store's clock into account. A far jump that the store's clock
    /// confirms is believed; one that it contradicts is not, however long it lasts.
    pub(crate) fn compare(&mut self, pair: &ClockPair) {
        if pair.agree() {
            self.furthest = self.furthest.max(pair.after.0.saturating_mul(1_000_000));
        } else {
            self.jumped = None;
        }
    }

    /// Processes the current clock readings and returns the effective time.
    pub(crate) fn observe(&mut self, wall: UnixMillis, monotonic: Duration) -> Reading {
        let wall = wall.0.saturating_mul(1_000_000);
        let elapsed = nanos(monotonic.saturating_sub(self.monotonic));
        self.monotonic = self.monotonic.max(monotonic);

        let led = self.effective.saturating_sub(self.believed);
        let expected = self.believed.saturating_add(elapsed);
        // Correcting a step back is not a jump, however long it took.
        let furthest = self.furthest.saturating_add(elapsed);
        let far = wall > furthest.saturating_add(FAR_JUMP);
        let lasts = |(since, shown): &(Duration, u64)| {
            let now = shown.saturating_add(nanos(monotonic.saturating_sub(*since)));
            wall.abs_diff(now) <= FAR_JUMP
        };
        let jumped = self.jumped.filter(lasts).unwrap_or((monotonic, wall));
        let suspect = far && monotonic.saturating_sub(jumped.0) < BELIEVED_AFTER;
        self.jumped = suspect.then_some(jumped);
        self.believed = if suspect { expected } else { wall };
        self.furthest = furthest.max(self.believed);

        // While leading, it advanced except while the lead was too large. The result does not depend
        // on how often it is observed.
        let lead = self.effective.saturating_sub(self.believed);
        let moving = if lead > 0 {
            elapsed.min(MAX_LEAD_NANOS.saturating_sub(lead))
        } else {
            let still = led.saturating_sub(MAX_LEAD_NANOS);
            elapsed
                .saturating_sub(still)
                .min(led.min(MAX_LEAD_NANOS) * 10)
        };
        let moved = self.effective + moving - moving.div_ceil(10);
        let most = self.believed.saturating_add(led); // a lead does not grow while the wall clock catches up
        self.effective = if lead > 0 {
            moved
        } else {
            moved.clamp(self.believed, most)
        };
        Reading {
            effective: UnixMillis(self.effective / 1_000_000),
            lead: self.lead(),
            suspect,
        }
    }

    fn lead(&self) -> Duration {
        Duration::from_nanos(self.effective.saturating_sub(self.believed))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOON: UnixMillis = UnixMillis(1_700_000_000_000);

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn it_follows_the_wall_clock() {
        let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(0));
        let reading = clock.observe(UnixMillis(NOON.0 + 7), ms(7));
        assert_eq!(
            reading,
            Reading {
                effective: UnixMillis(NOON.0 + 7),
                lead: ms(0),
                suspect: false
            }
        );
    }

    #[test]
    fn after_a_step_back_it_runs_slow_until_the_wall_clock_catches_up() {
        let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(0));
        let back = UnixMillis(NOON.0 - 3000);
        assert_eq!(clock.observe(back, ms(0)).lead, ms(3000));
        let after_a_second = clock.observe(UnixMillis(back.0 + 1000), ms(1000));
        assert_eq!(after_a_second.effective, UnixMillis(NOON.0 + 900));
        assert_eq!(after_a_second.lead, ms(2900));
        let after_a_minute = clock.observe(UnixMillis(back.0 + 60_000), ms(60_000));
        assert_eq!(after_a_minute.effective, UnixMillis(back.0 + 60_000));
        assert_eq!(after_a_minute.lead, ms(0));
    }

    #[test]
    fn while_ahead_its_progress_is_independent_of_how_often_it_is_read() {
        for ahead in [114, 2_000, 5_000, 8_000] {
            let mut start = EffectiveClock::new(NOON, ms(0), UnixMillis(NOON.0 + ahead));
            start.observe(NOON, ms(0));
            let (mut often, mut seldom) = (start.clone(), start);
            for passed in (100..=60_000).step_by(100) {
                let wall = UnixMillis(NOON.0 + passed);
                let dense = often.observe(wall, ms(passed));
                let sparse = seldom.clone().observe(wall, ms(passed));
                assert!(
                    dense.effective.0.abs_diff(sparse.effective.0) <= 1,
                    "{ahead}, {passed}"
                );
            }
            let at_last = UnixMillis(NOON.0 + 60_000);
            assert_eq!(seldom.observe(at_last, ms(60_000)).effective, at_last);
        }
    }

    #[test]
    fn with_more_lead_than_five_seconds_it_stands_still() {
        let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(0));
        assert_eq!(
            clock.observe(UnixMillis(NOON.0 - 60_000), ms(0)).lead,
            ms(60_000)
        );
        let later = clock.observe(UnixMillis(NOON.0 - 6_000), ms(54_000));
        assert_eq!((later.effective, later.lead), (NOON, ms(6_000)));
        let near = clock.observe(UnixMillis(NOON.0 - 4_000), ms(56_000));
        assert_eq!(
            near.lead,
            ms(4_900),
            "advancing again for one second, 10 % slow"
        );
    }

    #[test]
    fn a_jump_of_more_than_an_hour_is_ignored_until_the_clocks_agree() {
        let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(0));
        let far = UnixMillis(NOON.0 + 86_400_000);
        let jumped = clock.observe(far, ms(10));
        assert_eq!(
            jumped,
            Reading {
                effective: UnixMillis(NOON.0 + 10),
                lead: ms(0),
                suspect: true
            }
        );
        let corrected = clock.observe(UnixMillis(NOON.0 + 20), ms(20));
        assert_eq!(
            corrected,
            Reading {
                effective: UnixMillis(NOON.0 + 20),
                lead: ms(0),
                suspect: false
            }
        );
    }

    const HOUR: u64 = 3_600_000;

    fn compared(before: u64, theirs: u64, after: u64) -> ClockPair {
        let [before, theirs, after] = [before, theirs, after].map(UnixMillis);
        ClockPair {
            before,
            theirs,
            after,
            asked: ms(0),
        }
    }

    #[test]
    fn a_far_jump_is_believed_after_ten_minutes() {
        let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(0));
        let mut jumped = |passed| clock.observe(UnixMillis(NOON.0 + 2 * HOUR + passed), ms(passed));
        for passed in (1_000..=600_999).step_by(7_000).chain([600_999]) {
            let reading = jumped(passed);
            assert!(reading.suspect && reading.effective == UnixMillis(NOON.0 + passed));
        }
        let believed = Reading {
            effective: UnixMillis(NOON.0 + 2 * HOUR + 601_000),
            lead: ms(0),
            suspect: false,
        };
        assert_eq!(jumped(601_000), believed);
        assert!(!jumped(602_000).suspect);
    }

    #[test]
    fn each_far_jump_has_its_own_duration() {
        let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(0));
        assert!(clock.observe(UnixMillis(NOON.0 + 2 * HOUR), ms(0)).suspect);
        // To another time, and back for a moment.
        assert!(
            clock
                .observe(UnixMillis(NOON.0 + 4 * HOUR), ms(599_000))
                .suspect
        );
        assert!(
            clock
                .observe(UnixMillis(NOON.0 + 4 * HOUR), ms(601_000))
                .suspect
        );
        assert!(
            !clock
                .observe(UnixMillis(NOON.0 + 602_000), ms(602_000))
                .suspect
        );
        assert!(
            clock
                .observe(UnixMillis(NOON.0 + 4 * HOUR), ms(1_200_000))
                .suspect
        );
        assert!(
            clock
                .observe(UnixMillis(NOON.0 + 4 * HOUR), ms(1_799_999))
                .suspect
        );
        assert!(
            !clock
                .observe(UnixMillis(NOON.0 + 4 * HOUR), ms(1_800_000))
                .suspect
        );
    }

    #[test]
    fn a_far_jump_confirmed_by_the_stores_clock_is_believed_at_once() {
        let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(0));
        let far = NOON.0 + 2 * HOUR;
        assert!(clock.observe(UnixMillis(far), ms(0)).suspect);
        clock.compare(&compared(far, far - 60_001, far));
        assert!(
            clock.observe(UnixMillis(far + 10), ms(10)).suspect,
            "the store's clock disagrees"
        );
        clock.compare(&compared(far + 10, far - 50_000, far + 10));
        let believed = Reading {
            effective: UnixMillis(far + 20),
            lead: ms(0),
            suspect: false,
        };
        assert_eq!(clock.observe(UnixMillis(far + 20), ms(20)), believed);
    }

    #[test]
    fn a_far_jump_contradicted_by_the_stores_clock_is_never_believed() {
        let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(0));
        for passed in (0..7_200_000).step_by(300_000) {
            let far = NOON.0 + 2 * HOUR + passed;
            let reading = clock.observe(UnixMillis(far), ms(passed));
            assert_eq!(
                (reading.suspect, reading.effective),
                (true, UnixMillis(NOON.0 + passed))
            );
            clock.compare(&compared(far, NOON.0 + passed, far));
        }
    }

    #[test]
    fn correcting_a_step_back_of_any_size_is_followed() {
        let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(0));
        clock.observe(UnixMillis(NOON.0 - 7_200_000), ms(1));
        let corrected = clock.observe(UnixMillis(NOON.0 + 1000), ms(1000));
        assert!(!corrected.suspect);
        assert_eq!(corrected.effective, UnixMillis(NOON.0 + 1000));
    }

    #[test]
    fn the_first_and_later_readings_judge_a_jump_alike() {
        for (ahead, step) in [(0, 3_600_001), (16_000, 3_600_001), (16_000, 3_616_001)] {
            let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(NOON.0 + ahead));
            let jumped = UnixMillis(NOON.0 + step + 5_000);
            let first = clock.observe(jumped, ms(5_000)).suspect;
            assert_eq!(first, step > ahead + 3_600_000, "{ahead} ms ahead");
            assert_eq!(
                clock.observe(jumped, ms(5_000)).suspect,
                first,
                "{ahead} ms ahead"
            );
        }
    }

    #[test]
    fn a_step_back_may_be_corrected_after_many_hours() {
        let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(0));
        let hour = 3_600_000;
        for passed in (0..10 * hour).step_by(600_000) {
            let reading = clock.observe(UnixMillis(NOON.0 - 8 * hour + passed), ms(passed));
            assert!(!reading.suspect && reading.effective >= NOON, "{reading:?}");
        }
        let right = UnixMillis(NOON.0 + 10 * hour);
        let jumped = clock
            .clone()
            .observe(UnixMillis(right.0 + hour + 1), ms(10 * hour));
        assert!(
            jumped.suspect,
            "more than an hour ahead of every earlier reading"
        );
        let corrected = clock.observe(right, ms(10 * hour));
        assert_eq!(
            corrected,
            Reading {
                effective: right,
                lead: ms(0),
                suspect: false
            }
        );
    }

    #[test]
    fn a_successor_starts_at_its_predecessors_bound() {
        let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(NOON.0 + 3000));
        let reading = clock.observe(NOON, ms(0));
        assert_eq!(reading.effective, UnixMillis(NOON.0 + 3000));
        assert_eq!(reading.lead, ms(3000));
    }

    proptest! {
        #[test]
        fn it_never_goes_back_and_never_runs_ahead_of_real_time(
            steps in proptest::collection::vec((0u64..5_000, -90_000i64..90_000), 1..200)
        ) {
            let mut clock = EffectiveClock::new(NOON, ms(0), UnixMillis(0));
            let (mut wall, mut mono, mut highest_wall, mut last) = (NOON.0, 0, NOON.0, NOON.0);
            for (passes, step) in steps {
                wall = (wall + passes).saturating_add_signed(step);
                mono += passes;
                highest_wall = (highest_wall + passes).max(wall);
                let reading = clock.observe(UnixMillis(wall), ms(mono));
                prop_assert!(reading.effective.0 >= last);
                prop_assert!(reading.effective.0 <= highest_wall);
                last = reading.effective.0;
            }
        }
    }
}
