//! Segment mode: increasing numbers for each tag, with few gaps, fetched from a database one range at a time.
//!
//! ```text
//!  store.rs        the port: operations that a database provides
//!  kv.rs           tags as the entries of any store
//!  stride.rs       every second number, or every third                          pure
//!  buffer.rs       the state of one tag: its chunks, and when to fetch          pure
//!  buffer/plan.rs  how much to fetch, and how early                            pure
//!  buffer/report.rs  errors of a tag without numbers, and its status         pure
//!  buffer/lent.rs  ranges that other systems issue                           pure
//!  cursor.rs       the fast path of every call
//!  key.rs          one tag: its numbers, its state, its waiters
//!  names.rs        tags found by name
//!  ends.rs         the ranges given to this host, kept across restarts
//!  cutoff.rs       numbers of ended periods, for serials
//!  jobs.rs         the jobs of the fetch workers
//!  core.rs         the tags, and the work done for them
//!  service.rs, handle.rs, future.rs   the public API
//! ```
//!
//! # How a burst waits for the database instead of failing
//!
//! Only one request of a tag is in flight at a time. Two could be answered in any order, but the
//! numbers of one process have to increase. The second would also pay for another round trip to get
//! numbers that a larger first request could have brought. So all that is needed is requested at once:
//! `max_id` grows by whole steps, as many as the pace of the callers requires.
//!
//! - The **size** of a request follows the pace at which the callers use up the available numbers; time
//!   without numbers does not count. It is enough for one second, or for eight times the duration of a
//!   fetch, but for at most 5 s. It is in whole steps of the table, and at least one. If callers
//!   had to wait, it is at least twice the previous size. It does not grow beyond 1,000,000.
//! - It is **bounded by recent use**: together with the unused numbers it is no more than twice the numbers
//!   used in the last 10 s, and two steps. So a burst from idle triples the size from fetch to fetch. With
//!   a fetch of 50 ms, a step of 1,000 and 100,000 numbers a second, no caller waits after the first 0.4 s.
//! - The **moment** is when a tenth of the present range is used and the next one has not been
//!   fetched, as in Leaf. It is earlier if the rest will not last for 100 ms or four fetches.
//!
//! # What is lost
//!
//! A service that is closed gives unissued numbers back, unless another process has taken a range
//! since. The numbers that a process holds when it is killed are lost: at most twice the numbers
//! used in the 10 s before the fetch, and two steps.

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
pub use store::{LentRange, NewSegmentTag, NextRange, SegmentStore, SegmentTag, create};
pub use stride::Stride;
