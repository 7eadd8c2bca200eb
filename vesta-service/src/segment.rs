//! Segment mode: growing numbers for each tag, with few gaps, fetched from a database a range at a
//! time.
//!
//! ```text
//!  store.rs        the port: what a database has to offer
//!  kv.rs           tags as the entries of any store
//!  stride.rs       every second number, or every third                          pure
//!  buffer.rs       the state of one tag: what to give out, what to fetch       pure
//!  buffer/plan.rs  how much to fetch, and how early                            pure
//!  buffer/report.rs  why a tag has no numbers, and its status                  pure
//!  buffer/lent.rs  ranges that others give out                                 pure
//!  cursor.rs       what every call touches
//!  key.rs          one tag: its numbers, its state, those who wait
//!  names.rs        tags found by name
//!  ends.rs         what this host was given, over restarts
//!  cutoff.rs       numbers that are over, for serials
//!  jobs.rs         the jobs of the threads that talk to the store
//!  core.rs         the tags, and the work that is done for them
//!  service.rs, handle.rs, future.rs   its faces
//! ```
//!
//! # How a burst waits for the database instead of failing
//!
//! Only one request of a tag is under way at a time. Two would answer in any order, and numbers of one
//! process have to increase; the second would also pay for another round trip to learn what a larger
//! first one could have brought. So what is needed is asked for in one piece: `max_id` grows by whole
//! steps, as many as the pace of the callers asks for.
//!
//! - The **size** of a request, in whole steps of the table and at least one, follows the pace at which
//!   the callers use up what is there (the time in which there was nothing does not count): enough for
//!   one second, or for eight times as long as a fetch takes, but no longer than 5 s. When callers had
//!   to wait, it is at least twice as much as the last time. It does not grow beyond 1,000,000.
//! - It is **bounded by what was used**: together with what is at hand it is no more than twice what
//!   was used in the last 10 s, and two steps. So a burst from nothing triples the size from fetch to
//!   fetch: with a fetch of 50 ms, a step of 1,000 and 100,000 numbers a second nobody waits after the
//!   first 0.4 s.
//! - The **moment** is when a tenth of the present range is used and there is no next one, as in Leaf,
//!   or already when what is left does not last for 100 ms or four fetches.
//!
//! # What is lost
//!
//! A service that is closed gives back what nobody got, if no other process took a range since. What
//! a process has when it is killed is lost: at most twice what was used in the 10 s before it was
//! fetched, and two steps.

mod buffer;
mod builder;
mod core;
mod cursor;
#[cfg(feature = "serial")]
mod cutoff;
mod ends;
#[cfg(feature = "async")]
mod future;
mod handle;
mod jobs;
mod key;
pub(crate) mod kv;
mod names;
#[cfg(all(test, loom))]
mod races;
#[cfg(all(test, shuttle))]
mod schedules;
mod service;
mod status;
mod store;
mod stride;

pub use builder::SegmentBuilder;
pub use handle::Segment;
pub use kv::KvSegments;
pub use service::SegmentService;
pub use status::SegmentStatus;
pub use store::{LentRange, NewSegmentTag, NextRange, SegmentStore, SegmentTag};
pub use stride::Stride;
