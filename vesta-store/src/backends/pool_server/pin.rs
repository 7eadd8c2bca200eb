//! File with the identity of the store that answered at an earlier start.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use vesta_service::lease::{StoreError, StoreIdentity};

/// The file, if there is a state directory.
#[derive(Debug)]
pub(super) struct Pin(pub(super) Option<PathBuf>);

impl Pin {
    /// The number that this host saw before, and the name of the file.
    pub(super) fn read(&self) -> Result<Option<(u64, String)>, StoreError> {
        let Some(path) = &self.0 else { return Ok(None) };
        let shown = path.display().to_string();
        let text = match fs::read_to_string(path) {
            Ok(text) if text.is_empty() => return Ok(None), // after a crash
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::permanent(format!("{shown}: {error}"))),
        };
        match u64::from_str_radix(text.trim(), 16) {
            Ok(number) => Ok(Some((number, shown))),
            Err(_) => Err(StoreError::permanent(format!(
                "{shown} has no identity of a store in it; delete it"
            ))),
        }
    }

    /// Keeps the number. A start whose directory cannot be written goes on without.
    pub(super) fn write(&self, identity: StoreIdentity) {
        let Some(path) = &self.0 else { return };
        if let Err(error) = write(path, &format!("{identity}\n")) {
            tracing::warn!(
                file = %path.display(), %error,
                "cannot keep which store answers at this URL: each start needs an answer from every server of it, or \
                 ?id={identity} there"
            );
        }
    }
}

/// Writes a file of one line; after a crash it is empty or complete.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
