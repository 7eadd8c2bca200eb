//! Operating system specifics: private files that stay in place, the host name, and features of Linux.

#[cfg_attr(target_os = "linux", path = "os/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "os/not_linux.rs")]
mod kernel;
#[cfg(unix)]
#[path = "os/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "os/windows.rs"]
mod system;

pub(crate) use kernel::*;
pub use system::*;
