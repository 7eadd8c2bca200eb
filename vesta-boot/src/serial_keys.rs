//! Keys of shuffled serials: one folder, with a file of 64 hexadecimal digits per tag.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use vesta_intf::ShuffleKey;

use crate::error::Error;
use vesta_net::checked_name;

const ENDING: &str = "key";
/// Mode bits that let others read a file, or anyone but its owner write it.
const TOO_OPEN: u32 = 0o027;
/// Maximum size of a key file: the digits and surrounding white space.
const LONGEST: u64 = 1024;

/// The keys in a folder, by tag. No error quotes file contents.
///
/// # Errors
/// [`Error::Setting`] with one sentence that names the file and the fault.
pub(crate) fn read(folder: &Path) -> Result<BTreeMap<String, ShuffleKey>, Error> {
    let unreadable = |error| refused(folder, &format!("cannot be read: {error}"));
    let mut keys = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) {
            let tag = path
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned());
            keys.insert(tag.unwrap_or_default(), key(&path)?);
        }
    }
    Ok(keys)
}

/// The key of a tag, created at random if missing. The second value is the path of a newly created key.
///
/// # Errors
/// As [`read`].
pub(crate) fn find_or_make(
    folder: &Path,
    tag: &str,
) -> Result<(ShuffleKey, Option<PathBuf>), Error> {
    let why = |must| {
        Error::setting(format!(
            "the key file of a shuffled tag is named after the tag, which {must}"
        ))
    };
    checked_name(tag).map_err(why)?;
    let path = folder.join(format!("{tag}.{ENDING}"));
    if path.try_exists().unwrap_or(true) {
        return Ok((key(&path)?, None));
    }
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| {
        Error::lasting(
            false,
            format!("the system's random generator failed: {error}"),
        )
    })?;
    make(&path, &hex::encode(random)).map_err(|error| {
        Error::lasting(
            false,
            format!("cannot write the key {}: {error}", path.display()),
        )
    })?;
    Ok((ShuffleKey::new(&random), Some(path)))
}

/// Writes a key completely and durably before it is used.
pub(crate) fn make(path: &Path, digits: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(format!("{digits}\n").as_bytes())?;
    file.sync_all()?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn key(path: &Path) -> Result<ShuffleKey, Error> {
    let text = read_private(path).map_err(|why| refused(path, &why))?;
    ShuffleKey::from_hex(&text).map_err(|_| refused(path, "must be 64 hexadecimal digits"))
}

/// The text of a file that only its owner may change and others may not read, or why it is refused.
pub(crate) fn read_private(path: &Path) -> Result<String, String> {
    let read = || -> io::Result<(u32, String)> {
        let file = File::open(path)?;
        let mode = file.metadata()?.mode();
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text)?;
        Ok((mode, text))
    };
    let (mode, text) = read().map_err(|error| format!("cannot be read: {error}"))?;
    if mode & TOO_OPEN != 0 {
        let mode = mode & 0o777;
        return Err(format!(
            "others may read or change it (mode {mode:04o}); chmod 600 it"
        ));
    }
    Ok(text)
}

fn refused(path: &Path, why: &str) -> Error {
    Error::setting(format!("serial.keys: {}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const DIGITS: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn put(folder: &Path, name: &str, text: &str, mode: u32) {
        let path = folder.join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
    }

    fn refusal(folder: &Path) -> String {
        read(folder).expect_err("refused").to_string()
    }

    #[test]
    fn each_file_is_the_key_of_a_tag() {
        let folder = tempfile::tempdir().expect("a folder");
        put(folder.path(), "coupons.key", &format!("{DIGITS}\n"), 0o600);
        put(folder.path(), "of.a.group.key", DIGITS, 0o440);
        put(folder.path(), "README", "not a key", 0o644);
        let keys = read(folder.path()).expect("keys");
        assert_eq!(keys.keys().collect::<Vec<_>>(), ["coupons", "of.a.group"]);
        assert_eq!(
            keys["coupons"],
            ShuffleKey::from_hex(DIGITS).expect("a key")
        );
    }

    #[test]
    fn a_key_is_created_once_and_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let (made, path) = find_or_make(folder.path(), "coupons").expect("a key");
        let path = path.expect("it was made");
        assert_eq!(fs::metadata(&path).expect("a file").mode() & 0o777, 0o600);
        let (found, again) = find_or_make(folder.path(), "coupons").expect("a key");
        assert_eq!((found.fingerprint(), again), (made.fingerprint(), None));
        for tag in ["", "a/b", "../x", "Gutschein für alle"] {
            let said = find_or_make(folder.path(), tag).expect_err(tag).to_string();
            assert!(
                said.contains("is named after the tag, which must"),
                "{said}"
            );
        }
    }

    #[test]
    fn an_invalid_or_exposed_key_is_refused_without_quoting_it() {
        let folder = tempfile::tempdir().expect("a folder");
        for (text, mode, expected) in [
            (
                DIGITS,
                0o644,
                "coupons.key: others may read or change it (mode 0644); chmod 600 it",
            ),
            (DIGITS, 0o660, "(mode 0660)"),
            (
                &DIGITS[1..],
                0o600,
                "coupons.key: must be 64 hexadecimal digits",
            ),
            ("secret", 0o600, "must be 64 hexadecimal digits"),
        ] {
            put(folder.path(), "coupons.key", text, mode);
            let said = refusal(folder.path());
            assert!(
                said.starts_with("serial.keys: ") && said.contains(expected),
                "{said}"
            );
            assert!(!said.contains(text));
        }
        assert!(refusal(&folder.path().join("none")).contains("cannot be read"));
    }
}
