//! The primitives of concurrency of this crate: the standard library's and parking_lot's as they
//! are, or, under `--cfg loom` and `--cfg shuttle`, those of a checker, which tries the
//! interleavings of the threads one after another. See scripts/races.sh.
//!
//! What stays outside: clocks, files, statistics, and whatever is `static`, as a thread's home
//! slot: a checker's primitive belongs to one execution of one model. None of them waits for another
//! thread or decides what is issued.

#[cfg(any(loom, shuttle))]
#[path = "races/checked.rs"]
mod primitives;
#[cfg(not(any(loom, shuttle)))]
#[path = "sync/native.rs"]
mod primitives;

pub(crate) use primitives::*;
