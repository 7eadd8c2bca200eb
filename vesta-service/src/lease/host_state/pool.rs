//! Pool file: the records of all machine IDs that services of this host hold from a pool. A round of renewals
//! costs one sync and few pages, however many machine IDs there are.
//!
//! ```text
//!  byte 8192 (m / 32) + 128 (m % 32)          one entry of machine ID m
//!  byte 8192 (m / 32) + 128 (m % 32) + 4096   the other
//! ```
//! An entry's generation continues that of the slots in the state file: of a machine ID's two slots and two
//! entries, the one with the highest generation counts. Only the process that holds the lock on the state
//! file writes its entries. They are written alternately, so a torn write leaves the previous entry intact,
//! and is noticed. The next claim then keeps a distance of one window; so does a neighbour's claim, if its
//! entry was torn by the same write. The file has holes where machine IDs are unused.

mod entry;

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::slot::Slot;
use crate::os;
use entry::{ENTRY, Entry};

/// The pool file, open for writing.
#[derive(Debug)]
pub(super) struct PoolFile {
    path: PathBuf,
    file: File,
}

/// Part of the pool file that belongs to one machine ID.
#[derive(Debug, Default)]
pub(super) struct Pooled {
    pub(super) newest: Option<Slot>,
    /// True if the bytes of an entry are neither zeros nor a valid entry.
    pub(super) is_damaged: bool,
}

impl PoolFile {
    /// Opens the file, or creates it; its folder must exist.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let is_new = !path.try_exists()?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = os::held(os::private(&mut options)).open(path)?;
        if let Some(folder) = path.parent().filter(|_| is_new) {
            os::sync_folder(folder)?;
        }
        Ok(Self {
            path: path.into(),
            file,
        })
    }

    /// Writes slots of machine IDs, durably.
    pub(super) fn write<'a>(
        &self,
        slots: impl IntoIterator<Item = (u64, &'a Slot)>,
    ) -> io::Result<()> {
        if !os::is_at(&self.file, &self.path) {
            return Err(io::Error::other(
                "it was deleted or replaced while it was in use",
            ));
        }
        for (machine, slot) in slots {
            let at = place(machine, slot.generation);
            os::write_all_at(&self.file, &Entry::of(slot).encode(), at)?;
        }
        self.file.sync_data()
    }
}

const BLOCK: u64 = 4096;
const SIZE: u64 = ENTRY as u64;

/// Offset of the entry of this generation.
const fn place(machine: u64, generation: u64) -> u64 {
    let (group, member) = (machine / (BLOCK / SIZE), machine % (BLOCK / SIZE));
    (2 * group + generation % 2) * BLOCK + member * SIZE
}

/// Reads what the file remembers of one machine ID for this subject. A missing file remembers nothing.
pub(super) fn read(path: &Path, machine: u64, subject: &str) -> io::Result<Pooled> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Pooled::default()),
        Err(error) => return Err(error),
    };
    let mut pooled = Pooled::default();
    for half in [0, 1] {
        let (mut bytes, mut read) = ([0; ENTRY], 0);
        let at = place(machine, half);
        while let more @ 1.. = os::read_at(&file, &mut bytes[read..], at + read as u64)? {
            read += more;
        }
        match Entry::decode(&bytes) {
            Some(entry) if entry.is_of(subject) => {
                let slot = Slot {
                    generation: entry.generation,
                    subject: subject.into(),
                    record: entry.record,
                };
                let newest = pooled.newest.into_iter().chain([slot]);
                pooled.newest = newest.max_by_key(|slot| slot.generation);
            }
            Some(_) => {}
            None => pooled.is_damaged |= bytes.iter().any(|byte| *byte != 0),
        }
    }
    Ok(pooled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Record;

    fn slot(generation: u64, subject: &str) -> Slot {
        let record = Record {
            epoch: generation,
            ..Record::default()
        };
        Slot {
            generation,
            subject: subject.into(),
            record,
        }
    }

    fn newest(path: &Path, machine: u64) -> (Option<u64>, bool) {
        let pooled = read(path, machine, "a layout").unwrap();
        (
            pooled.newest.map(|slot| slot.record.epoch),
            pooled.is_damaged,
        )
    }

    #[test]
    fn each_machine_id_has_its_newest_entry_whatever_happens_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("eu.pool");
        assert_eq!(newest(&path, 7), (None, false), "no file");
        let file = PoolFile::open(&path).unwrap();
        file.write([(7, &slot(3, "a layout")), (1023, &slot(8, "a layout"))])
            .unwrap();
        file.write([(7, &slot(4, "a layout")), (9, &slot(1, "another"))])
            .unwrap();
        for (machine, epoch) in [
            (7, Some(4)),
            (1023, Some(8)),
            (8, None),
            (9, None),
            (5000, None),
        ] {
            assert_eq!(
                newest(&path, machine),
                (epoch, false),
                "machine ID {machine}"
            );
        }
    }

    #[test]
    fn a_torn_write_leaves_the_entry_before_and_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("eu.pool");
        let file = PoolFile::open(&path).unwrap();
        file.write([(7, &slot(3, "a layout"))]).unwrap();
        file.write([(7, &slot(4, "a layout"))]).unwrap();
        os::write_all_at(&file.file, b"torn", place(7, 4) + 100).unwrap();
        assert_eq!(newest(&path, 7), (Some(3), true));
        file.write([(7, &slot(6, "a layout"))]).unwrap();
        assert_eq!(newest(&path, 7), (Some(6), false));
    }

    #[test]
    fn file_that_cannot_be_opened_does_not_count_as_missing() {
        // No system accepts a NUL in a path.
        assert!(read(Path::new("eu\0.pool"), 7, "a layout").is_err());
    }

    #[test]
    fn a_file_that_was_deleted_or_replaced_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("eu.pool");
        let file = PoolFile::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(file.write([(7, &slot(3, "a layout"))]).is_err());
        let _other = PoolFile::open(&path).unwrap();
        assert!(file.write([(7, &slot(3, "a layout"))]).is_err());
        assert_eq!(newest(&path, 7), (None, false));
    }
}
