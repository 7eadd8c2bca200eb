//! Machine IDs that are used once.

use std::fmt;

use crate::lease::StoreError;

/// A table with a row for each start of a process, whose number becomes the machine ID: the way of
/// Baidu's uid-generator. A number is never used again, so nothing has to be remembered and nothing
/// renewed; but numbers run out, which needs a layout with a wide machine field.
///
/// The calls block, and come from start-up only.
pub trait WorkerNodeStore: Send + Sync + fmt::Debug {
    /// Display name, without secrets.
    fn describe(&self) -> String;

    /// Inserts a row and returns its number, which no other row ever had.
    ///
    /// # Errors
    /// [`StoreError`] if it is not known whether a row was inserted. Trying again may waste a number.
    fn insert(&self, host: &str, pid: u32) -> Result<u64, StoreError>;
}
