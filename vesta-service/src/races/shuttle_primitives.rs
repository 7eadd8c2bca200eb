//! Shuttle: many random interleavings of many threads.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::shuttle::rand::{Rng as _, thread_rng};

pub use ::shuttle::thread_local as per_thread;
pub use ::shuttle::{sync, thread};

/// Tests that detect threads that are never woken use waits of this length.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// `true` if a wait with this limit may time out, which can then happen at any moment.
pub(super) fn ends_by_itself(limit: Duration) -> bool {
    limit < FOR_EVER
}

/// An atomic whose stores wait in a buffer of their thread, as in a processor. The thread itself sees them at once,
/// the others later, in their order; a read-modify-write comes after all of them.
#[derive(Debug)]
pub struct Buffered(Arc<AtomicU64>);

type Stores = VecDeque<(Arc<AtomicU64>, u64)>;

std::thread_local! {
    /// Of all threads of a model: they share one thread of the system.
    static BUFFERS: RefCell<Vec<(thread::ThreadId, Stores)>> = const { RefCell::new(Vec::new()) };
}

fn of_this_thread<T>(work: impl FnOnce(&mut Stores) -> T) -> T {
    let id = thread::current().id();
    BUFFERS.with_borrow_mut(|buffers| {
        let at = buffers.iter().position(|(thread, _)| *thread == id);
        let at = at.unwrap_or_else(|| {
            buffers.push((id, Stores::new()));
            buffers.len() - 1
        });
        work(&mut buffers[at].1)
    })
}

fn write_oldest(stores: &mut Stores) {
    if let Some((to, value)) = stores.pop_front() {
        to.store(value, Ordering::SeqCst);
    }
}

fn write_all(stores: &mut Stores) {
    while !stores.is_empty() {
        write_oldest(stores);
    }
}

/// Another thread may run now, and a store may leave its buffer.
fn step() {
    sync::atomic::AtomicBool::new(false).load(Ordering::SeqCst);
    let chance = thread_rng().gen_range(0..16_usize);
    BUFFERS.with_borrow_mut(|buffers| {
        if let Some((_, stores)) = buffers.get_mut(chance) {
            write_oldest(stores);
        }
    });
}

impl Buffered {
    pub fn new(value: u64) -> Self {
        Self(Arc::new(AtomicU64::new(value)))
    }

    pub fn load(&self, _: Ordering) -> u64 {
        step();
        let own = of_this_thread(|stores| {
            let own = stores.iter().rev().find(|(to, _)| Arc::ptr_eq(to, &self.0));
            own.map(|(_, value)| *value)
        });
        own.unwrap_or_else(|| self.0.load(Ordering::SeqCst))
    }

    pub fn store(&self, value: u64, _: Ordering) {
        step();
        of_this_thread(|stores| stores.push_back((Arc::clone(&self.0), value)));
    }

    pub fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        step();
        of_this_thread(write_all);
        self.0.fetch_or(value, order)
    }

    pub fn compare_exchange(
        &self,
        old: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        step();
        of_this_thread(write_all);
        self.0.compare_exchange(old, new, success, failure)
    }
}

/// Asymmetric barriers as they are: the light one does nothing, the heavy one empties the buffers of all threads.
pub mod barrier {
    use std::cell::Cell;

    std::thread_local! {
        static LEFT_OUT: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs a model without the heavy barrier.
    pub fn left_out(model: impl FnOnce()) {
        LEFT_OUT.set(true);
        model();
    }

    pub const fn exists() -> bool {
        true
    }

    pub const fn light() {}

    pub fn in_all_threads() -> bool {
        super::step();
        if !LEFT_OUT.get() {
            super::BUFFERS.with_borrow_mut(|all| {
                all.iter_mut()
                    .for_each(|(_, stores)| super::write_all(stores));
            });
        }
        true
    }
}
