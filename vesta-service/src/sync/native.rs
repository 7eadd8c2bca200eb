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

/// An atomic whose stores a checker may delay, as a processor does.
pub(crate) use AtomicU64 as Buffered;

/// A pair of barriers of which one is free: [`light`](barrier::light) costs nothing, and
/// [`in_all_threads`](barrier::in_all_threads) makes up for it in every other thread.
pub(crate) mod barrier {
    pub(crate) use crate::os::{
        barrier_exists as exists, barrier_in_all_threads as in_all_threads,
    };

    /// Keeps the compiler from moving accesses across it; the processor may.
    #[inline(always)]
    pub(crate) fn light() {
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    }
}
