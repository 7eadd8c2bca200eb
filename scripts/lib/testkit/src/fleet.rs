//! Fleets of processes that make IDs: starts, pauses, kills and reads them, checks all their IDs, and
//! stops the stores under them. Wrong clocks are [`WallClock`](crate::WallClock), shipped programs
//! [`Program`](crate::programs::Program).

mod ledger;
mod process;
mod servers;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

pub use ledger::Ledger;
pub use process::{Event, Process};
pub use servers::{StoreServers, store_url};

/// The monotonic clock.
///
/// # Panics
/// Never: every system has one.
#[must_use]
pub fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::try_from(now).expect("it begins at zero")
}

/// Pauses a child process that has not been waited for, so its process ID is still its own.
///
/// # Panics
/// If the process may not be signalled.
pub fn pause(pid: u32) {
    send(pid, Signal::STOP);
}

/// Resumes a paused process.
///
/// # Panics
/// If the process may not be signalled.
pub fn resume(pid: u32) {
    send(pid, Signal::CONT);
}

pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .expect("the number of a process");
    kill_process(pid, signal).expect("it may be signalled");
}

/// A random number below this one; it differs from call to call.
#[must_use]
pub fn random(below: u64) -> u64 {
    RandomState::new().build_hasher().finish() % below
}
