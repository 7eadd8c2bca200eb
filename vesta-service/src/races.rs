//! Shared support for tests under a checker. See scripts/check/races.sh.

#[cfg(loom)]
#[path = "races/loom.rs"]
mod explore;
#[cfg(shuttle)]
#[path = "races/shuttle.rs"]
mod explore;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub use explore::*;

/// Counts the executions of a model and prints their number at the end.
pub struct Executions {
    of: String,
    count: Arc<AtomicUsize>,
}

impl Executions {
    fn new<M>(model: &M, what: &str) -> Self {
        let path = std::any::type_name_of_val(model);
        let path = path
            .trim_start_matches("vesta_service::")
            .trim_start_matches("vesta_numbers::")
            .replace("::{{closure}}", "");
        Self {
            of: format!("{path} {what}"),
            count: Arc::default(),
        }
    }

    fn counter(&self) -> impl Fn() + Send + Sync + 'static {
        let count = self.count.clone();
        move || {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Executions {
    fn drop(&mut self) {
        let count = self.count.load(Ordering::Relaxed);
        let found = if std::thread::panicking() {
            ", then the fault was found"
        } else {
            ""
        };
        println!("\nraces: {}: {count} executions{found}", self.of);
    }
}

/// The distinct outcomes of a model's executions: a model whose threads never interact would prove
/// nothing. Invisible to the checker.
pub struct Ends<T>(Arc<Mutex<BTreeSet<T>>>);

impl<T> Clone for Ends<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Ord> Ends<T> {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    pub fn note(&self, end: T) {
        self.0.lock().expect("no panic meanwhile").insert(end);
    }

    pub fn get(&self) -> std::sync::MutexGuard<'_, BTreeSet<T>> {
        self.0.lock().expect("no panic meanwhile")
    }
}

/// Checks what each thread got, in its order: ascending within each thread, and nothing issued
/// twice. Returns all of it in order.
pub fn unique_and_growing<'a>(
    threads: impl IntoIterator<Item = &'a Vec<Range<u64>>>,
) -> Vec<Range<u64>> {
    let mut all = Vec::new();
    for taken in threads {
        assert!(
            taken.iter().all(|taken| !taken.is_empty()),
            "nothing was given: {taken:?}"
        );
        let grows = taken.is_sorted_by(|one, next| one.end <= next.start);
        assert!(
            grows,
            "given twice, or not growing in one thread: {taken:?}"
        );
        all.extend(taken.iter().cloned());
    }
    all.sort_by_key(|taken| taken.start);
    let once = all.is_sorted_by(|one, next| one.end <= next.start);
    assert!(once, "given twice: {all:?}");
    all
}
