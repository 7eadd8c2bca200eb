//! Ensures that one database is one file, however it is reached, and locks bytes of that file.
//!
//! SQLite names its log after the path. Under two names, a database has two logs, and the users of one
//! name do not see what those of the other hold.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::{HostGuard, StoreError};

/// Databases that this process has open, by device and inode, and the process that opened them. Each is
/// opened only once for its locks: closing any descriptor of a file drops the locks that SQLite holds on it
/// in this process.
static OPEN: Mutex<BTreeMap<(u64, u64), Opened>> = Mutex::new(BTreeMap::new());

type Opened = (u32, Weak<File>);

/// A database file whose bytes can be locked. Outlives every connection to it.
#[derive(Debug, Clone)]
pub(super) struct Locks(Arc<File>);

/// Lock on one byte, until dropped.
struct Locked(Arc<File>, i64);

impl Locks {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, (_, file)| file.strong_count() > 0);
        let identity = (found.dev(), found.ino());
        if let Some(file) = open.get(&identity).and_then(|(_, file)| file.upgrade()) {
            return Ok(Self(file));
        }
        let file = Arc::new(OpenOptions::new().read(true).write(true).open(path)?);
        open.insert(identity, (process::id(), Arc::downgrade(&file)));
        Ok(Self(file))
    }

    /// Locks an entry, and guards it against other databases of this host; `None` if another process holds
    /// it.
    pub(super) fn lock(&self, area: &str, key: &str) -> io::Result<Option<Box<dyn Any + Send>>> {
        // The guard comes first: a lock held by this process would not be noticed, but undone.
        let Some(guard) = HostGuard::take(area, key) else {
            return Ok(None);
        };
        let at = byte(area, key);
        match set(&self.0, libc::F_WRLCK, at) {
            Ok(()) => Ok(Some(Box::new((Locked(Arc::clone(&self.0), at), guard)))),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = set(&self.0, libc::F_UNLCK, self.1); // it ends with the process at the latest
    }
}

/// Locks of this kind belong to the open file, not to the process: they end when that file is
/// closed, but not when another one is. Linux and macOS support them.
fn set(file: &File, kind: impl TryInto<i16>, at: i64) -> io::Result<()> {
    let (l_type, l_whence) = (small(kind), small(libc::SEEK_SET));
    let lock = libc::flock {
        l_type,
        l_whence,
        l_start: at,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the descriptor is that of an open file, and the kernel only reads `lock`, which is fully
    // initialized and lives until the call returns. No crate offers this as a safe function on both
    // systems.
    #[allow(unsafe_code)]
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if done == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The constants have different types on different systems.
fn small(constant: impl TryInto<i16>) -> i16 {
    constant.try_into().ok().expect("a small constant")
}

/// The byte of an entry, far beyond the end of the file and SQLite's own locks: an FNV-1a hash of the
/// names. If two entries share a byte, the second machine ID is skipped.
fn byte(area: &str, key: &str) -> i64 {
    let names = area.bytes().chain([0]).chain(key.bytes());
    let hash = names.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    i64::try_from(1 << 61 | hash >> 3).expect("62 bits")
}

/// Refuses a database that was open when this process was forked. SQLite notes locks in memory: the child takes
/// its parent's for its own, and once the parent closes the database, what the child commits is lost.
pub(super) fn check_not_inherited(path: &Path) -> Result<(), StoreError> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = fs::metadata(path).map(|found| (found.dev(), found.ino()));
    let owner = found.ok().and_then(|identity| open.get(&identity));
    match owner {
        Some((pid, file)) if *pid != process::id() && file.strong_count() > 0 => {
            Err(StoreError::permanent(
                "this process was forked while its parent had the database open, and SQLite would take the \
                 parent's locks for its own; fork before the parent opens it, or start the child with exec",
            ))
        }
        _ => Ok(()),
    }
}

/// Refuses a database that is reachable by another name: a second hard link, or its own mount
/// point.
pub(super) fn check_single_name(path: &Path) -> Result<(), StoreError> {
    let look = || names(path).filter(|_| path.is_file());
    let other = match look() {
        Some((_, true)) => "is its own mount point",
        // A first start on a file system without rename links the file, and is about to remove its
        // draft.
        Some((2.., _))
            if {
                SystemClock::new().park(Duration::from_millis(100));
                look().is_some_and(|(links, _)| links > 1)
            } =>
        {
            "has another hard link"
        }
        _ => return Ok(()),
    };
    Err(StoreError::permanent(format!(
        "the database file {other}: a process that uses another name would not see which machine IDs are \
         in use; share its folder instead of the file"
    )))
}

/// The number of links from the file system instead of a cache, and whether it is a mount point.
#[cfg(target_os = "linux")]
fn names(path: &Path) -> Option<(u32, bool)> {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    let file = statx(CWD, path, AtFlags::STATX_FORCE_SYNC, StatxFlags::NLINK).ok()?;
    Some((
        file.stx_nlink,
        file.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
    ))
}

/// Files are never mount points on this system.
#[cfg(not(target_os = "linux"))]
fn names(path: &Path) -> Option<(u32, bool)> {
    Some((fs::metadata(path).ok()?.nlink().try_into().ok()?, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a real fork: clients/python/tests.
    #[test]
    fn a_database_that_the_parent_has_open_is_refused_in_the_child_of_a_fork() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        check_not_inherited(file.path()).expect("it is not open");
        let locks = Locks::of(file.path()).expect("opened");
        check_not_inherited(file.path()).expect("opened by this process");
        for (_, (pid, weak)) in OPEN.lock().expect("not poisoned").iter_mut() {
            if Weak::ptr_eq(weak, &Arc::downgrade(&locks.0)) {
                *pid += 1;
            }
        }
        let refused = check_not_inherited(file.path()).expect_err("the parent has it");
        assert!(refused.is_permanent());
        assert!(refused.to_string().contains("was forked"), "{refused}");
        drop(locks);
        check_not_inherited(file.path()).expect("closed before the fork");
    }

    #[test]
    fn an_entry_is_locked_on_the_file_under_any_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        fs::write(&one, "").expect("a file");
        fs::hard_link(&one, &two).expect("a link");
        let locks = Locks::of(&one).expect("opened");
        // Like another process.
        let other = Locks(Arc::new(
            File::options().write(true).open(&two).expect("a link"),
        ));
        let area = folder.path().display().to_string(); // guarded on this host, too
        let [seven, eight] = ["7", "8"].map(|key| byte(&area, key));
        let lock = |key| locks.lock(&area, key).expect("no error");
        let held = lock("7").expect("free");
        assert!(set(&other.0, libc::F_WRLCK, seven).is_err());
        set(&other.0, libc::F_WRLCK, eight).expect("another one");
        assert!(lock("8").is_none());
        drop(held);
        set(&other.0, libc::F_WRLCK, seven).expect("free again");
        assert!(lock("7").is_none());
        let again = Locks::of(&two).expect("opened");
        assert!(
            Arc::ptr_eq(&locks.0, &again.0),
            "one descriptor in a process"
        );
    }
}
