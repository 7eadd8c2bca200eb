//! What each operating system does in its own way: files that are this user's alone and stay where they
//! are, the name of the host, and a clock that goes on while the machine sleeps.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;
