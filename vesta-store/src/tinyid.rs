//! What Tinyid's tables hold beside its tags.

use vesta_numbers::segment::SegmentStore;
use vesta_service::lease::StoreError;

/// Tinyid's tables: segment tags, and the tokens of its clients.
pub trait TinyidStore: SegmentStore {
    /// Tokens of callers, each with a tag for which it is valid.
    ///
    /// # Errors
    /// [`StoreError`] if the database is unreachable, or has no such table.
    fn tokens(&self) -> Result<Vec<(String, String)>, StoreError>;
}
