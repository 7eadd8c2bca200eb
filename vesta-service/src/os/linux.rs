//! Features of Linux.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

/// A name that only this process has on this host: that of an abstract socket, which is not a file,
/// needs no permission, and disappears with its process. It listens only so that others can ask whose it is.
pub(crate) type Name = UnixListener;

/// Takes a name; [`io::ErrorKind::AddrInUse`] if another holder in this network namespace has it.
pub(crate) fn take_name(name: &str) -> io::Result<Name> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// The user whose process has a name; `None` if it does not show.
pub(crate) fn user_of(name: &str) -> Option<u32> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC; // a holder never accepts
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).ok()?;
    net::connect(&socket, &address).ok()?;
    let peer = net::sockopt::socket_peercred(&socket).ok()?;
    Some(peer.uid.as_raw())
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

/// True if this process can make all its threads pass a memory barrier.
pub(crate) fn barrier_exists() -> bool {
    membarrier_query().contains_command(MembarrierCommand::PrivateExpedited)
}

/// Lets [`barrier_in_all_threads`] take microseconds at its first call, too.
pub(crate) fn prepare_barrier() {
    // A failure shows in the barrier.
    let _ = membarrier(MembarrierCommand::RegisterPrivateExpedited);
}

/// Makes every running thread of this process pass a full memory barrier before it returns; threads that do not run
/// have passed one. `false` if the system refuses it.
pub(crate) fn barrier_in_all_threads() -> bool {
    let pass = || membarrier(MembarrierCommand::PrivateExpedited).is_ok();
    pass() || {
        prepare_barrier(); // not done yet, or lost when the process was restored from an image
        pass()
    }
}
