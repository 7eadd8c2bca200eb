//! One service for the whole process, for programs that do not want to pass one along.
//!
//! ```
//! use vesta_service::{LocalIdService, MachineSource, global};
//! # let folder = std::env::temp_dir().join(format!("vesta-doc-global-{}", std::process::id()));
//!
//! let ids = global::get_or_try_init(|| {
//!     LocalIdService::builder().machine(MachineSource::Fixed(8)).state_dir(&folder).build()
//! })?;
//! assert!(ids.gen_id()? > 0);
//! assert!(global::get().is_some());
//! # ids.close(); std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A process-wide service is never dropped: call [`LocalIdService::close`] before the process ends,
//! and the next start continues exactly where this one stopped. Without it, nothing repeats either;
//! the next start keeps a distance of at most one window.

use once_cell::sync::OnceCell;

use crate::{BuildError, LocalIdService};

// once_cell: the standard library cannot yet initialise a cell fallibly.
static SERVICE: OnceCell<LocalIdService> = OnceCell::new();

/// The process-wide service; the first caller builds it, all others wait for it.
///
/// # Errors
/// The error of `build`; the next caller then retries.
pub fn get_or_try_init(
    build: impl FnOnce() -> Result<LocalIdService, BuildError>,
) -> Result<&'static LocalIdService, BuildError> {
    SERVICE.get_or_try_init(build)
}

/// The process-wide service, if it was built.
pub fn get() -> Option<&'static LocalIdService> {
    SERVICE.get()
}
