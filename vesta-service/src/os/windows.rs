//! Windows.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The name of this host in DNS.
pub(crate) fn host_name() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}

/// A file that is made. Its folder says who may open it: the user's profile is the user's alone.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// While a file is open, nobody deletes or replaces it: `FILE_SHARE_READ | FILE_SHARE_WRITE`, without
/// `FILE_SHARE_DELETE`.
pub(crate) fn held(options: &mut OpenOptions) -> &mut OpenOptions {
    options.share_mode(1 | 2)
}

pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// The journal of NTFS keeps names; a folder cannot be synced.
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// As long as it is [`held`], it is.
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
