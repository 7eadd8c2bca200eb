//! The checker's primitives, with the signatures that the crate expects.

#[cfg(loom)]
#[path = "loom_primitives.rs"]
mod checker;
#[cfg(shuttle)]
#[path = "shuttle_primitives.rs"]
mod checker;

use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, OnceLock, PoisonError, TryLockError, TryLockResult};
use std::time::Duration;

pub use std::sync::atomic::Ordering;

use checker::sync;
pub use checker::{Buffered, barrier};
pub use checker::{per_thread, thread};

/// Created on first use: constructors here are `const`, a checker's are not. In a model, such a value
/// must be touched before it is shared, as if the constructor had created it; loom panics otherwise.
#[derive(Debug)]
struct Late<I, T> {
    from: std::sync::Mutex<Option<I>>,
    made: OnceLock<T>,
}

impl<I, T> Late<I, T> {
    const fn new(from: I) -> Self {
        Self {
            from: std::sync::Mutex::new(Some(from)),
            made: OnceLock::new(),
        }
    }

    fn get(&self, make: impl FnOnce(I) -> T) -> &T {
        self.made.get_or_init(|| {
            let from = self
                .from
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            make(from.expect("it is made once"))
        })
    }
}

macro_rules! atomics {
    ($($name:ident of $value:ty { $($method:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)* })*) => {$(
        #[derive(Debug)]
        pub struct $name(Late<$value, sync::atomic::$name>);

        impl $name {
            pub const fn new(value: $value) -> Self {
                Self(Late::new(value))
            }

            fn get(&self) -> &sync::atomic::$name {
                self.0.get(sync::atomic::$name::new)
            }

            $(pub fn $method(&self, $($argument: $type),*) $(-> $result)? {
                self.get().$method($($argument),*)
            })*
        }

        impl Default for $name {
            fn default() -> Self {
                let new = Self::new(<$value>::default());
                new.get();
                new
            }
        }
    )*};
}

atomics! {
    AtomicBool of bool {
        swap(value: bool, order: Ordering) -> bool;
    }
    AtomicUsize of usize {
        load(order: Ordering) -> usize;
        store(value: usize, order: Ordering);
    }
    AtomicU64 of u64 {
        load(order: Ordering) -> u64;
        store(value: u64, order: Ordering);
        fetch_add(value: u64, order: Ordering) -> u64;
        fetch_max(value: u64, order: Ordering) -> u64;
        fetch_or(value: u64, order: Ordering) -> u64;
        compare_exchange(old: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64>;
    }
}

/// The mutex of the standard library.
pub mod standard {
    use super::{Late, LockResult, TryLockResult, sync};

    pub use super::sync::MutexGuard;

    #[derive(Debug)]
    pub struct Mutex<T>(Late<T, sync::Mutex<T>>);

    impl<T> Mutex<T> {
        pub const fn new(value: T) -> Self {
            Self(Late::new(value))
        }

        fn get(&self) -> &sync::Mutex<T> {
            self.0.get(sync::Mutex::new)
        }

        pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            self.get().lock()
        }

        pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
            self.get().try_lock()
        }
    }
}

/// The mutex of parking_lot, without poisoning.
#[derive(Debug)]
pub struct Mutex<T>(standard::Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Self(standard::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(
            Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)),
            self,
        )
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(MutexGuard(Some(guard), self)),
            Err(TryLockError::Poisoned(error)) => Some(MutexGuard(Some(error.into_inner()), self)),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// Empty only while waiting for a [`Condvar`].
#[derive(Debug)]
pub struct MutexGuard<'a, T>(Option<sync::MutexGuard<'a, T>>, &'a Mutex<T>);

impl<T> MutexGuard<'_, T> {
    /// Releases the lock for a moment.
    fn bump(&mut self) {
        self.0 = None;
        thread::yield_now();
        self.0 = self.1.lock().0.take();
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is locked")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("it is locked")
    }
}

/// Its contents are never used.
#[derive(Debug, Clone, Copy)]
pub struct WaitTimeoutResult;

/// The condition variable of parking_lot.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        guard.0 = guard
            .0
            .take()
            .map(|locked| self.0.wait(locked).unwrap_or_else(PoisonError::into_inner));
    }

    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, limit: Duration) -> WaitTimeoutResult {
        if checker::ends_by_itself(limit) {
            guard.bump()
        } else {
            self.wait(guard)
        }
        WaitTimeoutResult
    }

    pub fn wait_while_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        limit: Duration,
    ) {
        // The checker chooses how much the other threads do meanwhile.
        let mut patience = 16;
        while patience > 0 && condition(guard) {
            if checker::ends_by_itself(limit) {
                patience -= 1;
            }
            self.wait_for(guard, limit);
        }
    }
}
