//! Tags of segment mode, and tables of tags.

use vesta_intf::IdError;
use vesta_numbers::segment::{NewSegmentTag, SegmentStore, SegmentTag};

use crate::commands::report::{counted, failed};
use crate::error::Error;
use crate::output::{Output, Table};

/// Validates the description of a tag.
pub(crate) fn new_tag(
    key: &str,
    step: u64,
    first: u64,
    last: Option<u64>,
    description: Option<&str>,
) -> Result<NewSegmentTag, IdError> {
    let mut tag = NewSegmentTag::new(key, step)?.starting_at(first)?;
    if let Some(last) = last {
        tag = tag.ending_at(last)?;
    }
    match description {
        Some(text) => tag.described_as(text),
        None => Ok(tag),
    }
}

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
