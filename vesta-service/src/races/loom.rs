//! Loom: all interleavings of a model.

use std::cell::Cell;
use std::env;

use loom::model::Builder;
use loom::thread;

use super::Executions;

thread_local! {
    /// Set if the threads of a model start in reverse order.
    static REVERSED: Cell<bool> = const { Cell::new(false) };
}

/// Preemption bound for models with too many interleavings to explore them all.
fn interruptions() -> usize {
    if env::var_os("VESTA_TEST_FULL").is_some() {
        4
    } else {
        3
    }
}

fn check(what: &str, bound: Option<usize>, model: impl Fn() + Send + Sync + Clone + 'static) {
    let executions = Executions::new(&model, what);
    // In both orders: loom treats some interleavings as equivalent that are not, and which ones
    // depends on the order.
    for reversed in [false, true] {
        let (count, model) = (executions.counter(), model.clone());
        let mut builder = Builder::new();
        builder.preemption_bound = bound;
        builder.max_branches = 10_000;
        builder.check(move || {
            count();
            REVERSED.set(reversed);
            model();
        });
    }
}

/// Runs the model in every possible interleaving.
pub fn exhaustively(what: &str, model: impl Fn() + Send + Sync + Clone + 'static) {
    check(&format!("({what}, all interleavings)"), None, model);
}

/// Runs the model in every interleaving with a few interruptions.
pub fn bounded(what: &str, model: impl Fn() + Send + Sync + Clone + 'static) {
    let bound = interruptions();
    check(
        &format!("({what}, {bound} interruptions)"),
        Some(bound),
        model,
    );
}

/// Body of one thread of a model.
pub type Thread<T> = Box<dyn FnOnce() -> T + Send>;

/// Runs these threads, one of them in the calling thread; returns their results.
pub fn at_once<T: Send + 'static>(mut threads: Vec<Thread<T>>) -> Vec<T> {
    if REVERSED.get() {
        threads.reverse();
    }
    let mut threads = threads.into_iter();
    let first = threads.next().expect("at least one thread");
    let others: Vec<_> = threads.map(thread::spawn).collect();
    let mut results = vec![first()];
    results.extend(
        others
            .into_iter()
            .map(|thread| thread.join().expect("no panic")),
    );
    if REVERSED.get() {
        results.reverse();
    }
    results
}
