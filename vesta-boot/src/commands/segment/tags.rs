//! Tags of segment mode, and tables of tags.

use vesta_numbers::segment::{SegmentStore, SegmentTag};

use crate::commands::report::{counted, failed};
use crate::error::Error;
use crate::output::{Output, Table};

/// All tags of a store, by name.
pub(super) fn tags(store: &dyn SegmentStore) -> Result<Vec<SegmentTag>, Error> {
    let mut tags = store
        .tags()
        .map_err(|error| failed(&store.describe(), &error))?;
    tags.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(tags)
}

/// Renders a table of tags under the name of their store.
pub(crate) fn titled(store: &str, table: &Table, tags: usize) -> String {
    let rows = if tags == 0 {
        String::new()
    } else {
        format!("\n{}", table.render(Output::Text))
    };
    format!("{store}: {}\n{rows}", counted(tags, "tag"))
}
