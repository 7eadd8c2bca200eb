//! Peculiarities of operating systems: files that are this user's alone and stay where they are, and the name of
//! the host.

#[cfg(unix)]
#[path = "os/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "os/windows.rs"]
mod system;

pub(crate) use system::*;
