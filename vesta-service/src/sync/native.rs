//! The unchanged primitives.

pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub use std::thread;

pub use parking_lot::{Condvar, Mutex, MutexGuard};

/// The mutex of the standard library.
pub mod standard {
    pub use std::sync::{Mutex, MutexGuard};
}
