//! What this host remembers of the records its processes held: the state files in a folder.
//!
//! A file's lock proves that the process that wrote it is gone; its bound outlives a store that
//! forgets.

use std::fs;
use std::path::Path;

use super::FileStore;
use super::file::subject_of;

/// The state files of a namespace and layout in a folder that no living process has locked, each
/// now locked by this one. A folder that does not exist has none; a file that cannot be read is
/// left alone.
pub(crate) fn adopt(folder: &Path, namespace: &str, fingerprint: &str) -> Vec<FileStore> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "state"))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .filter_map(|path| {
            let subject = subject_of(&path)?;
            if subject.namespace != namespace || subject.fingerprint != fingerprint {
                return None;
            }
            FileStore::open_existing(path, subject).ok()
        })
        .collect()
}
