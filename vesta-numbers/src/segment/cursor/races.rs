//! A range cursor in every interleaving of callers.

use std::collections::VecDeque;
use std::sync::Arc;

use super::*;
use vesta_service::inside::races::{
    Ends, Thread, at_once, bounded, exhaustively, unique_and_growing,
};
use vesta_service::inside::sync::Mutex;

/// The chunk to be used up first, and the next one. Numbers between them must never be taken.
const CHUNKS: [Range<u64>; 2] = [10..12, 20..22];

/// Switches to another chunk: [`RangeCursor::refill`], or a faulty version of it.
type Refill = fn(&RangeCursor, Range<u64>, u64) -> Range<u64>;
/// Takes the rest away: [`RangeCursor::stop`], or a faulty version of it.
type Stop = fn(&RangeCursor) -> Option<Range<u64>>;

struct Model {
    cursor: RangeCursor,
    /// The cursor's lock, and the chunks to come.
    chunks: Mutex<VecDeque<Range<u64>>>,
    refill: Refill,
    stopped: AtomicU64,
}

impl Model {
    fn new(refill: Refill) -> Arc<Self> {
        let [first, second] = CHUNKS;
        let cursor = RangeCursor::new();
        assert_eq!(cursor.refill(first.start - 1..first.end, 1), 9..10);
        let chunks = Mutex::new(VecDeque::from([second]));
        let stopped = AtomicU64::new(0);
        stopped.load(Ordering::Relaxed); // makes the lazily created primitives
        Arc::new(Self {
            cursor,
            chunks,
            refill,
            stopped,
        })
    }

    fn take(&self, want: u64, from_more: bool) -> Option<Range<u64>> {
        let stopped = self.stopped.load(Ordering::Acquire) != 0;
        let taken = self.cursor.take(want).or_else(|| {
            if !from_more {
                return None;
            }
            let mut chunks = self.chunks.lock();
            self.cursor.take(want).or_else(|| {
                let chunk = chunks.pop_front()?;
                Some((self.refill)(&self.cursor, chunk, want))
            })
        })?;
        assert!(!stopped, "taken after the end: {taken:?}");
        let given = |chunk: &Range<u64>| chunk.start <= taken.start && taken.end <= chunk.end;
        assert!(
            CHUNKS.iter().any(given),
            "from between two chunks: {taken:?}"
        );
        Some(taken)
    }

    fn caller(self: &Arc<Self>, wants: &'static [u64], from_more: bool) -> Thread<Taken> {
        let this = self.clone();
        Box::new(move || {
            wants
                .iter()
                .filter_map(|&want| this.take(want, from_more))
                .collect()
        })
    }

    /// The end. The numbers it takes away count as taken: they go back to the store.
    fn stop(self: &Arc<Self>, stop: Stop) -> Thread<Taken> {
        let this = self.clone();
        Box::new(move || {
            let left = {
                let mut chunks = this.chunks.lock();
                stop(&this.cursor)
                    .into_iter()
                    .chain(chunks.drain(..))
                    .collect()
            };
            this.stopped.store(1, Ordering::Release);
            left
        })
    }
}

type Taken = Vec<Range<u64>>;

fn count(taken: &[Range<u64>]) -> u64 {
    taken.iter().map(|taken| taken.end - taken.start).sum()
}

#[test]
fn two_callers_reach_the_end_of_a_chunk() {
    let ends = Ends::new();
    let note = ends.clone();
    exhaustively("line", move || {
        let model = Model::new(RangeCursor::refill);
        let taken = at_once(vec![
            model.caller(&[1, 1], true),
            model.caller(&[1, 1], true),
        ]);
        assert_eq!(
            count(&unique_and_growing(&taken)),
            4,
            "everything is issued"
        );
        note.note(taken.iter().map(|taken| taken[0].start).collect());
    });
    let ends: &Vec<Vec<_>> = &ends.get().iter().cloned().collect();
    assert!(
        ends.len() > 2,
        "they shared the chunks in different ways: {ends:?}"
    );
}

#[test]
fn a_chunk_begins_while_a_caller_takes() {
    exhaustively("line", || {
        let model = Model::new(RangeCursor::refill);
        let threads = vec![model.caller(&[2, 1, 1], true), model.caller(&[1, 2], false)];
        unique_and_growing(&at_once(threads));
    });
}

#[test]
fn a_chunk_begins_under_three_callers() {
    bounded("line", || {
        let model = Model::new(RangeCursor::refill);
        let threads = [true, false, false].map(|more| model.caller(&[1, 1], more));
        unique_and_growing(&at_once(threads.into()));
    });
}

#[test]
fn a_caller_races_with_stopping() {
    let ends = Ends::new();
    let note = ends.clone();
    exhaustively("line", move || {
        let model = Model::new(RangeCursor::refill);
        let taken = at_once(vec![
            model.caller(&[1, 2, 1], true),
            model.stop(RangeCursor::stop),
        ]);
        assert_eq!(
            count(&unique_and_growing(&taken)),
            4,
            "nothing is lost at the end"
        );
        note.note(count(&taken[0]));
    });
    assert!(
        ends.get().len() > 3,
        "it ended at different moments: {:?}",
        ends.get()
    );
}

#[test]
fn two_callers_and_the_end() {
    bounded("line", || {
        let model = Model::new(RangeCursor::refill);
        let callers = [&[1, 1], &[2, 1]].map(|wants| model.caller(wants, true));
        let threads = callers
            .into_iter()
            .chain([model.stop(RangeCursor::stop)])
            .collect();
        assert_eq!(count(&unique_and_growing(&at_once(threads))), 4);
    });
}

/// A caller that has seen the old end still takes a number that was counted as left.
#[test]
#[should_panic(expected = "given twice")]
fn planted_look_before_the_stop() {
    exhaustively("planted fault", || {
        let model = Model::new(RangeCursor::refill);
        let stop: Stop = |line| {
            let left = line.position()..line.end.load(Ordering::Acquire);
            line.end.store(0, Ordering::Release);
            (!left.is_empty()).then_some(left)
        };
        unique_and_growing(&at_once(vec![
            model.caller(&[1, 1], false),
            model.stop(stop),
        ]));
    });
}

/// In this order a caller can see the new end with the old next number.
#[test]
#[should_panic(expected = "from between two chunks")]
fn planted_end_before_next() {
    exhaustively("planted fault", || {
        let model = Model::new(|line, chunk, want| {
            let end = chunk.start + want.min(chunk.end - chunk.start);
            line.end.store(chunk.end, Ordering::Release);
            line.next.store(end, Ordering::Release);
            chunk.start..end
        });
        at_once(vec![model.caller(&[2, 1], true), model.caller(&[1], false)]);
    });
}
