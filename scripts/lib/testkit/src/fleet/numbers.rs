//! The checker that detects a number handed out twice, or after a higher one.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sorts runs of numbers and joins adjacent ones.
///
/// # Errors
/// The first number that two runs have in common.
///
/// # Panics
/// If a run is empty.
pub fn disjoint(mut runs: Vec<Range<u64>>) -> Result<Vec<Range<u64>>, String> {
    runs.sort_unstable_by_key(|run| run.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for run in runs {
        assert!(!run.is_empty(), "{run:?} is empty");
        match merged.last_mut() {
            Some(last) if run.start < last.end => return Err(format!("{} twice", run.start)),
            Some(last) if run.start == last.end => last.end = run.end,
            _ => merged.push(run),
        }
    }
    Ok(merged)
}

/// How many numbers these are.
#[must_use]
pub fn count(runs: &[Range<u64>]) -> u64 {
    runs.iter().map(|run| run.end - run.start).sum()
}

/// Order within one process: a call that starts after another has returned gets a higher number, on
/// any thread.
#[derive(Debug, Default)]
pub struct Order {
    /// The highest number of all calls that have returned.
    returned: AtomicU64,
}

impl Order {
    /// Called before a call.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.returned.load(Ordering::SeqCst)
    }

    /// Called after the call, with the highest number before it.
    ///
    /// # Errors
    /// A number that is not higher.
    pub fn returned(&self, before: u64, number: u64) -> Result<(), String> {
        self.returned.fetch_max(number, Ordering::SeqCst);
        if number > before {
            Ok(())
        } else {
            Err(format!("{number} after {before}"))
        }
    }
}

#[test]
fn a_planted_duplicate_is_found_anywhere() {
    let runs = vec![7..9, 1..4, 20..21, 4..7];
    assert_eq!(disjoint(runs.clone()), Ok(vec![1..9, 20..21]));
    assert_eq!(count(&[1..9, 20..21]), 9);
    for number in [1, 3, 4, 8, 20] {
        for place in 0..=runs.len() {
            let mut planted = runs.clone();
            planted.insert(place, number..number + 1);
            let found = disjoint(planted).expect_err("a duplicate");
            assert!(found.ends_with(" twice"), "{found}");
        }
    }
    let with = |run: Range<u64>| runs.iter().cloned().chain([run]).collect();
    for planted in [0..2, 3..5, 8..30, 0..100] {
        disjoint(with(planted)).expect_err("a duplicate");
    }
    assert!(
        disjoint(with(9..20)).is_ok(),
        "adjacent runs are not duplicates"
    );
}

#[test]
fn a_planted_step_back_is_found() {
    let order = Order::default();
    let before = order.highest();
    assert_eq!(order.returned(before, 5), Ok(()));
    assert_eq!(
        order.returned(before, 3),
        Ok(()),
        "both were in flight at once"
    );
    let before = order.highest();
    assert_eq!(before, 5);
    assert_eq!(order.returned(before, 4), Err("4 after 5".into()));
    assert_eq!(order.returned(before, 5), Err("5 after 5".into()));
    assert_eq!(order.returned(before, 6), Ok(()));
}
