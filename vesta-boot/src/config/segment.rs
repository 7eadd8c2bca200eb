//! Segment mode: off, or a database with tags.

use vesta_service::SegmentMode;

use super::check::chosen;
use super::machine::looks_like_a_url;
use crate::ConfigError;
use crate::raw::Raw;
use crate::secret::StoreUrl;

/// Where segment tags are, and how their numbers are handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segments {
    /// The database.
    pub store: StoreUrl,
    /// In which order threads get the numbers of a tag.
    pub mode: SegmentMode,
    /// How far the step of a tag grows by itself.
    pub max_step: u64,
}

/// The largest step that a tag may grow to.
const MOST: u64 = 1_000_000;

pub(super) fn check(raw: &Raw) -> Result<Option<Segments>, ConfigError> {
    let modes = [("strict", SegmentMode::Strict), ("relaxed", SegmentMode::Relaxed)];
    let mode = raw.choice("segment.mode", &modes)?;
    let max_step = raw.number("segment.max_step", 1, MOST)?;
    match chosen(raw, "segment.store") {
        Some(url) if looks_like_a_url(url) => {
            Ok(Some(Segments { store: StoreUrl::new(url), mode, max_step }))
        }
        Some(_) => {
            Err(raw.refuse("segment.store", "must be a URL such as sqlite:vesta-data/vesta.db"))
        }
        None => {
            let idle = [
                ("segment.mode", mode != SegmentMode::default()),
                ("segment.max_step", max_step != MOST),
            ];
            match idle.into_iter().find(|(_, set)| *set) {
                Some((name, _)) => Err(ConfigError::refused(format!(
                    "{name} is for segment mode, which is off; set segment.store too"
                ))),
                None => Ok(None),
            }
        }
    }
}
