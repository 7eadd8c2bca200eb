//! Tags in their store.

use vesta_numbers::segment::{SegmentStore, SegmentTag};

use crate::error::Error;
use crate::report::failed;

/// All tags of a store, by name.
pub(super) fn tags(store: &dyn SegmentStore) -> Result<Vec<SegmentTag>, Error> {
    let mut tags = store
        .tags()
        .map_err(|error| failed(&store.describe(), &error))?;
    tags.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(tags)
}
