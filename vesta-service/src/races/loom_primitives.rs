//! Loom: every interleaving of a few threads, and every value that a load may see.

use std::time::Duration;

pub use ::loom::thread_local as per_thread;
pub use ::loom::{sync, thread};

/// Loom has no time: every waiting thread is woken, or the model is deadlocked.
pub(super) fn ends_by_itself(_limit: Duration) -> bool {
    false
}

/// Loads of an atomic may read old values here anyway.
pub use super::AtomicU64 as Buffered;

/// Asymmetric barriers. Both are a sequentially consistent fence here, which is what the pair amounts to for two
/// threads of which one passes the light and the other the heavy barrier. Two light ones are more here than in
/// reality, so no pair of them may be relied upon; shuttle checks that.
pub mod barrier {
    use std::cell::Cell;

    use loom::sync::atomic::fence;

    use super::super::Ordering;

    thread_local! {
        /// Which barriers exist. Those of all threads of a model: they share one thread of the system.
        static THERE: Cell<[bool; 2]> = const { Cell::new([false; 2]) };
    }

    /// Runs a model with a light and a heavy barrier, or without one of them.
    pub fn with(light: bool, heavy: bool, model: impl FnOnce()) {
        THERE.set([light, heavy]);
        model();
    }

    /// Most models have all interleavings explored of a word that is shared from the beginning.
    pub fn exists() -> bool {
        THERE.get() != [false; 2]
    }

    pub fn light() {
        if THERE.get()[0] {
            fence(Ordering::SeqCst);
        }
    }

    pub fn in_all_threads() -> bool {
        if THERE.get()[1] {
            fence(Ordering::SeqCst);
        }
        true
    }
}
