//! The unchanged primitives.

pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub use std::thread;

pub use parking_lot::{Condvar, Mutex, MutexGuard};

/// A thread-local value, available from the start of the thread.
macro_rules! per_thread {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $init:expr;) => {
        ::std::thread_local! {
            $(#[$attribute])*
            static $name: $type = const { $init };
        }
    };
}
pub(crate) use per_thread;

/// The mutex of the standard library.
pub mod standard {
    pub use std::sync::{Mutex, MutexGuard};
}
