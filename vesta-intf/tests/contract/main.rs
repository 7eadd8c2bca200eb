//! Layouts, texts of IDs and serials compared with the documents, the originals, and every boundary.

mod any;
mod bounds;
mod detection;
mod document;
mod exhaustive;
mod formats;
mod fuzz;
mod layouts;
mod sharding;
#[cfg(feature = "shuffle")]
mod shuffle;
mod uuids;
mod vesta_id;
