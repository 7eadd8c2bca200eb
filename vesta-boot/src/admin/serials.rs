//! Serials on the admin listener: the status of each tag.

use vesta_numbers::serial::SerialService;

use super::segments::lines;
use crate::answers::Whole;
use crate::serials::{SerialNow, SerialTags, trouble};

/// Status of serials, behind `GET /serials` and the page.
pub(super) fn status(serials: &SerialService) -> SerialTags {
    SerialTags {
        whole: whole(serials),
        tags: serials.status().iter().map(SerialNow::from).collect(),
    }
}

/// The same without tags, for `GET /status`.
pub(super) fn whole(serials: &SerialService) -> Whole {
    let tags = serials.status();
    let not_ready = tags.iter().filter(|tag| trouble(tag).is_some());
    Whole::new(
        serials.describe(),
        serials.not_ready_because(),
        serials.doubt(),
        serials.last_refresh_age(),
        tags.len(),
        not_ready.map(|tag| tag.segment.key.clone()).collect(),
    )
}

/// Lines about faults, for `GET /readyz`.
pub(super) fn troubles(serials: &SerialService) -> String {
    let tags = serials.status();
    lines(
        "serials",
        serials.not_ready_because(),
        tags.iter().filter_map(trouble),
    )
}
