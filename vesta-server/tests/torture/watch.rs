//! The time of a run, on the monotonic clock, and its end.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use vesta_service::clock::{Clock as _, SystemClock};

/// Time since the start of a run.
pub(crate) struct Watch {
    clock: SystemClock,
    start: Duration,
    /// Set once: no more calls are made.
    pub(crate) over: Signal,
}

impl Watch {
    pub(crate) fn new() -> Self {
        let clock = SystemClock::new();
        Self {
            start: clock.monotonic(),
            clock,
            over: Signal::default(),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.monotonic() - self.start
    }

    /// Prints a line with its time.
    pub(crate) fn say(&self, line: &str) {
        println!("{:8.3} s  {line}", self.elapsed().as_secs_f64());
    }
}

/// An event that happens once.
#[derive(Default)]
pub(crate) struct Signal {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    pub(crate) fn set(&self) {
        *self.set.lock().expect("no panic") = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_set(&self) -> bool {
        *self.set.lock().expect("no panic")
    }

    /// True as soon as it has happened; false if it has not within this time.
    pub(crate) fn within(&self, time: Duration) -> bool {
        let set = self.set.lock().expect("no panic");
        let waited = self.changed.wait_timeout_while(set, time, |set| !*set);
        *waited.expect("no panic").0
    }
}
