//! Windows.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The DNS name of this host.
pub(crate) fn host_name() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}

/// Options for a created file. Its folder controls access: the user's profile is private to the user.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// While the file is open, it cannot be deleted or replaced: `FILE_SHARE_READ | FILE_SHARE_WRITE`,
/// without `FILE_SHARE_DELETE`.
pub(crate) fn held(options: &mut OpenOptions) -> &mut OpenOptions {
    options.share_mode(1 | 2)
}

/// Creates a folder and those above it.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// The NTFS journal keeps names; a folder cannot be synced.
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Always true while the file is [`held`].
pub(crate) fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = file.seek_write(bytes, at)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        (bytes, at) = (&bytes[written..], at + written as u64);
    }
    Ok(())
}

pub(crate) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    file.seek_read(bytes, at)
}
