//! The store of one fixed machine ID: a file of two slots, locked for as long as the process lives.
//!
//! A change is written to one slot, synced, written to the other and synced, and only then
//! acknowledged. A torn write spoils at most one slot, and a slot that is damaged later takes nothing
//! with it that was acknowledged. The file appears under its name only when it is complete: an empty file is
//! damage, not a fresh start.

use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::slot::{MAX_NAMESPACE, SLOT, Slot, Subject};
use crate::lease::codec::{decode_record, encode_record};
use crate::lease::leases::entries;
use crate::lease::{KvStore, Namespace, Record, StoreError, Timing};

/// The state file of one machine ID, as a store of one record. Holds an exclusive lock on the file.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    subject: Subject,
    damaged: bool,
    file: Mutex<Locked>,
}

#[derive(Debug)]
struct Locked {
    file: File,
    generation: u64,
    record: Record,
    broken: Option<String>,
}

/// The reason why a state file cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum StateFileError {
    /// Another process, or another service in this one, has it.
    InUse(PathBuf),
    /// Neither slot can be read.
    Damaged(PathBuf),
    /// It belongs to another machine ID, namespace or layout.
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its owner.
        belongs_to: String,
        /// The expected owner.
        wanted: String,
    },
    /// The name of the namespace cannot be part of a file name.
    Namespace(String),
    /// The operating system refused.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl fmt::Display for StateFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(
                f,
                "the machine ID of state file {} is in use by another process; give this one \
                 another machine ID, or stop the other",
                path.display()
            ),
            Self::Damaged(path) => write!(
                f,
                "state file {} is damaged or empty, so nobody knows up to where its machine ID was \
                 used; restore the file, or use a machine ID that was never used in this namespace, \
                 or delete the file only if no ID was made with this machine ID in the last minute \
                 and the clock has not been set back since",
                path.display()
            ),
            Self::Foreign { path, belongs_to, wanted } => write!(
                f,
                "state file {} belongs to {belongs_to}, not to {wanted}; use another state_dir, or \
                 the settings it was made with",
                path.display()
            ),
            Self::Namespace(name) => write!(
                f,
                "namespace `{name}` must be 1 to {MAX_NAMESPACE} letters, digits, `.`, `_` or `-`"
            ),
            Self::Io { path, doing, source } => {
                write!(f, "cannot {doing} {}: {source}", path.display())
            }
        }
    }
}

impl Error for StateFileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

pub(crate) fn check_namespace(name: &str) -> Result<(), StateFileError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let good = (1..=MAX_NAMESPACE).contains(&name.len())
        && name.chars().all(allowed)
        && !name.starts_with('.');
    if good { Ok(()) } else { Err(StateFileError::Namespace(name.into())) }
}

impl Subject {
    fn describe(&self) -> String {
        let Subject { namespace, fingerprint, machine } = self;
        format!("machine ID {machine} of namespace `{namespace}` with layout {fingerprint}")
    }
}

impl FileStore {
    /// Opens the state file of a fixed machine ID in a folder, or creates it (and the folder).
    ///
    /// # Errors
    /// [`StateFileError`]; every case says what to do.
    pub fn open(
        folder: &Path,
        namespace: &str,
        fingerprint: &str,
        machine: u64,
    ) -> Result<Self, StateFileError> {
        check_namespace(namespace)?;
        let path = Self::path_of(folder, namespace, machine);
        let subject =
            Subject { namespace: namespace.into(), fingerprint: fingerprint.into(), machine };
        if !exists(&path)? {
            create(folder, &path, &subject)?;
        }
        Self::open_existing(path, subject)
    }

    /// Where the file of a machine ID is.
    pub(super) fn path_of(folder: &Path, namespace: &str, machine: u64) -> PathBuf {
        folder.join(format!("{namespace}-{machine}.state"))
    }

    /// Opens a file that is there.
    pub(super) fn open_existing(path: PathBuf, subject: Subject) -> Result<Self, StateFileError> {
        let (file, slots) = lock_and_read(&path)?;
        let damaged = slots.iter().any(Option::is_none);
        let Some(slot) = newest(slots) else {
            return Err(StateFileError::Damaged(path));
        };
        if slot.subject != subject {
            return Err(StateFileError::Foreign {
                path,
                belongs_to: slot.subject.describe(),
                wanted: subject.describe(),
            });
        }
        let Slot { generation, record, .. } = slot;
        let locked = Locked { file, generation, record, broken: None };
        Ok(Self { path, subject, damaged, file: Mutex::new(locked) })
    }

    /// True if one of the two slots could not be read: the record may be an older one, so a claim
    /// keeps a distance of one window from it.
    pub const fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// The machine ID.
    pub(super) const fn machine(&self) -> u64 {
        self.subject.machine
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The record as it stands.
    pub(super) fn record(&self) -> Record {
        self.file.lock().record.clone()
    }

    /// Writes what a store acknowledged, durably.
    pub(super) fn write(&self, record: &Record) -> Result<(), StoreError> {
        self.write_locked(&mut self.file.lock(), record)
    }

    fn write_locked(&self, locked: &mut Locked, record: &Record) -> Result<(), StoreError> {
        // After a failed sync the system may have dropped the very pages that a later one would
        // report as written. So the first error is final.
        if let Some(broken) = &locked.broken {
            return Err(StoreError::permanent(broken.clone()));
        }
        if !is_at(&locked.file, &self.path) {
            let message = format!(
                "state file {} was deleted or replaced while it was in use; stop every process that \
                 uses its machine ID before you start one again",
                self.path.display()
            );
            locked.broken = Some(message.clone());
            return Err(StoreError::permanent(message));
        }
        let mut slot = Slot {
            subject: self.subject.clone(),
            generation: locked.generation,
            record: record.clone(),
        };
        // Both slots, one after the other: whichever is damaged later, the other one has it too.
        let written = (0..2).try_for_each(|_| {
            slot.generation += 1;
            write_slot(&mut locked.file, &slot)
        });
        match written {
            Ok(()) => {
                locked.generation = slot.generation;
                locked.record = slot.record;
                Ok(())
            }
            Err(error) => {
                let message = format!("cannot write state file {}: {error}", self.path.display());
                locked.broken = Some(message.clone());
                Err(StoreError::permanent(message))
            }
        }
    }
}

/// True if the open file is still the one of that name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// An open file cannot be deleted or replaced here.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

fn exists(path: &Path) -> Result<bool, StateFileError> {
    path.try_exists().map_err(|source| io_error(path, "look for", source))
}

fn io_error(path: &Path, doing: &'static str, source: io::Error) -> StateFileError {
    StateFileError::Io { path: path.into(), doing, source }
}

fn write_slot(file: &mut File, slot: &Slot) -> io::Result<()> {
    let offset = if slot.generation.is_multiple_of(2) { 0 } else { SLOT as u64 };
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(&slot.encode())?;
    file.sync_data()
}

/// Writes the whole file under another name, then gives it its own: it is never seen half made.
fn create(folder: &Path, path: &Path, subject: &Subject) -> Result<(), StateFileError> {
    if !exists(folder)? {
        fs::create_dir_all(folder).map_err(|e| io_error(folder, "create folder", e))?;
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync_folder(parent.unwrap_or(Path::new(".")))?;
    }
    let draft = path.with_extension(format!("{:016x}.tmp", crate::random::u63()));
    let made = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&draft)?;
        for generation in 0..2 {
            let record = Record::default();
            let slot = Slot { subject: subject.clone(), generation, record };
            write_slot(&mut file, &slot)?;
        }
        file.sync_all()?;
        // A link, unlike a rename, never replaces a file that somebody else made meanwhile.
        match fs::hard_link(&draft, path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    })();
    let removed = fs::remove_file(&draft);
    made.and(removed).map_err(|e| io_error(path, "create state file", e))?;
    // The name, too, must outlive a power cut.
    sync_folder(folder)
}

fn sync_folder(folder: &Path) -> Result<(), StateFileError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|e| io_error(folder, "sync folder", e))
}

type Slots = [Option<Slot>; 2];

/// The slot that counts.
fn newest(slots: Slots) -> Option<Slot> {
    slots.into_iter().flatten().max_by_key(|slot| slot.generation)
}

fn lock_and_read(path: &Path) -> Result<(File, Slots), StateFileError> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|e| io_error(path, "open state file", e))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(StateFileError::InUse(path.into())),
        Err(TryLockError::Error(e)) => return Err(io_error(path, "lock state file", e)),
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|e| io_error(path, "read state file", e))?;
    let slot = |at: usize| Slot::decode(bytes.get(at..at + SLOT)?.try_into().ok()?);
    let slots = [slot(0), slot(SLOT)];
    Ok((file, slots))
}

/// The subject of a state file, if nobody else has it locked and it can be read.
pub(super) fn subject_of(path: &Path) -> Option<Subject> {
    let (_file, slots) = lock_and_read(path).ok()?;
    newest(slots).map(|slot| slot.subject)
}

/// One record, in a namespace of its own: the file was checked against both when it was opened.
impl KvStore for FileStore {
    fn describe(&self) -> String {
        format!("state file {}", self.path.display())
    }

    fn timing(&self) -> Timing {
        Timing::FILE
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        let Subject { namespace, fingerprint, machine } = &self.subject;
        let of = Namespace { uuid: 0, fingerprint: fingerprint.clone(), floor: 0 };
        Ok(entries(area, namespace, &of, *machine, &self.record()))
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        let found = self.list(area)?.into_iter().find(|(of, _)| of == key);
        Ok(found.map(|(_, value)| value))
    }

    fn put_if(
        &self,
        _area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        if key != self.subject.machine.to_string() {
            return Err(StoreError::permanent(format!("a state file has no entry `{key}`")));
        }
        let record = decode_record(new).map_err(StoreError::permanent)?;
        let mut locked = self.file.lock();
        if old != Some(encode_record(&locked.record).as_str()) {
            return Ok(false);
        }
        self.write_locked(&mut locked, &record).map(|()| true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::lease::{Cas, Leases};

    #[test]
    fn it_keeps_the_record_of_one_machine_id() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(FileStore::open(folder.path(), "eu", "a layout", 7).unwrap());
        let leases = Leases::new(store.clone(), "eu");
        let namespace = leases.open("a layout").unwrap();
        assert_eq!((namespace.uuid, namespace.fingerprint.as_str()), (0, "a layout"));
        let new = Record { epoch: 1, owner: 9, bound: 100, ..Record::default() };
        let unused = Record::default();
        assert_eq!(leases.record(7).unwrap(), Some(unused.clone()));
        assert_eq!(leases.change(7, Some(&unused), &new).unwrap(), Cas::Done);
        let other = Record { owner: 8, ..new.clone() };
        let conflict = Cas::Conflict(Some(new.clone()));
        assert_eq!(leases.change(7, Some(&unused), &other).unwrap(), conflict);
        let snapshot = leases.snapshot().unwrap();
        assert_eq!(snapshot.records.into_iter().collect::<Vec<_>>(), [(7, new)]);
        assert_eq!(leases.record(8).unwrap(), None);
        assert!(leases.change(8, None, &unused).unwrap_err().is_permanent());
        assert!(store.describe().ends_with("eu-7.state"));
    }

    #[test]
    fn a_file_that_somebody_else_made_meanwhile_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path(), "eu", "a layout", 7).unwrap();
        let before = fs::read(store.path()).unwrap();
        let other = Subject { machine: 8, ..store.subject.clone() };
        create(folder.path(), store.path(), &other).unwrap();
        assert_eq!(fs::read(store.path()).unwrap(), before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left behind");
    }
}
