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
        assert_eq!(adopt(folder.path(), "eu", "another layout").len(), 0);
    }
}
