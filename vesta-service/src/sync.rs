//! The primitives of concurrency of this crate: the standard library's and parking_lot's as they
//! are, or, under `--cfg loom` and `--cfg shuttle`, those of a checker, which tries the
//! interleavings of the threads one after another. See scripts/races.sh.
//!
//! What stays outside: clocks, files, statistics, and whatever is `static`, as a thread's home
//! slot: a checker's primitive belongs to one execution of one model. None of them waits for another
//! thread or decides what is issued.

#[cfg(any(loom, shuttle))]
mod checked;
#[cfg(loom)]
#[path = "sync/loom.rs"]
mod checker;
#[cfg(shuttle)]
#[path = "sync/shuttle.rs"]
mod checker;
#[cfg(not(any(loom, shuttle)))]
mod native;

#[cfg(any(loom, shuttle))]
pub(crate) use checked::*;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use native::*;
