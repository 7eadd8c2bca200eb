//! Test support shared by the crates of Vesta: random numbers, folders, programs, fleets of processes, wrong wall
//! clocks under them, the search for secrets in their output and, by feature, certificates. Failing stores and clocks
//! are vesta-service's own fakes: `FlakyStore`, `Intercept`, `MemoryStore`, `ManualClock`. Only tests depend on it.
#![forbid(unsafe_code)]

#[cfg(feature = "certificates")]
pub mod certificates;
pub mod figures;
#[cfg(unix)]
pub mod fleet;
mod folder;
mod fuse;
pub mod programs;
mod rng;
mod secrets;
#[cfg(target_os = "linux")]
pub mod slices;
#[cfg(unix)]
pub mod stores;
mod wall_clock;

pub use folder::{fast_folder, folder, namespace_of};
pub use fuse::FuseMount;
pub use rng::Rng;
pub use secrets::shape_in;
pub use wall_clock::WallClock;

/// True if this machine lacks a tool: `VESTA_TEST_LACKS`, set by `scripts/test.sh`, names it. A test that needs the
/// tool is then skipped; without the variable it fails.
#[must_use]
pub fn lacks(tool: &str) -> bool {
    std::env::var("VESTA_TEST_LACKS").is_ok_and(|lacking| lacking.split(' ').any(|one| one == tool))
}

/// The first number in a full run, otherwise the second: numbers of rounds.
#[must_use]
pub fn full_or<T>(full: T, otherwise: T) -> T {
    if is_full_run() { full } else { otherwise }
}

/// True in a run of `scripts/test.sh` without arguments, which is short: `VESTA_TEST_QUICK` is set.
#[must_use]
pub fn is_quick_run() -> bool {
    std::env::var_os("VESTA_TEST_QUICK").is_some()
}

/// True in a full run, which has more rounds: `VESTA_TEST_FULL` is set.
#[must_use]
pub fn is_full_run() -> bool {
    std::env::var_os("VESTA_TEST_FULL").is_some()
}
