//! What this host remembers of the records its processes held: the state files in a folder.
//!
//! A file's lock proves that the process that wrote it is gone; its bound outlives a store that
//! forgets.

use std::fs;
use std::path::{Path, PathBuf};

use super::file::subject_of;
use super::{FileStore, Namespace, Record, StateFileError};

/// The memory of one claim: the state files that no living process has.
#[derive(Debug)]
pub(crate) struct Memory {
    folder: Option<PathBuf>,
    namespace: String,
    fingerprint: String,
    free: Vec<FileStore>,
}

impl Memory {
    /// What the folder remembers; without a folder, nothing.
    pub(crate) fn read(folder: Option<PathBuf>, namespace: &str, fingerprint: String) -> Self {
        let mut memory =
            Self { folder, namespace: namespace.into(), fingerprint, free: Vec::new() };
        memory.read_again();
        memory
    }

    /// Looks for files that have become free since.
    pub(crate) fn read_again(&mut self) {
        if let Some(folder) = &self.folder {
            self.free.extend(adopt(folder, &self.namespace, &self.fingerprint));
        }
    }

    /// The records whose owners are gone.
    pub(crate) fn records(&self) -> Vec<(u64, Record)> {
        self.free.iter().map(|file| (file.machine(), file.record())).collect()
    }

    /// The first thing that this host remembers and a store that never forgets would know too: a
    /// bound that the store once acknowledged and now does not have. `None` also where the
    /// namespace's floor lies above it.
    pub(crate) fn unknown_to(
        &self,
        namespace: &Namespace,
        records: &[(u64, Record)],
    ) -> Option<(u64, Record)> {
        self.free.iter().find_map(|file| {
            let (shadow, store) = (file.record(), file.shadow_of());
            let current = records.iter().find(|(machine, _)| *machine == file.machine());
            let knows = |current: &Record| {
                current.epoch > shadow.epoch
                    || current.epoch == shadow.epoch
                        && (current.owner != shadow.owner || current.bound >= shadow.bound)
            };
            let known = store == namespace.uuid && current.is_some_and(|(_, r)| knows(r));
            let matters = store != 0 && shadow.bound > namespace.floor;
            (matters && !known).then(|| (file.machine(), shadow))
        })
    }

    /// The file of a machine ID whose owner is gone.
    pub(crate) fn of(&self, machine: u64) -> Option<&FileStore> {
        self.free.iter().find(|file| file.machine() == machine)
    }

    /// Whether a living process on this host has the machine ID, whatever the store says.
    pub(crate) fn is_in_use(&self, machine: u64) -> bool {
        let Some(folder) = self.folder.as_ref().filter(|_| self.of(machine).is_none()) else {
            return false;
        };
        FileStore::path_of(folder, &self.namespace, machine).exists()
            && matches!(self.open(folder, machine), Err(StateFileError::InUse(_)))
    }

    /// The file of the machine ID that was claimed, made if there is none; the others become free.
    pub(crate) fn keep(mut self, machine: u64) -> Option<FileStore> {
        if let Some(own) = self.free.iter().position(|file| file.machine() == machine) {
            return Some(self.free.swap_remove(own));
        }
        self.open(self.folder.as_ref()?, machine)
            .inspect_err(|error| {
                tracing::warn!(
                    %error,
                    "this host will not remember its machine ID: a restart takes another one"
                );
            })
            .ok()
    }

    fn open(&self, folder: &Path, machine: u64) -> Result<FileStore, StateFileError> {
        FileStore::open(folder, &self.namespace, &self.fingerprint, machine)
    }
}

/// The state files of a namespace and layout in a folder that no living process has locked, each
/// now locked by this one. A folder that does not exist has none; a file that cannot be read is
/// left alone.
fn adopt(folder: &Path, namespace: &str, fingerprint: &str) -> Vec<FileStore> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        // By name first: a look inside takes the lock, and would for that moment keep the owner of
        // another namespace's file from starting.
        .filter(|path| is_named_for(path, namespace))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .filter_map(|path| {
            let subject = subject_of(&path)?;
            if subject.namespace != namespace || subject.fingerprint != fingerprint {
                return None;
            }
            // A copy under another number proves nothing about the process that has the original.
            if path != FileStore::path_of(folder, namespace, subject.machine) {
                return None;
            }
            FileStore::open_existing(path, subject).ok()
        })
        .collect()
}

fn is_named_for(path: &Path, namespace: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let stem = name.and_then(|name| name.strip_suffix(".state"));
    stem.and_then(|stem| stem.rsplit_once('-'))
        .is_some_and(|(of, machine)| of == namespace && machine.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_named_for_the_namespace_are_looked_into() {
        let named = |name: &str| is_named_for(&Path::new("vesta-data").join(name), "eu-1");
        assert!(named("eu-1-7.state"));
        for other in
            ["eu-7.state", "eu-1-7-7.state", "a-eu-1-7.state", "eu-1-x.state", "eu-1-7.tmp"]
        {
            assert!(!named(other), "{other}");
        }
    }

    #[test]
    fn a_file_of_the_namespace_is_adopted_and_one_of_another_is_not() {
        let folder = tempfile::tempdir().unwrap();
        for namespace in ["eu", "eu-1"] {
            FileStore::open(folder.path(), namespace, "a layout", 7).unwrap();
        }
        let adopted = adopt(folder.path(), "eu", "a layout");
        assert_eq!(adopted.len(), 1);
        assert!(adopted[0].path().ends_with("eu-7.state"));
        drop(adopted);
        assert_eq!(adopt(folder.path(), "eu", "another layout").len(), 0);
    }

    #[test]
    fn a_copy_under_another_number_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let original = FileStore::open(folder.path(), "eu", "a layout", 7).unwrap();
        fs::copy(original.path(), folder.path().join("eu-8.state")).unwrap();
        assert_eq!(
            adopt(folder.path(), "eu", "a layout").len(),
            0,
            "7 is in use, and 8 is not one"
        );
        drop(original);
        assert_eq!(adopt(folder.path(), "eu", "a layout").len(), 1);
    }
    #[test]
    fn a_file_for_another_layout_is_not_in_use_unless_somebody_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let own = FileStore::open(folder.path(), "eu", "a layout", 7).unwrap();
        let other = FileStore::open(folder.path(), "eu", "another layout", 8).unwrap();
        let memory = Memory::read(Some(folder.path().into()), "eu", "a layout".into());
        assert!(memory.is_in_use(7) && memory.is_in_use(8) && !memory.is_in_use(9));
        drop((own, other));
        assert!(!memory.is_in_use(7) && !memory.is_in_use(8));
    }

    #[test]
    fn a_store_that_does_not_know_what_it_acknowledged_is_noticed() {
        let acknowledged = Record { epoch: 3, owner: 9, bound: 100, ..Record::default() };
        let folder = tempfile::tempdir().unwrap();
        let open = || FileStore::open(folder.path(), "eu", "a layout", 7).unwrap();
        open().write_shadow(1, &acknowledged).unwrap();
        let unknown = |uuid, floor, machine, known: &Record| {
            let memory = Memory::read(Some(folder.path().into()), "eu", "a layout".into());
            let namespace = Namespace { uuid, fingerprint: "a layout".into(), floor };
            memory.unknown_to(&namespace, &[(machine, known.clone())])
        };
        let same = |change: fn(&mut Record)| {
            let mut record = acknowledged.clone();
            change(&mut record);
            record
        };
        for (uuid, floor, machine, known) in [
            (1, 0, 7, same(|_| ())),
            (1, 0, 7, same(|record| record.bound = 101)),
            (1, 0, 7, same(|record| (record.owner, record.bound) = (8, 50))), // given back
            (1, 0, 7, same(|record| (record.epoch, record.bound) = (4, 50))),
            (2, 100, 8, same(|_| ())), // above what was used
        ] {
            assert_eq!(unknown(uuid, floor, machine, &known), None, "{known:?}");
        }
        for (uuid, floor, machine, known) in [
            (1, 0, 7, same(|record| record.bound = 99)),
            (1, 0, 7, same(|record| record.epoch = 2)),
            (1, 0, 7, same(|record| (record.epoch, record.owner) = (2, 8))),
            (1, 0, 8, same(|_| ())), // no record
            (2, 0, 7, same(|_| ())), // another store
            (2, 99, 7, same(|_| ())),
        ] {
            let expected = Some((7, acknowledged.clone()));
            assert_eq!(unknown(uuid, floor, machine, &known), expected, "{known:?}");
        }
        open().write_shadow(0, &acknowledged).unwrap();
        assert_eq!(unknown(1, 0, 8, &acknowledged), None, "a file that stands for itself");
    }
}
