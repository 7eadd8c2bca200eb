//! The primitives as they are.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::{thread, thread_local};

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};

/// The mutex of the standard library.
pub(crate) mod standard {
    pub(crate) use std::sync::{Mutex, MutexGuard};
}
