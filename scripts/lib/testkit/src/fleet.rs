//! Fleets of processes that make IDs: starts, pauses, kills and reads them, checks all their IDs, and
//! stops the stores under them. Wrong clocks are [`WallClock`](crate::WallClock), shipped programs
//! [`Program`](crate::programs::Program).

pub mod child;
mod ledger;
pub mod numbers;
mod process;
mod servers;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

pub use child::Event;
pub use ledger::{Answer, Ledger, Marks, Receiver};
pub use process::Process;
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

/// A random number below this one; it differs from call to call.
#[must_use]
pub fn random(below: u64) -> u64 {
    RandomState::new().build_hasher().finish() % below
}

/// Different ports of loopback without listeners, below those that systems give to outgoing connections: each stays free
/// while its server is down.
///
/// # Panics
/// Never: a random number below 10,000 is small.
#[must_use]
pub fn free_ports(count: usize) -> Vec<u16> {
    let mut held = Vec::new();
    while held.len() < count {
        let port = 20_000 + u16::try_from(random(10_000)).expect("it is below 10,000");
        held.extend(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(|it| (it, port)));
    }
    held.into_iter().map(|(_, port)| port).collect()
}
