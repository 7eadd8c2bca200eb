//! The ends of the ranges that this host was given, kept in its state directory, to detect a table
//! that forgets, even across a restart.
//!
//! Each process has its own file, next to a lock that shows whether it is alive. A starting process
//! takes over the ends of dead processes; living ones are ignored, as they may still give numbers back.
//!
//! ```text
//! 5a3c09e1 {"schema":1,"store":"MySQL vesta@db:3306/ids","ends":{"orders":"2001"}}
//! ```
//! Begins with the CRC-32 of the text that follows.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use vesta_service::BuildError;
use vesta_service::inside::os;
use vesta_service::inside::sync::Mutex;
use vesta_service::inside::{Entry, Fields, SCHEMA};

/// The ends that one process was given, by tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Given {
    store: String,
    ends: BTreeMap<String, u64>,
}

/// The file of this process.
#[derive(Debug)]
pub(super) struct Ends {
    path: PathBuf,
    store: String,
    _lock: File,
    /// The ends that dead processes were given.
    before: BTreeMap<String, u64>,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    ends: BTreeMap<String, u64>,
    failed: bool,
}

impl Ends {
    /// The file of this process in a folder, which is created if it is missing. `None`, with a
    /// warning, if the folder is not writable.
    ///
    /// # Errors
    /// [`BuildError::DamagedEnds`] if a file there cannot be read or understood.
    pub(super) fn open(folder: &Path, store: &str) -> Result<Option<Self>, BuildError> {
        match Self::try_open(folder, store) {
            Ok(opened) => opened.map(Some),
            Err(error) => {
                let folder = folder.display();
                tracing::warn!(%folder, %error, "this host cannot record its segment numbers");
                Ok(None)
            }
        }
    }

    fn try_open(folder: &Path, store: &str) -> io::Result<Result<Self, BuildError>> {
        os::make_folder(folder)?;
        let name = format!("segments-{:08x}", crc32fast::hash(store.as_bytes()));
        // While a process looks for dead ones, no other process takes it for a living one.
        let starting = lock_file(&folder.join(format!("{name}.lock")))?;
        starting.lock()?;
        let (mut own, mut before) = (None, BTreeMap::<String, u64>::new());
        for number in 0_u64.. {
            let lock = folder.join(format!("{name}-{number}.lock"));
            if own.is_some() && !lock.try_exists()? {
                break;
            }
            let file = lock_file(&lock)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                locked => locked?,
            }
            let path = lock.with_extension("ends");
            match read(&path, store) {
                Ok(given) => given.ends.into_iter().for_each(|(tag, end)| {
                    let highest = before.entry(tag).or_default();
                    *highest = end.max(*highest);
                }),
                Err(why) => return Ok(Err(BuildError::DamagedEnds { path, why })),
            }
            own.get_or_insert((path, file));
        }
        let Some((path, lock)) = own else {
            return Err(ErrorKind::NotFound.into());
        };
        let (store, written) = (store.to_owned(), Mutex::default());
        Ok(Ok(Self {
            path,
            store,
            _lock: lock,
            before,
            written,
        }))
    }

    /// The end that dead processes were given for a tag.
    pub(super) fn before(&self, tag: &str) -> u64 {
        self.before.get(tag).copied().unwrap_or_default()
    }

    /// Records the ends that this process was given. Returns `false` if the file cannot be written.
    pub(super) fn write(&self, given: impl IntoIterator<Item = (String, u64)>) -> bool {
        let mut ends = self.before.clone();
        ends.extend(given);
        let mut written = self.written.lock();
        if written.ends == ends && !written.failed {
            return true;
        }
        let text = Given {
            store: self.store.clone(),
            ends: ends.clone(),
        }
        .encode();
        let done = replace(
            &self.path,
            &format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes())),
        );
        if let (Err(error), false) = (&done, written.failed) {
            let path = self.path.display();
            tracing::warn!(%path, %error, "this host could not record its segment numbers");
        }
        *written = Written {
            ends,
            failed: done.is_err(),
        };
        done.is_ok()
    }
}

fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    os::private(options.write(true).create(true).truncate(false)).open(path)
}

/// Reads the file of a process; empty if it never wrote one.
fn read(path: &Path, store: &str) -> Result<Given, String> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Given::default()),
        text => text.map_err(|error| error.to_string())?,
    };
    let (checksum, text) = text
        .trim_end()
        .split_once(' ')
        .ok_or("it is empty or cut off")?;
    if checksum != format!("{:08x}", crc32fast::hash(text.as_bytes())) {
        return Err("its checksum is wrong".into());
    }
    let given = Given::decode(text)?;
    if given.store != store {
        return Err(format!("it belongs to another store, {}", given.store));
    }
    Ok(given)
}

/// Writes the whole file under another name, then renames it: no partial file is ever visible.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("tmp");
    let mut options = OpenOptions::new();
    let mut file = os::private(options.write(true).create(true).truncate(true)).open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    path.parent().map_or(Ok(()), os::sync_folder)
}

impl Entry for Given {
    fn encode(&self) -> String {
        let ends = self.ends.iter().map(|(tag, end)| {
            let tag = Value::from(tag.as_str());
            format!(r#"{tag}:"{end}""#)
        });
        let (store, ends) = (
            Value::from(self.store.as_str()),
            ends.collect::<Vec<_>>().join(","),
        );
        format!(r#"{{"schema":{SCHEMA},"store":{store},"ends":{{{ends}}}}}"#)
    }

    fn read(fields: &Fields<'_>) -> Result<Self, String> {
        let end = |(tag, end): (&String, &Value)| Some((tag.clone(), end.as_str()?.parse().ok()?));
        let ends = |value: &Value| value.as_object()?.iter().map(end).collect();
        Ok(Self {
            store: fields.text("store")?.to_owned(),
            ends: fields.field("ends", ends)?,
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn open(folder: &Path) -> Ends {
        Ends::open(folder, "a store")
            .unwrap()
            .expect("it can be written")
    }

    fn orders(end: u64) -> [(String, u64); 1] {
        [("orders".to_owned(), end)]
    }

    #[test]
    fn a_starting_process_takes_over_the_ends_of_dead_ones_only() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| open(folder.path()));
        assert!(one.write(orders(100)) && other.write(orders(200)));
        assert_eq!(open(folder.path()).before("orders"), 0);
        drop(one);
        let third = open(folder.path());
        assert_eq!((third.before("orders"), third.before("users")), (100, 0));
        assert!(other.write(orders(150)), "it gave numbers back");
        drop((other, third));
        assert_eq!(open(folder.path()).before("orders"), 150);
        assert_eq!(
            Ends::open(folder.path(), "another")
                .unwrap()
                .unwrap()
                .before("orders"),
            0
        );
    }

    #[test]
    fn the_highest_end_of_all_dead_processes_counts() {
        for (first, second) in [(200, 100), (100, 200)] {
            let folder = tempfile::tempdir().unwrap();
            let [one, other] = [(); 2].map(|()| open(folder.path()));
            assert!(one.write(orders(first)) && other.write(orders(second)));
            drop((one, other));
            assert_eq!(
                open(folder.path()).before("orders"),
                200,
                "{first}, {second}"
            );
        }
    }

    #[test]
    fn ends_of_earlier_processes_survive_writes_for_other_tags() {
        let folder = tempfile::tempdir().unwrap();
        assert!(open(folder.path()).write(orders(100)));
        for restart in 0..3 {
            let ends = open(folder.path());
            assert_eq!(ends.before("orders"), 100, "restart {restart}");
            assert!(ends.write([(format!("users-{restart}"), 7)]));
        }
    }

    #[test]
    fn the_file_format_is_stable() {
        let folder = tempfile::tempdir().unwrap();
        let ends = open(folder.path());
        assert!(ends.write([("a\"b".to_owned(), 7), ("orders".to_owned(), u64::MAX)]));
        let text = fs::read_to_string(&ends.path).unwrap();
        let expected =
            r#"{"schema":1,"store":"a store","ends":{"a\"b":"7","orders":"18446744073709551615"}}"#;
        assert_eq!(text.split_once(' ').unwrap().1, format!("{expected}\n"));
    }

    #[test]
    fn a_file_that_is_damaged_is_refused_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let ends = open(folder.path());
        assert!(ends.write(orders(100)));
        let path = ends.path.clone();
        drop(ends);
        let good = fs::read(&path).unwrap();
        let cut = (0..good.len() - 1).map(|len| good[..len].to_vec());
        let flipped = (0..good.len() - 1).map(|at| {
            let mut bad = good.clone();
            bad[at] ^= 1;
            bad
        });
        for bad in cut.chain(flipped) {
            fs::write(&path, &bad).unwrap();
            let error = Ends::open(folder.path(), "a store").unwrap_err();
            assert!(error.is_configuration(), "{error}");
            assert!(
                error.to_string().contains(&path.display().to_string()),
                "{error}"
            );
        }
        fs::write(&path, good).unwrap();
        assert_eq!(open(folder.path()).before("orders"), 100);
    }

    #[test]
    fn an_unusable_folder_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(Ends::open(&file, "a store").unwrap().is_none());
        let ends = open(folder.path());
        fs::create_dir(ends.path.with_extension("tmp")).unwrap(); // in the way
        assert!(!ends.write(orders(100)));
        fs::remove_dir(ends.path.with_extension("tmp")).unwrap();
        assert!(ends.write(orders(100)), "retried");
    }
}
