//! Test support shared by the crates of Vesta: random numbers, folders and, by feature, certificates.
//! Only tests depend on it.
#![forbid(unsafe_code)]

#[cfg(feature = "certificates")]
pub mod certificates;
mod folder;
mod rng;

pub use folder::{fast_folder, folder};
pub use rng::Rng;

/// True in a full run, with more rounds: `VESTA_TEST_FULL` is set.
#[must_use]
pub fn is_full_run() -> bool {
    std::env::var_os("VESTA_TEST_FULL").is_some()
}
