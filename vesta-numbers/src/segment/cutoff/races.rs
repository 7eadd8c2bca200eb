//! A rising cutoff, in every interleaving of callers that have seen it rise and callers that have not.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::segment::key::Key;
use crate::segment::{NextRange, SegmentTag};
use vesta_service::inside::races::{
    Ends, Thread, at_once, bounded, exhaustively, unique_and_growing,
};

const NOW: Duration = Duration::from_secs(1);
const CUTOFF: u64 = 100;

type Taken = Vec<Range<u64>>;

/// A tag with the numbers 1 to 4, whose store continues at the cutoff.
fn tag() -> Arc<Key> {
    let tag = SegmentTag::new("orders", 1, 4);
    let key = Key::new(&tag, 4);
    assert!(matches!(key.take_slowly(1, NOW), (Err(_), true)));
    assert_eq!(key.begin(NOW), Some(4));
    reply(&key, 1..5);
    Arc::new(key)
}

fn reply(key: &Key, numbers: Range<u64>) {
    key.change(NOW, |buffer| {
        buffer.on_reply(NOW, Ok(NextRange::Numbers(numbers)))
    });
}

/// Takes a number at or above the cutoff, if any; numbers below are given up.
fn take(key: &Key, cutoff: u64) -> Option<Range<u64>> {
    loop {
        let taken = key.take(1).or_else(|| key.take_slowly(1, NOW).0.ok())?;
        if taken.start >= cutoff {
            return Some(taken);
        }
        key.skip_below(cutoff, NOW);
    }
}

/// A caller that has, or has not, seen the cutoff rise.
fn caller(key: &Arc<Key>, cutoff: u64, calls: usize) -> Thread<Taken> {
    let key = key.clone();
    Box::new(move || (0..calls).filter_map(|_| take(&key, cutoff)).collect())
}

/// The service's thread: supplies the next range, if it was requested.
fn jobs(key: &Arc<Key>, numbers: Range<u64>) -> Thread<Taken> {
    let key = key.clone();
    Box::new(move || {
        if key.begin(NOW).is_some() {
            reply(&key, numbers);
        }
        Vec::new()
    })
}

#[test]
fn a_thread_that_saw_the_cutoff_rise_gets_no_number_below_it() {
    let ends = Ends::new();
    let note = ends.clone();
    exhaustively("two callers", move || {
        let key = tag();
        let taken = at_once(vec![caller(&key, 0, 2), caller(&key, CUTOFF, 1)]);
        unique_and_growing(&taken);
        note.note(taken[0].len());
        assert!(
            taken[1].is_empty(),
            "there is nothing above the cutoff yet: {taken:?}"
        );
        assert_eq!(take(&key, 0), None, "what was below is gone");
    });
    assert_eq!(ends.get().len(), 3, "the cutoff rose at every moment");
    bounded("a range that is over meanwhile", || {
        let key = tag();
        let taken = at_once(vec![caller(&key, CUTOFF, 2), jobs(&key, 5..9)]);
        assert!(taken[0].is_empty(), "{taken:?}");
        assert_eq!(take(&key, CUTOFF), None);
    });
    bounded("with the next range", || {
        let key = tag();
        let taken = at_once(vec![
            caller(&key, 0, 1),
            caller(&key, CUTOFF, 2),
            jobs(&key, CUTOFF..CUTOFF + 4),
        ]);
        unique_and_growing(&taken);
        assert!(
            taken[1].iter().all(|taken| taken.start >= CUTOFF),
            "{taken:?}"
        );
        // Nothing of the next range is lost.
        let mut all: Taken = taken.into_iter().flatten().collect();
        all.extend(std::iter::from_fn(|| take(&key, CUTOFF)));
        let above = all.iter().filter(|taken| taken.start >= CUTOFF).count();
        assert!(above == 0 || above == 4, "{all:?}");
    });
}

/// The planted fault: a caller that does not check whether the number it takes has expired.
#[test]
#[should_panic(expected = "below the cutoff")]
fn planted_take_without_a_look() {
    exhaustively("planted fault", || {
        let key = tag();
        let this = key.clone();
        let careless: Thread<Taken> = Box::new(move || {
            let taken = this.take(1).or_else(|| this.take_slowly(1, NOW).0.ok());
            taken.into_iter().collect()
        });
        let taken = at_once(vec![careless, caller(&key, CUTOFF, 1)]);
        assert!(
            taken[0].iter().all(|taken| taken.start >= CUTOFF),
            "below the cutoff: {taken:?}"
        );
    });
}
