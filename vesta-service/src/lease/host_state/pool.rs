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
use std::path::{Path, PathBuf};

use super::slot::{SLOT, Slot};
use crate::os;

/// The pool file, open for writing.
#[derive(Debug)]
pub(super) struct PoolFile {
    path: PathBuf,
    file: File,
}

/// The part of the pool file that belongs to one machine ID.
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
            let at = place(machine) + slot.generation % 2 * SIZE;
            os::write_all_at(&self.file, &slot.encode(), at)?;
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
    while let more @ 1.. = os::read_at(&file, &mut bytes[read..], place(machine) + read as u64)? {
        read += more;
    }
    for bytes in bytes.chunks(SLOT) {
        match Slot::decode(bytes) {
            Some(slot) if slot.subject == subject => {
                pooled.newest = pooled
                    .newest
                    .into_iter()
                    .chain([slot])
                    .max_by_key(|s| s.generation);
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
    fn each_machine_id_has_its_newest_slot_whatever_happens_to_others() {
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
    fn a_torn_write_leaves_the_slot_before_and_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("eu.pool");
        let file = PoolFile::open(&path).unwrap();
        file.write([(7, &slot(3, "a layout"))]).unwrap();
        file.write([(7, &slot(4, "a layout"))]).unwrap();
        // The slot of an even number is the first of the two.
        os::write_all_at(&file.file, b"torn", place(7) + 200).unwrap();
        assert_eq!(newest(&path, 7), (Some(3), true));
        file.write([(7, &slot(6, "a layout"))]).unwrap();
        assert_eq!(newest(&path, 7), (Some(6), false));
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_not_taken_for_one_that_is_missing() {
        // No system takes a NUL in a path.
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
