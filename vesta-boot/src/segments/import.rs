//! `segment import`: continues the segments of a legacy system.

use vesta_numbers::segment::{NewSegmentTag, SegmentStore};
use vesta_store::import::{ForeignSegment, cosid_segments};

use vesta_intf::plain;

use super::stored::tags as standing_tags;
use super::{LegacySegments, SegmentImport};
use crate::error::Error;
use crate::report::{counted, failed};
use crate::stores::not_opened;

/// The tags that continue the segments of a legacy system.
pub(super) fn tags(asked: &SegmentImport) -> Result<Vec<NewSegmentTag>, Error> {
    let SegmentImport {
        system: LegacySegments::CosId,
        from,
        cosid_namespace,
        step,
    } = asked;
    let found = cosid_segments(from, cosid_namespace);
    checked(&found.map_err(|error| not_opened("--from", error))?, *step)
}

/// Converts segments to tags; fails if any cannot be one.
fn checked(found: &[ForeignSegment], step: u64) -> Result<Vec<NewSegmentTag>, Error> {
    let (mut tags, mut refused) = (Vec::new(), Vec::new());
    for segment in found {
        match segment.tag(step) {
            Ok(tag) => tags.push(tag),
            Err(error) => refused.push(format!("{} ({error})", plain(&segment.key))),
        }
    }
    if refused.is_empty() {
        return Ok(tags);
    }
    Error::refuse(format!(
        "these segments cannot become tags: {}; rename or remove them in CosId. Nothing was created",
        refused.join(", ")
    ))
}

/// Creates missing tags, and reports the outcome of each.
pub(super) fn run(
    store: &dyn SegmentStore,
    tags: &[NewSegmentTag],
    mut print: impl FnMut(&str),
) -> Result<String, Error> {
    let name = store.describe();
    let mut say =
        |tag: &NewSegmentTag, what: &str| print(&format!("  {}  {what}\n", plain(&tag.key)));
    let mut existing = Vec::new();
    for tag in tags {
        if store.create(tag).map_err(|error| failed(&name, &error))? {
            let (first, step) = (tag.max_id, tag.step);
            say(
                tag,
                &format!("created: numbers from {first} on, {step} at a time"),
            );
        } else {
            existing.push(tag);
        }
    }
    let (created, mut behind) = (tags.len() - existing.len(), Vec::new());
    let standing = if existing.is_empty() {
        Vec::new()
    } else {
        standing_tags(store)?
    };
    for tag in &existing {
        let first = tag.max_id;
        let next = match standing
            .iter()
            .find(|it| it.key == tag.key)
            .map(|it| it.max_id)
        {
            Some(next) if next >= first => {
                say(
                    tag,
                    &format!("left alone: its next number is already {next}"),
                );
                continue;
            }
            Some(next) => format!("its next number is {next}"),
            None => "a tag of nearly the same name exists".to_owned(), // e.g. in upper case
        };
        say(tag, &format!("not changed: {next}, but CosId's is {first}"));
        behind.push(format!("{} to {first}", plain(&tag.key)));
    }
    let (left, behind_count) = (existing.len() - behind.len(), behind.len());
    let report = format!(
        "{} created, {left} left alone, {behind_count} not changed, in {name}.\n\
         CosId must not hand out any more of these numbers: stop it for these segments, or import again \
         once it is stopped. With a Redis cluster, import from each primary: each has a part of them.\n",
        counted(created, "tag"),
    );
    if behind.is_empty() {
        return Ok(report);
    }
    print(&report);
    Error::refuse(format!(
        "CosId is beyond these tags, so numbers would repeat: stop their users, raise \
         max_id in {name} ({}), and import again",
        behind.join(", ")
    ))
}

#[cfg(test)]
mod tests;
