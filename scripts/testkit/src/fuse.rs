//! A folder shown once more, through FUSE.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder as bindfs shows it: on FUSE, as sshfs and its like are. Dropping it unmounts it.
#[derive(Debug)]
pub struct FuseMount(PathBuf);

impl FuseMount {
    /// Shows the folder `of` at `at`, which is made, with these options of FUSE.
    ///
    /// # Panics
    /// Without bindfs and `/dev/fuse`.
    #[must_use]
    pub fn new(of: &Path, at: &Path, options: &str) -> Self {
        std::fs::create_dir_all(at).expect("a folder");
        let mounted = Command::new("bindfs")
            .args(["-o", options])
            .args([of, at])
            .output();
        let mounted = mounted.expect("bindfs: install the package `bindfs`");
        assert!(mounted.status.success(), "bindfs: {mounted:?}");
        Self(at.into())
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        // A database that was just closed may still be on its way.
        let lazily = |program: &str, flags: &str| {
            Command::new(program)
                .arg(flags)
                .arg(&self.0)
                .output()
                .is_ok_and(|done| done.status.success())
        };
        let _ =
            lazily("fusermount3", "-uz") || lazily("fusermount", "-uz") || lazily("umount", "-l");
    }
}
