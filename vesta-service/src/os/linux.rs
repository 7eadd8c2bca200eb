//! Features of Linux.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// A name that only this process has on this host: that of an abstract socket, which is not a file,
/// needs no permission, and disappears with its process.
pub(crate) type Name = UnixDatagram;

/// Takes a name; [`io::ErrorKind::AddrInUse`] if another holder in this network namespace has it.
pub(crate) fn take_name(name: &str) -> io::Result<Name> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// The magic number of the file system of a path; `None` if the path does not exist.
#[allow(
    clippy::useless_conversion,
    reason = "the kernel's word has other types elsewhere"
)]
pub(crate) fn file_system(path: &Path) -> Option<i64> {
    let found: i64 = rustix::fs::statfs(path).ok()?.f_type.into();
    Some(found & 0xffff_ffff) // it is sign-extended where words are short
}
