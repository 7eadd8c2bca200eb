//! Wrong clocks under a program: libfaketime sits between it and the system's clock and reads the
//! offset from a file. Only wall clocks are stepped; a monotonic clock that jumps would be a broken
//! kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lacks;

/// A wall clock set by a test. It stays right if `scripts/test.sh` found no libfaketime.
#[derive(Debug)]
pub struct WallClock {
    offset: PathBuf,
    /// `None` if the machine [`lacks`] it.
    library: Option<PathBuf>,
}

impl WallClock {
    /// A right clock, with its file in this folder.
    ///
    /// # Panics
    /// If libfaketime is not installed.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        let library = fs::read_dir("/usr/lib")
            .into_iter()
            .flatten()
            .flatten()
            .find_map(|entry| {
                let library = entry.path().join("faketime/libfaketimeMT.so.1");
                library.exists().then_some(library)
            });
        assert!(
            library.is_some() || lacks("faketime"),
            "install the package `faketime`"
        );
        let clock = Self {
            offset: folder.join("offset"),
            library,
        };
        clock.step("+0");
        clock
    }

    /// Sets the clock to this offset from the right time: `-3s`, `+1d`.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn step(&self, offset: &str) {
        let new = self.offset.with_extension("new");
        fs::write(&new, format!("{offset}\n")).expect("a file");
        fs::rename(new, &self.offset).expect("the file");
    }

    /// Puts the clock under a program.
    pub fn under<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let Some(library) = &self.library else {
            return command;
        };
        command
            .env("LD_PRELOAD", library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.offset);
        command
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    }
}
