//! The database as a file: made whole, and noticed when it is another one.
//!
//! A database that may be open is never opened here: closing it would drop the locks that SQLite
//! holds on it in this process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use vesta_service::StoreError;

use super::errors::Failure;
use super::fill;

/// The numbers that tell a file from another under the same name; `None` if there is none.
pub(super) type Identity = Option<(u64, u64)>;

#[cfg(unix)]
pub(super) fn identity(path: &Path) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
pub(super) fn identity(path: &Path) -> Identity {
    path.exists().then_some((0, 0))
}

/// Makes the database under another name and then gives it its own: it is never seen half made, so
/// an empty file is damage and not a fresh start.
pub(super) fn create_if_missing(path: &Path) -> Result<(), StoreError> {
    let failed = |doing: &str, error: io::Error| {
        StoreError::permanent(format!(
            "cannot {doing}: {error}; check the path and its permissions"
        ))
    };
    let exists = |path: &Path| path.try_exists().map_err(|e| failed("look for the database", e));

    // First the log, then the database: whoever makes them does it in the other order.
    let log = beside(path, "-wal");
    let has_log = exists(&log)?;
    if exists(path)? {
        return Ok(());
    }
    if has_log {
        return Err(StoreError::permanent(format!(
            "the database is missing, but its log {} is there; restore the database, or move the \
             log away if no process made IDs with this pool in the last minute",
            log.display()
        )));
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(|e| failed("create the folder", e))?;
    let draft = new_file_beside(path).map_err(|e| failed("create the database", e))?;
    let made = fill(&draft)
        .map_err(Failure::explain)
        .and_then(|()| publish(&draft, path, folder).map_err(|e| failed("create the database", e)));
    let removed = fs::remove_file(&draft).map_err(|e| failed("remove the draft", e));
    made.and(removed)
}

fn publish(draft: &Path, path: &Path, folder: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(draft)?.sync_all()?;
    // A link, unlike a rename, never replaces what somebody else made meanwhile.
    match fs::hard_link(draft, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        linked => linked?,
    }
    // The name, too, must outlive a power cut.
    File::open(folder)?.sync_all()
}

fn new_file_beside(path: &Path) -> io::Result<PathBuf> {
    let pid = std::process::id();
    let mut number = 0;
    loop {
        let draft = beside(path, &format!(".{pid}-{number}.tmp"));
        match OpenOptions::new().write(true).create_new(true).open(&draft) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
            Ok(_) => return Ok(draft),
        }
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
