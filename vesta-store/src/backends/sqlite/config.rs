//! The URL of a SQLite database.

use std::path::PathBuf;

use crate::{OpenError, StoreUrl};

/// The path of a database.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Config {
    /// As it was given, for people.
    pub(super) shown: PathBuf,
    /// Absolute: the program may change its working folder.
    pub(super) path: PathBuf,
}

impl TryFrom<&StoreUrl> for Config {
    type Error = OpenError;

    fn try_from(url: &StoreUrl) -> Result<Self, OpenError> {
        if url.path().contains(":memory:") {
            return Err(url.malformed("a pool in memory would forget which machine IDs are taken"));
        }
        let shown = PathBuf::from(url.path());
        let path = std::path::absolute(&shown)
            .map_err(|error| url.malformed(format!("the path is not usable: {error}")))?;
        Ok(Self { shown, path })
    }
}
