//! Shuttle: many random interleavings of a model.

use std::env;
use std::time::Duration;

use shuttle::rand::{Rng as _, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::{Config, Runner};

use vesta_intf::UnixMillis;

use super::Executions;
use crate::clock::Clock;
use crate::testing::ManualClock;

/// Longer than any wait that can time out.
pub const NEVER: Duration = Duration::from_secs(36_000);

fn run(
    what: &str,
    scheduler: impl Scheduler + 'static,
    model: impl Fn() + Send + Sync + Clone + 'static,
) {
    let executions = Executions::new(&model, what);
    let count = executions.counter();
    let mut config = Config::default();
    config.stack_size = 0x2_0000;
    config.silence_warnings = true; // it treats all atomics as sequentially consistent: loom does not
    Runner::new(scheduler, config).run(move || {
        count();
        model();
    });
}

/// Runs the model in this many schedules, and in ten times as many if time does not matter. Half of
/// them choose the next thread at random in each step, half change a fixed order at a few random steps.
pub fn at_random(what: &str, schedules: usize, model: impl Fn() + Send + Sync + Clone + 'static) {
    let times = if env::var_os("VESTA_TEST_FULL").is_some() {
        10
    } else {
        1
    };
    let half = schedules * times / 2;
    run(
        &format!("({what}, random)"),
        RandomScheduler::new(half),
        model.clone(),
    );
    run(
        &format!("({what}, PCT of depth 3)"),
        PctScheduler::new(3, half),
        model,
    );
}

/// Lets the other threads run for a while: up to this many steps of the calling thread.
pub fn after_a_while(steps: usize) {
    let nothing = AtomicBool::new(false);
    for _ in 0..thread_rng().gen_range(0..steps) {
        nothing.load(Ordering::SeqCst); // not a yield, which would always let the other threads run
    }
}

/// Advances on request, and while a thread sleeps.
#[derive(Debug)]
pub struct ModelClock {
    pub time: ManualClock,
    nap: Duration,
}

impl ModelClock {
    /// A clock that shows `wall`; sleeping threads are woken after a `nap`.
    pub fn at(wall: UnixMillis, nap: Duration) -> Self {
        Self {
            time: ManualClock::at(wall),
            nap,
        }
    }
}

impl Clock for ModelClock {
    fn wall(&self) -> UnixMillis {
        self.time.wall()
    }

    fn monotonic(&self) -> Duration {
        self.time.monotonic()
    }

    fn park(&self, _: Duration) {
        self.time.advance(self.nap);
        shuttle::thread::yield_now();
    }
}
