//! State file: the store of one fixed machine ID. It has two slots and is locked for as long as the process
//! lives.
//!
//! A change is written to one slot and synced, then written to the other and synced, and only then
//! acknowledged. A torn write damages at most one slot, and a slot that is damaged later takes nothing
//! acknowledged with it. The file gets its name only once it is complete: an empty file is damage, not a
//! fresh start.

use std::any::Any;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;

use super::pool;
use super::slot::{SLOT, Slot};
use crate::clock::Clock;
use crate::error::StoreError;
use crate::host_guard::HostGuard;
use crate::lease::leases::entries;
use crate::lease::{Entry as _, KvStore, Local, Namespace, Record, Timing};
use crate::{BuildError, os};

/// Maximum number of files that are created together, and open at once.
const OPEN_AT_ONCE: usize = 64;

/// Folder of the state files of a namespace and its layout.
#[derive(Debug, Clone)]
pub(crate) struct StateFolder {
    pub(crate) path: PathBuf,
    pub(crate) namespace: String,
    pub(crate) fingerprint: String,
    /// Place of the store that a pool is in. Each has a separate pool file.
    pub(crate) place: String,
}

/// State file of one machine ID, as a store of one record. Holds an exclusive lock on the file.
#[derive(Debug)]
pub(crate) struct FileStore {
    folder: StateFolder,
    path: PathBuf,
    pub(super) machine: u64,
    /// True if one of the two slots could not be read. The record may then be an older one, so a claim keeps
    /// a distance of one window from it.
    pub(crate) is_damaged: bool,
    /// Records of the same machine ID in stores at other places.
    elsewhere: Vec<Record>,
    file: Mutex<Locked>,
}

#[derive(Debug)]
struct Locked {
    file: File,
    slot: Slot,
    broken: Option<String>,
}

impl StateFolder {
    /// Opens the state file of a machine ID, or creates it and the folder. A file that is in use is tried
    /// five times: a process that starts with a pool in the same folder locks it for a moment, to see whether
    /// its owner is gone.
    pub(crate) fn open(&self, machine: u64, clock: &dyn Clock) -> Result<FileStore, BuildError> {
        self.create_missing(&[machine])?;
        self.open_beside(machine, &self.pools()?, clock)
    }

    /// The same for a file that exists, beside these pool files.
    pub(super) fn open_beside(
        &self,
        machine: u64,
        pools: &[PathBuf],
        clock: &dyn Clock,
    ) -> Result<FileStore, BuildError> {
        for _ in 0..4 {
            match self.open_existing(machine, pools) {
                Err(BuildError::InUse(_)) => clock.park(Duration::from_millis(50)),
                opened => return opened,
            }
        }
        self.open_existing(machine, pools)
    }

    /// True if another process holds the file of a machine ID.
    pub(super) fn is_in_use(&self, machine: u64) -> bool {
        matches!(
            lock_and_read(&self.path_of(machine)),
            Err(BuildError::InUse(_))
        )
    }

    /// Creates the missing files, and the folder.
    pub(super) fn create_missing(&self, machines: &[u64]) -> Result<(), BuildError> {
        let mut missing = Vec::new();
        for machine in machines {
            let path = self.path_of(*machine);
            if !path
                .try_exists()
                .map_err(|e| failed("look for", &path, e))?
            {
                missing.push((path, self.subject(*machine)));
            }
        }
        missing
            .chunks(OPEN_AT_ONCE)
            .try_for_each(|files| create(&self.path, files))
    }

    /// Opens an existing file, beside the pool files of the folder.
    pub(super) fn open_existing(
        &self,
        machine: u64,
        pools: &[PathBuf],
    ) -> Result<FileStore, BuildError> {
        let path = self.path_of(machine);
        let (file, slots) = lock_and_read(&path)?;
        let mut is_damaged = slots.iter().any(Option::is_none);
        let newest = slots
            .into_iter()
            .flatten()
            .max_by_key(|slot| slot.generation);
        let Some(mut slot) = newest else {
            return Err(BuildError::Damaged(path));
        };
        let wanted = self.subject(machine);
        if slot.subject != wanted {
            return Err(BuildError::Foreign {
                path,
                belongs_to: slot.subject,
                wanted,
            });
        }
        let (mut elsewhere, oldest) = (Vec::new(), slot.generation);
        let own = self.pool_path();
        for pool in pools {
            let pooled = pool::read(pool, machine, &wanted);
            let pooled = pooled.map_err(|e| failed("read", pool, e))?;
            is_damaged |= pooled.is_damaged;
            match pooled.newest {
                Some(newer) if *pool == own => {
                    slot = std::cmp::max_by_key(newer, slot, |it| it.generation);
                }
                // A fixed machine ID begins above what any pool issued.
                Some(newer) if self.place.is_empty() && newer.generation > oldest => {
                    slot.generation = slot.generation.max(newer.generation);
                    let records = [slot.record, newer.record].into_iter();
                    slot.record = records.max_by_key(|it| it.bound).unwrap_or_default();
                }
                Some(other) => elsewhere.push(other.record),
                None => {}
            }
        }
        let file = Mutex::new(Locked {
            file,
            slot,
            broken: None,
        });
        Ok(FileStore {
            folder: self.clone(),
            path,
            machine,
            is_damaged,
            elsewhere,
            file,
        })
    }

    /// Path of a machine ID's file.
    pub(super) fn path_of(&self, machine: u64) -> PathBuf {
        self.path
            .join(format!("{}-{machine}.state", self.namespace))
    }

    /// Path of the pool file. Its name is not that of a state file.
    pub(super) fn pool_path(&self) -> PathBuf {
        let place = crc32fast::hash(self.place.as_bytes());
        self.path
            .join(format!("{}@{place:08x}.pool", self.namespace))
    }

    /// Pool files of all stores.
    pub(super) fn pools(&self) -> Result<Vec<PathBuf>, BuildError> {
        let list = |e| failed("list", &self.path, e);
        let mut pools = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(list)? {
            let name = entry.map_err(list)?.file_name();
            let of = name.to_str().and_then(|name| name.strip_suffix(".pool"));
            // Before there was one for each store, it had no place in its name.
            if of.is_some_and(|of| of.split('@').next() == Some(&*self.namespace)) {
                pools.push(self.path.join(name));
            }
        }
        Ok(pools)
    }

    fn subject(&self, machine: u64) -> String {
        let Self {
            namespace,
            fingerprint,
            ..
        } = self;
        format!("machine ID {machine} of namespace `{namespace}` with layout {fingerprint}")
    }
}

impl FileStore {
    /// Current record.
    pub(super) fn record(&self) -> Record {
        self.file.lock().slot.record.clone()
    }

    /// True if a claim was made, in whatever store.
    pub(super) fn is_used(&self) -> bool {
        self.record().epoch > 0 || !self.elsewhere.is_empty()
    }

    /// Local record, for use once its owner is gone.
    pub(super) fn local(&self) -> Local {
        Local {
            machine: self.machine,
            record: self.record(),
            is_damaged: self.is_damaged,
            elsewhere: self.elsewhere.clone(),
        }
    }

    /// Replaces the record in memory, and returns the slot to be written.
    pub(super) fn advance(&self, record: &Record) -> Slot {
        let slot = &mut self.file.lock().slot;
        (slot.record, slot.generation) = (record.clone(), slot.generation + 1);
        slot.clone()
    }

    fn write_locked(&self, locked: &mut Locked, record: &Record) -> Result<(), StoreError> {
        // After a failed sync the system may have dropped the very pages that a later one would report as
        // written. So the first error is final.
        if locked.broken.is_none() {
            locked.broken = self.try_write(locked, record).err();
        }
        locked
            .broken
            .as_ref()
            .map_or(Ok(()), |why| Err(StoreError::replaced(why.clone())))
    }

    fn try_write(&self, locked: &mut Locked, record: &Record) -> Result<(), String> {
        let path = self.path.display();
        if !os::is_at(&locked.file, &self.path) {
            return Err(format!(
                "state file {path} was deleted or replaced while it was in use; stop every process \
                 that uses its machine ID before you start one again"
            ));
        }
        let mut slot = Slot {
            record: record.clone(),
            ..locked.slot.clone()
        };
        // Both slots, one after the other: if either is damaged later, the other one has the record too.
        for _ in 0..2 {
            slot.generation += 1;
            write_slot(&mut locked.file, &slot)
                .map_err(|error| format!("cannot write state file {path}: {error}"))?;
        }
        locked.slot = slot;
        Ok(())
    }
}

fn failed(doing: &str, path: &Path, source: io::Error) -> BuildError {
    BuildError::Io {
        doing: format!("{doing} {}", path.display()),
        source,
    }
}

fn write_slot(file: &mut File, slot: &Slot) -> io::Result<()> {
    let offset = if slot.generation.is_multiple_of(2) {
        0
    } else {
        SLOT as u64
    };
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(&slot.encode())?;
    file.sync_data()
}

/// Writes complete files under temporary names, then links each to its own name, so that no file is ever seen
/// incomplete. All are written before the first is synced; syncing them then takes hardly longer than syncing
/// one.
fn create(folder: &Path, files: &[(PathBuf, String)]) -> Result<(), BuildError> {
    if !folder
        .try_exists()
        .map_err(|e| failed("look for", folder, e))?
    {
        os::make_folder(folder).map_err(|e| failed("create folder", folder, e))?;
        let parent = folder
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        sync_folder(parent.unwrap_or(Path::new(".")))?;
    }
    let mut drafts = Vec::new();
    let made = files.iter().try_for_each(|(path, subject)| {
        let draft = path.with_extension(format!("{:016x}.tmp", crate::random::u63()));
        let mut options = OpenOptions::new();
        let mut file = os::private(options.write(true).create_new(true)).open(&draft)?;
        let slots = [0, 1].map(|generation| {
            Slot {
                generation,
                subject: subject.clone(),
                record: Record::default(),
            }
            .encode()
        });
        let written = file.write_all(&slots.concat());
        drafts.push((draft, path, file));
        written
    });
    let synced = made.and_then(|()| drafts.iter().try_for_each(|(.., file)| file.sync_all()));
    let linked = synced.and_then(|()| {
        drafts
            .iter()
            .try_for_each(|(draft, path, _)| match fs::hard_link(draft, path) {
                // A link, unlike a rename, never replaces an existing file.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            })
    });
    let removed: Vec<_> = drafts
        .iter()
        .map(|(draft, ..)| fs::remove_file(draft))
        .collect();
    let removed: io::Result<()> = removed.into_iter().collect();
    linked
        .and(removed)
        .map_err(|e| failed("create state files in", folder, e))?;
    // The names must survive a power cut, too.
    sync_folder(folder)
}

fn sync_folder(folder: &Path) -> Result<(), BuildError> {
    os::sync_folder(folder).map_err(|e| failed("sync folder", folder, e))
}

fn lock_and_read(path: &Path) -> Result<(File, [Option<Slot>; 2]), BuildError> {
    let opened = os::held(OpenOptions::new().read(true).write(true)).open(path);
    let mut file = opened.map_err(|e| failed("open state file", path, e))?;
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => BuildError::InUse(path.into()),
        TryLockError::Error(e) => failed("lock state file", path, e),
    })?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|e| failed("read state file", path, e))?;
    let slots = [0, SLOT].map(|at| Slot::decode(bytes.get(at..at + SLOT)?));
    Ok((file, slots))
}

/// One record in a separate namespace: opening the file checked it against namespace and layout.
impl KvStore for FileStore {
    fn describe(&self) -> String {
        format!("state file {}", self.path.display())
    }

    fn timing(&self) -> Timing {
        Timing::FILE
    }

    fn keeps_history(&self) -> bool {
        false
    }

    /// Guards against processes with other state directorys; the file lock guards against those with this one.
    fn lock(&self, area: &str, key: &str) -> Result<Option<Box<dyn Any + Send>>, StoreError> {
        Ok(HostGuard::take(area, key).map(|guard| Box::new(guard) as _))
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        let StateFolder {
            namespace,
            fingerprint,
            ..
        } = &self.folder;
        let of = Namespace {
            fingerprint: fingerprint.clone(),
            ..Namespace::default()
        };
        Ok(entries(area, namespace, &of, self.machine, &self.record()))
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
        if key != self.machine.to_string() {
            return Err(StoreError::permanent(format!(
                "a state file has no entry `{key}`"
            )));
        }
        let record = Record::decode(new).map_err(StoreError::permanent)?;
        let mut locked = self.file.lock();
        if old != Some(locked.slot.record.encode().as_str()) {
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
    use crate::testing::ManualClock;
    use vesta_intf::UnixMillis;

    fn open(path: &Path) -> FileStore {
        let folder = StateFolder {
            path: path.into(),
            namespace: "eu".into(),
            fingerprint: "a layout".into(),
            place: String::new(),
        };
        folder.open(7, &ManualClock::at(UnixMillis(0))).unwrap()
    }

    #[test]
    fn it_keeps_the_record_of_one_machine_id() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(open(folder.path()));
        let leases = Leases::new(store.clone(), "eu");
        let namespace = leases.open("a layout").unwrap();
        assert_eq!(
            (namespace.uuid, namespace.fingerprint.as_str()),
            (0, "a layout")
        );
        let new = Record {
            epoch: 1,
            owner: 9,
            bound: 100,
            ..Record::default()
        };
        let unused = Record::default();
        assert_eq!(leases.record(7).unwrap(), Some(unused.clone()));
        assert_eq!(leases.change(7, Some(&unused), &new).unwrap(), Cas::Done);
        let other = Record {
            owner: 8,
            ..new.clone()
        };
        let conflict = Cas::Conflict(Some(new.clone()));
        assert_eq!(leases.change(7, Some(&unused), &other).unwrap(), conflict);
        let snapshot = leases.snapshot().unwrap();
        assert_eq!(snapshot.records.into_iter().collect::<Vec<_>>(), [(7, new)]);
        assert_eq!(leases.record(8).unwrap(), None);
        assert!(leases.change(8, None, &unused).unwrap_err().is_permanent());
        assert!(store.describe().ends_with("eu-7.state"));
    }

    #[test]
    fn file_created_concurrently_is_left_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let before = fs::read(&store.path).unwrap();
        create(
            folder.path(),
            &[(store.path.clone(), store.folder.subject(8))],
        )
        .unwrap();
        assert_eq!(fs::read(&store.path).unwrap(), before);
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "no draft is left behind"
        );
    }
}
