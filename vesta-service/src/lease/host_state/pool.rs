//! The pool file: the records of all machine IDs that services of this host hold from a pool, so that
//! a round of renewals costs one sync, however many they are.
//!
//! ```text
//!  byte 2048 m          one slot of machine ID m
//!  byte 2048 m + 1024   the other
//! ```
//! The slots are those of a state file, and count on from them: of all four of a machine ID the one with
//! the highest number counts. Only the process writes them that has the state file locked. They are
//! written in turn, so a torn write leaves the one before. The file has holes where machine IDs are unused.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::file::{is_at, sync_folder};
use super::slot::{SLOT, Slot};

/// The pool file, open for writing.
#[derive(Debug)]
pub(super) struct PoolFile {
    path: PathBuf,
    file: File,
}

/// What the pool file has of one machine ID.
#[derive(Debug, Default)]
pub(super) struct Pooled {
    pub(super) newest: Option<Slot>,
    /// Something is there that is no slot.
    pub(super) is_damaged: bool,
}

impl PoolFile {
    /// Opens the file, or creates it; its folder exists.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let is_new = !path.try_exists()?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        if let Some(folder) = path.parent().filter(|_| is_new) {
            sync_folder(folder).map_err(|error| io::Error::other(error.to_string()))?;
        }
        Ok(Self { path: path.into(), file })
    }

    /// Writes slots of machine IDs, durably.
    pub(super) fn write<'a>(
        &self,
        slots: impl IntoIterator<Item = (u64, &'a Slot)>,
    ) -> io::Result<()> {
        if !is_at(&self.file, &self.path) {
            return Err(io::Error::other("it was deleted or replaced while it was in use"));
        }
        for (machine, slot) in slots {
            self.file.write_all_at(&slot.encode(), place(machine) + slot.generation % 2 * SIZE)?;
        }
        self.file.sync_data()
    }
}

const SIZE: u64 = SLOT as u64;

const fn place(machine: u64) -> u64 {
    machine * 2 * SIZE
}

/// The slots of one machine ID for this subject. A file that is not there has none.
pub(super) fn read(path: &Path, machine: u64, subject: &str) -> io::Result<Pooled> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Pooled::default()),
        Err(error) => return Err(error),
    };
    let mut pooled = Pooled::default();
    let mut bytes = vec![0; 2 * SLOT];
    let mut read = 0;
    while let more @ 1.. = file.read_at(&mut bytes[read..], place(machine) + read as u64)? {
        read += more;
    }
    for bytes in bytes.chunks(SLOT) {
        match Slot::decode(bytes) {
            Some(slot) if slot.subject == subject => {
                pooled.newest =
                    pooled.newest.into_iter().chain([slot]).max_by_key(|s| s.generation);
            }
            Some(_) => {}
            None => pooled.is_damaged |= bytes.iter().any(|byte| *byte != 0),
        }
    }
    Ok(pooled)
}
