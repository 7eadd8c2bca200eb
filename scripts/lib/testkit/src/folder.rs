//! Temporary folders, deleted on drop.

use std::path::Path;

use tempfile::TempDir;

/// A temporary folder.
///
/// # Panics
/// If the folder cannot be created.
#[must_use]
pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A namespace that nothing else on this host uses, named after a temporary folder. Two services with one
/// fixed machine ID exclude each other on a host, even if they belong to different tests.
///
/// # Panics
/// If the folder has no name.
#[must_use]
pub fn namespace_of(folder: &Path) -> String {
    let name = folder
        .file_name()
        .expect("a temporary folder")
        .to_string_lossy();
    name.trim_start_matches('.').to_owned()
}

/// A temporary folder in memory if possible: data synced in it need not survive.
///
/// # Panics
/// If the folder cannot be created.
#[must_use]
pub fn fast_folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).expect("a folder in memory")
    } else {
        folder()
    }
}
