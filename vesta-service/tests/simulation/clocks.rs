//! Clock faults: steps, drift, leap seconds.

use super::plan::Class;
use super::time::{DAY, HOUR, MILLI, MINUTE, SECOND, YEAR};
use super::world::World;

impl World {
    pub(crate) fn clock_fault(&mut self) {
        let number = self.rng.index(self.nodes.len());
        let clock = self.nodes[number].clock.clone();
        match self.rng.below(10) {
            0 => {
                self.time
                    .note(|| format!("node {number}: its clock is set right"));
                clock.correct();
            }
            1 => {
                // A leap second: the same second occurs twice.
                self.counts.add("leap seconds", 1);
                self.step(number, -i64::try_from(SECOND).expect("fits"));
            }
            2..=3 => {
                let most = if self.plan.class == Class::Durable {
                    100_000
                } else {
                    50
                };
                let mut ppm = || i64::try_from(self.rng.below(2 * most + 1)).expect("small");
                let (wall, monotonic) = (ppm() - most as i64, ppm() - most as i64);
                self.time
                    .note(|| format!("node {number}: its clocks go {wall}, {monotonic} ppm fast"));
                self.counts.add("drifting clocks", 1);
                clock.drift(wall, monotonic);
            }
            _ => {
                let (kind, most) = self.rng.weighed(&[
                    (20, ("clock steps of milliseconds", SECOND)),
                    (30, ("clock steps of seconds", 6 * SECOND)),
                    (20, ("clock steps of minutes", HOUR)),
                    (15, ("clock steps of hours", DAY)),
                    (7, ("clock steps of days", YEAR)),
                    (7, ("clock steps of years", 10 * YEAR)),
                    (1, ("clock steps of a century", 110 * YEAR)),
                ]);
                let least = if most <= 6 * SECOND { MILLI } else { most / 60 };
                let by = i64::try_from(self.rng.within(least..=most)).expect("fits");
                self.counts.add(kind, 1);
                let back = self.rng.percent(55);
                self.step(number, if back { -by } else { by });
            }
        }
    }

    pub(crate) fn step(&mut self, number: usize, by: i64) {
        let clock = &self.nodes[number].clock;
        if (clock.error() + i128::from(by)).abs() > self.plan.largest_clock_error_while_running() {
            clock.correct();
        } else {
            self.time
                .note(|| format!("node {number}: its clock steps by {} ms", by / 1_000_000));
            clock.step(by);
        }
    }

    /// Usually, an operator corrects a clock that is far wrong before a start. A start trusts its
    /// clock, and what it records persists.
    pub(crate) fn look_at_clock(&mut self, number: usize) {
        let clock = self.nodes[number].clock.clone();
        let limit = self.plan.largest_clock_error();
        let bad = clock.error() > i128::from(10 * MINUTE) && self.rng.percent(80);
        if bad || clock.error().abs() > limit {
            clock.correct();
        }
    }
}
