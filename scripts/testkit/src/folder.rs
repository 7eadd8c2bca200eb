//! Temporary folders, deleted when they are dropped.

use std::path::Path;

use tempfile::TempDir;

/// A temporary folder.
///
/// # Panics
/// If it cannot be made.
#[must_use]
pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A temporary folder in memory where there is one: what is synced in it need not survive.
///
/// # Panics
/// If it cannot be made.
#[must_use]
pub fn fast_folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).expect("a folder in memory")
    } else {
        folder()
    }
}
