//! Key files of opaque IDs: one line with a header, the key, and a checksum of both.

use std::path::Path;

use vesta_intf::{Shuffle, ShuffleKey};

use crate::error::Error;
use crate::serial_keys::{make, read_private};
use vesta_net::sha256;

/// Kind and version of the file.
const HEADER: &str = "vesta-opaque-key-1";

/// First eight digits of the checksum of a header and a key.
fn checksum(key: &str) -> String {
    let digest = hex::encode(sha256(format!("{HEADER} {key}").as_bytes()));
    digest.chars().take(8).collect()
}

/// Writes a new random key, readable by its owner only. Returns its fingerprint.
///
/// # Errors
/// [`Error`] if the file exists or cannot be written.
pub(crate) fn new(path: &Path) -> Result<String, Error> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| {
        let why = format!("the system's random generator failed: {error}");
        Error::lasting(false, why)
    })?;
    let key = hex::encode(random);
    make(path, &format!("{HEADER} {key} {}", checksum(&key))).map_err(|error| {
        let exists = error.kind() == std::io::ErrorKind::AlreadyExists;
        let why = if exists {
            "it exists; a key is never overwritten".to_owned()
        } else {
            error.to_string()
        };
        Error::lasting(
            exists,
            format!("cannot write the key {}: {why}", path.display()),
        )
    })?;
    Ok(ShuffleKey::new(&random).fingerprint())
}

/// The permutation of a key file. No error quotes the file's contents.
///
/// # Errors
/// [`Error::Setting`] with one sentence that names the file and the fault.
pub fn read(path: &Path) -> Result<Shuffle, Error> {
    let refused = |why: &str| Error::setting(format!("the key file {} {why}", path.display()));
    let text = read_private(path).map_err(|why| refused(&why))?;
    let words: Vec<_> = text.split_whitespace().collect();
    let [HEADER, key, sum] = words[..] else {
        return Err(refused(
            "is not a key of opaque IDs, which `vesta key new FILE` makes",
        ));
    };
    if sum != checksum(key) {
        return Err(refused(
            "is damaged: its checksum is wrong; take a copy of it",
        ));
    }
    ShuffleKey::from_hex(key)
        .map(Shuffle::of_all)
        .map_err(|_| refused("is damaged: it must contain 64 hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ids.key");
        let fingerprint = new(&path).expect("a key");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!((mode & 0o777, fingerprint.len()), (0o600, 16));
        let (one, two) = (read(&path).expect("a key"), read(&path).expect("a key"));
        assert_eq!(one.shuffle(7), two.shuffle(7));
        let said = new(&path).expect_err("it exists").to_string();
        assert!(
            said.ends_with("ids.key: it exists; a key is never overwritten"),
            "{said}"
        );
        let other = folder.path().join("other.key");
        new(&other).expect("a key");
        assert_ne!(read(&other).expect("a key").shuffle(7), one.shuffle(7));
    }

    #[test]
    fn a_damaged_foreign_or_exposed_file_is_refused_without_quoting_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ids.key");
        new(&path).expect("a key");
        let right = fs::read_to_string(&path).expect("a text");
        let key = right.split(' ').nth(1).expect("a key");
        let flipped = if key.starts_with('0') { "1" } else { "0" };
        let longer = format!("{key}0");
        for (text, expected) in [
            (
                right.replacen(key, &format!("{flipped}{}", &key[1..]), 1),
                "is damaged: its checksum is wrong",
            ),
            (right.trim_end()[..right.len() - 2].to_owned(), "is damaged"),
            (
                format!("{HEADER} {longer} {}", checksum(&longer)),
                "64 hexadecimal digits",
            ),
            (format!("{key}\n"), "is not a key of opaque IDs"), // of serials
            (
                right.replace("key-1", "key-2"),
                "is not a key of opaque IDs",
            ),
            (String::new(), "is not a key of opaque IDs"),
        ] {
            fs::write(&path, &text).expect("a file");
            let said = read(&path).expect_err("refused").to_string();
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains(&key[1..20]), "{said}");
        }
        fs::write(&path, &right).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("its mode");
        assert!(
            read(&path)
                .expect_err("exposed")
                .to_string()
                .contains("chmod 600")
        );
        let none = read(&folder.path().join("none"))
            .expect_err("missing")
            .to_string();
        assert!(none.contains("cannot be read"), "{none}");
    }
}
