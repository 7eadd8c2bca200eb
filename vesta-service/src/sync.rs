//! Concurrency primitives of this crate: those of the standard library and parking_lot, unchanged.
//! Under `--cfg loom` and `--cfg shuttle` they are those of a checker, which tries the
//! interleavings of the threads one after another. See scripts/check/races.sh.
//!
//! Excluded are clocks, files, statistics, and anything `static`, such as a thread's home slot: a
//! checker's primitive belongs to one execution of one model. None of them waits for another thread
//! or affects which IDs are issued.

#[cfg(any(loom, shuttle))]
#[path = "races/checked.rs"]
mod primitives;
#[cfg(not(any(loom, shuttle)))]
#[path = "sync/native.rs"]
mod primitives;

pub use primitives::*;
