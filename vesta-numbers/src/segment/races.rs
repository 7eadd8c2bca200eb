//! A tag in every interleaving of callers, the thread that fetches, and the end.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::buffer::Health;
use super::key::Key;
use super::{NextRange, SegmentTag};
use vesta_service::inside::races::{
    Ends, Thread, at_once, bounded, exhaustively, unique_and_growing,
};
use vesta_service::inside::sync::{AtomicU64, Ordering};

const NOW: Duration = Duration::from_secs(1);

type Taken = Vec<Range<u64>>;

struct Model {
    key: Key,
    closed: AtomicU64,
}

impl Model {
    /// A tag whose first number was taken, and whose first fetch is in flight.
    fn new() -> Arc<Self> {
        let tag = SegmentTag::new("orders", 1, 4);
        let key = Key::new(&tag, 1_000);
        assert_eq!(key.take(1), None);
        assert!(matches!(key.take_slowly(1, NOW), (Err(_), true)));
        assert_eq!(key.begin(NOW), Some(4));
        let closed = AtomicU64::new(0);
        closed.load(Ordering::Relaxed); // makes the lazily created primitives
        Arc::new(Self { key, closed })
    }

    fn with_numbers() -> Arc<Self> {
        let model = Self::new();
        model.reply();
        model
    }

    fn reply(&self) {
        self.key.change(NOW, |buffer| {
            buffer.on_reply(NOW, Ok(NextRange::Numbers(1..5)))
        });
    }

    fn take(&self, want: u64) -> Option<Range<u64>> {
        let closed = self.closed.load(Ordering::Acquire) != 0;
        let taken = self
            .key
            .take(want)
            .or_else(|| self.key.take_slowly(want, NOW).0.ok())?;
        assert!(!closed, "issued after the end: {taken:?}");
        assert!(
            1 <= taken.start && taken.end <= 5,
            "not from the store: {taken:?}"
        );
        Some(taken)
    }

    fn caller(self: &Arc<Self>, wants: &'static [u64]) -> Thread<Taken> {
        let this = self.clone();
        Box::new(move || wants.iter().filter_map(|&want| this.take(want)).collect())
    }

    /// A caller that waits until numbers are available.
    fn patient(self: &Arc<Self>) -> Thread<Taken> {
        let this = self.clone();
        Box::new(move || {
            loop {
                let seen = this.key.notify.changes();
                if let Some(taken) = this.take(1) {
                    return vec![taken];
                }
                this.key.notify.wait(seen, Duration::MAX);
            }
        })
    }

    fn jobs(self: &Arc<Self>) -> Thread<Taken> {
        let this = self.clone();
        Box::new(move || {
            this.reply();
            Vec::new()
        })
    }

    fn close(self: &Arc<Self>) -> Thread<Taken> {
        let this = self.clone();
        Box::new(move || {
            this.key.end(NOW, Health::Closed);
            this.closed.store(1, Ordering::Release);
            // Numbers given back to the store count as taken: other processes get them.
            let back = this.key.state.lock().give_back();
            back.into_iter().collect()
        })
    }
}

#[test]
fn two_callers_use_up_the_numbers() {
    exhaustively("two callers", move || {
        let model = Model::with_numbers();
        let taken = at_once(vec![model.caller(&[1, 2]), model.caller(&[1, 1])]);
        let all = unique_and_growing(&taken);
        assert_eq!(
            all.last().map(|last| last.end),
            Some(5),
            "nothing is left: {all:?}"
        );
    });
}

#[test]
fn a_caller_races_with_closing() {
    let ends = Ends::new();
    let note = ends.clone();
    exhaustively("a caller and the end", move || {
        let model = Model::with_numbers();
        let taken = at_once(vec![model.caller(&[1, 1, 1]), model.close()]);
        unique_and_growing(&taken);
        note.note(taken[0].len());
        assert_eq!(model.take(1), None);
        let all: u64 = taken
            .iter()
            .flatten()
            .map(|taken| taken.end - taken.start)
            .sum();
        assert_eq!(all, 4, "alone, a caller leaves no gap");
    });
    assert_eq!(ends.get().len(), 4, "it ended at every moment");
}

#[test]
fn two_callers_and_the_end() {
    bounded("two callers and the end", move || {
        let model = Model::with_numbers();
        let threads = vec![model.caller(&[1]), model.caller(&[2]), model.close()];
        unique_and_growing(&at_once(threads));
    });
}

#[test]
fn closing_races_with_a_late_range() {
    bounded("a range that comes late", move || {
        let model = Model::new();
        let taken = at_once(vec![model.caller(&[1]), model.jobs(), model.close()]);
        let late = model.key.state.lock().give_back();
        unique_and_growing(&[taken, vec![late.into_iter().collect()]].concat());
    });
}

/// If a notification could be missed, the model would deadlock.
#[test]
fn every_waiter_is_woken() {
    exhaustively("one that waits", || {
        let model = Model::new();
        let taken = at_once(vec![model.patient(), model.jobs()]);
        assert_eq!(unique_and_growing(&taken).len(), 1);
    });
    bounded("two that wait", move || {
        let model = Model::new();
        let taken = at_once(vec![model.patient(), model.patient(), model.jobs()]);
        assert_eq!(unique_and_growing(&taken).len(), 2);
    });
}

/// The count is read too late: the numbers come between the check and the wait.
#[test]
#[should_panic(expected = "deadlock")]
fn planted_count_read_after_the_look() {
    exhaustively("planted fault", || {
        let model = Model::new();
        let this = model.clone();
        let careless: Thread<_> = Box::new(move || {
            while this.take(1).is_none() {
                this.key
                    .notify
                    .wait(this.key.notify.changes(), Duration::MAX);
            }
            Vec::new()
        });
        at_once(vec![careless, model.jobs()]);
    });
}
