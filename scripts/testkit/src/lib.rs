//! Test support shared by the crates of Vesta: random numbers and folders. Only tests depend on it.
#![forbid(unsafe_code)]

mod folder;
mod rng;

pub use folder::{fast_folder, folder};
pub use rng::Rng;

/// Whether the run is a full one, with more rounds: `VESTA_TEST_FULL` is set.
#[must_use]
pub fn is_full_run() -> bool {
    std::env::var_os("VESTA_TEST_FULL").is_some()
}
