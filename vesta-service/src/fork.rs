//! Fork protection: the child has a copy of every position that its parent issues from, and must issue none.
//!
//! The fast paths do not check for a fork, which would cost time for every ID. Instead, a fork handler
//! of the C library closes them in the child before `fork` returns there; the slow paths compare
//! [`Process`]es. A child created by a raw `clone` runs no handlers: only its slow paths notice.

use vesta_intf::IdError;

/// The process in which a service was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    id: u32,
    /// Number of forks between the first process and this one: in another PID namespace a child may have
    /// the same ID as its parent.
    forks: u64,
}

impl Process {
    /// The current process.
    pub fn this() -> Self {
        Self {
            id: std::process::id(),
            forks: system::forks(),
        }
    }

    /// True if the current process is another one: a child forked after the service was built.
    pub fn is_another(self) -> bool {
        self != Self::this()
    }
}

/// The error of every call in such a child.
pub fn refusal() -> IdError {
    let reason = "this process was forked after the service was built; build it in the child";
    IdError::Sealed {
        reason: reason.into(),
    }
}

pub use system::AtFork;

#[cfg(all(unix, not(any(loom, shuttle))))]
mod system {
    use std::sync::Once;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use parking_lot::Mutex;

    /// Closes the fast paths of one service.
    type Close = Box<dyn Fn() + Send + Sync>;

    static FORKS: AtomicU64 = AtomicU64::new(0);
    static PLACES: boxcar::Vec<Place> = boxcar::Vec::new();

    /// Locked only while its service is being built or dropped.
    #[derive(Default)]
    struct Place {
        is_free: AtomicBool,
        close: Mutex<Option<Close>>,
    }

    /// Registers a closure that is called in each forked child until this is dropped.
    #[derive(Debug)]
    pub struct AtFork(usize);

    impl AtFork {
        /// `close` must take no lock and allocate nothing.
        pub fn call(close: impl Fn() + Send + Sync + 'static) -> Self {
            static HANDLER: Once = Once::new();
            HANDLER.call_once(|| {
                // SAFETY: the handler is a function that is never unloaded before its module is, and in the
                // child, which has one thread, it only loads and stores atomics: POSIX allows that there.
                #[allow(unsafe_code)]
                let failed = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
                assert_eq!(failed, 0, "out of memory: cannot register a fork handler");
            });
            let free = PLACES
                .iter()
                .find(|(_, it)| it.is_free.swap(false, Ordering::Acquire));
            let number = free.map_or_else(|| PLACES.push(Place::default()), |(number, _)| number);
            *PLACES[number].close.lock() = Some(Box::new(close));
            Self(number)
        }
    }

    impl Drop for AtFork {
        fn drop(&mut self) {
            drop(PLACES[self.0].close.lock().take());
            PLACES[self.0].is_free.store(true, Ordering::Release);
        }
    }

    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        for (_, place) in &PLACES {
            // A locked one belongs to a service that another thread of the parent was building or
            // dropping: no call of the child can reach it.
            if let Some(close) = place.close.try_lock().as_deref().and_then(Option::as_ref) {
                close();
            }
        }
    }

    pub(super) fn forks() -> u64 {
        FORKS.load(Ordering::Relaxed)
    }
}

/// Other systems do not fork; nor does a checker of interleavings.
#[cfg(any(not(unix), loom, shuttle))]
mod system {
    /// Nothing: there is no fork.
    #[derive(Debug)]
    pub struct AtFork;

    impl AtFork {
        /// Nothing.
        pub fn call(_: impl Fn() + Send + Sync + 'static) -> Self {
            Self
        }
    }

    pub(super) fn forks() -> u64 {
        0
    }
}
