//! Values left out of `Debug` output.

use std::fmt;

/// A value that prints as `[redacted]`.
#[derive(Clone)]
pub(crate) struct Secret<T>(pub(crate) T);

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
