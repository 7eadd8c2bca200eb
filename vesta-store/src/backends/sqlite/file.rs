//! The database as a file: created atomically, and checked for replacement.
//!
//! This module never opens a database that may be open: closing it would drop the locks that SQLite
//! holds on it in this process.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use std::time::UNIX_EPOCH;

use tempfile::{NamedTempFile, TempPath};
use vesta_service::lease::{FilePlace, StoreError};

use super::errors::Failure;
use super::fill;

/// Device and inode, which distinguish files of the same name; `None` if the file does not exist.
pub(super) type Identity = Option<(u64, u64)>;

pub(super) fn identity(path: &Path) -> Identity {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Place of the file. Facts that the system does not tell stay empty.
pub(super) fn place(path: &Path) -> Result<FilePlace, StoreError> {
    let failed = |error| StoreError::unavailable("the database file cannot be found", error);
    let file = fs::metadata(path).map_err(failed)?;
    let word = |path| fs::read_to_string(path).map_or(String::new(), |text| text.trim().to_owned());
    let machine = ["/etc/machine-id", "/var/lib/dbus/machine-id"].map(word);
    let machine = machine
        .into_iter()
        .find(|it| !matches!(&**it, "" | "uninitialized"));
    let born = file.created().ok();
    let born = born.and_then(|it| it.duration_since(UNIX_EPOCH).ok());
    Ok(FilePlace {
        machine: machine.unwrap_or_default(),
        boot: word("/proc/sys/kernel/random/boot_id"),
        device: device(file.dev()),
        inode: file.ino(),
        born: born.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(0)),
    })
}

/// A device without hardware, such as that of a container's own files, has another number after each mount.
#[cfg(target_os = "linux")]
fn device(number: u64) -> u64 {
    if rustix::fs::major(number) == 0 {
        0
    } else {
        number
    }
}

#[cfg(not(target_os = "linux"))]
fn device(number: u64) -> u64 {
    number
}

/// Creates the database under another name and then renames it. It is never visible half-created,
/// so an empty file is damage and not a fresh start.
pub(super) fn create_if_missing(path: &Path) -> Result<(), StoreError> {
    let failed = |doing: &str, error: io::Error| {
        StoreError::permanent(format!(
            "cannot {doing}: {error}; check the path and its permissions"
        ))
    };
    let exists = |path: &Path| {
        path.try_exists()
            .map_err(|e| failed("look for the database", e))
    };

    // First the log, then the database: they are created in the opposite order.
    let log = beside(path, "-wal");
    let has_log = exists(&log)?;
    if exists(path)? {
        return Ok(());
    }
    if has_log {
        return Err(StoreError::permanent(format!(
            "the database is missing, but its log {} exists; restore the database, or move the \
             log away if no process made IDs with this pool in the last minute",
            log.display()
        )));
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    // For this user only: anyone who can open a database can lock it.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|e| failed("create the folder", e))?;
    let draft = draft_in(folder).map_err(|e| failed("create the database", e))?;
    fill(&draft).map_err(Failure::explain)?;
    publish(draft, path, folder).map_err(|e| failed("create the database", e))
}

/// A file that is removed unless published. It is not kept open: see above.
fn draft_in(folder: &Path) -> io::Result<TempPath> {
    let draft = tempfile::Builder::new().suffix(".tmp").tempfile_in(folder); // 0600
    draft.map(NamedTempFile::into_temp_path)
}

fn publish(draft: TempPath, path: &Path, folder: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(&draft)?.sync_all()?;
    // Never replaces a file created meanwhile.
    match draft.persist_noclobber(path) {
        Err(failed) if failed.error.kind() == ErrorKind::AlreadyExists => {}
        published => published?,
    }
    // The name must survive a power failure, too.
    File::open(folder)?.sync_all()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
