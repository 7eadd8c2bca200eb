//! Systems that lack what only Linux has.

use std::io;
use std::path::Path;

/// The guard that there is none of.
pub(crate) type Name = ();

pub(crate) fn take_name(_: &str) -> io::Result<Name> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) const fn file_system(_: &Path) -> Option<i64> {
    None
}
