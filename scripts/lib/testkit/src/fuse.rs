//! A folder mounted a second time, through FUSE.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder mounted by bindfs: on FUSE, like sshfs. It is unmounted on drop.
#[derive(Debug)]
pub struct FuseMount(PathBuf);

impl FuseMount {
    /// Mounts the folder `of` at `at`, which is created, with these FUSE options.
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
        // A database that was just closed may still be in use for a moment.
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
