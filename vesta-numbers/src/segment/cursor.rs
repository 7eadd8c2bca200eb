//! Next number and end of the current chunk: the data that every call for numbers of a tag touches.
//!
//! As the numbers of a tag only ever grow, one compare-and-swap of the next number is enough; the end need
//! not change in the same step. A used-up chunk is replaced under the tag's lock, outside this type.

#[cfg(all(test, loom))]
mod races;

use std::ops::Range;

use vesta_service::inside::back_off;
use vesta_service::inside::sync::{AtomicU64, Ordering};

/// Numbers from `next` up to, but excluding, `end`; none if `next` is `end` or beyond.
///
/// Why no number is taken twice: `next` changes by compare-and-swap from below an `end` and, when it
/// has reached it, by [`refill`](Self::refill) to a chunk above. It falls in one case, by
/// [`give_back`](Self::give_back): to the start of the numbers that were taken last, which no caller has. So at each
/// value of `next` no caller has a number at or above it, and a change from another value fails. A caller that sees a new `end` also sees the `next` that was written before
/// it, and so cannot take a number between two chunks.
#[derive(Debug)]
#[repr(align(128))] // its own pair of cache lines: a used-up chunk writes both words
pub(crate) struct RangeCursor {
    next: AtomicU64,
    end: AtomicU64,
}

impl RangeCursor {
    pub(crate) const fn new() -> Self {
        Self {
            next: AtomicU64::new(0),
            end: AtomicU64::new(0),
        }
    }

    /// The next 1 to `want` numbers, if any are left.
    #[inline]
    pub(crate) fn take(&self, want: u64) -> Option<Range<u64>> {
        // Relaxed: uniqueness needs only the modification order of this one word.
        let mut start = self.next.load(Ordering::Relaxed);
        loop {
            // Acquire: pairs with the release in `refill`, see above.
            let left = self.end.load(Ordering::Acquire).checked_sub(start)?;
            if left == 0 {
                return None;
            }
            let end = start + want.min(left);
            match self
                .next
                .compare_exchange(start, end, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Some(start..end),
                Err(found) => {
                    start = back_off(found, end - start, || self.next.load(Ordering::Relaxed));
                }
            }
        }
    }

    /// Switches to another chunk and takes the first 1 to `want` numbers of it. The caller holds the tag's lock
    /// and has seen, under it, that nothing is left. `chunk` is not empty and is above every number before.
    pub(crate) fn refill(&self, chunk: Range<u64>, want: u64) -> Range<u64> {
        debug_assert!(chunk.start >= self.next.load(Ordering::Relaxed) && !chunk.is_empty());
        let end = chunk.start + want.min(chunk.end - chunk.start);
        self.next.store(end, Ordering::Relaxed);
        // Release: `next` is seen before.
        self.end.store(chunk.end, Ordering::Release);
        chunk.start..end
    }

    /// Gives back the numbers that were taken last; `false` if others were taken since. The caller holds the
    /// tag's lock: a refill or a stop at the same time would be undone.
    pub(crate) fn give_back(&self, numbers: &Range<u64>) -> bool {
        // Relaxed: as in `take`.
        let back = self.next.compare_exchange(
            numbers.end,
            numbers.start,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        back.is_ok()
    }

    /// Takes the rest away. It is taken like any numbers, so no caller gets any of them. The caller
    /// holds the tag's lock.
    pub(crate) fn stop(&self) -> Option<Range<u64>> {
        self.take(u64::MAX)
    }

    /// Leaves nothing to take, in the child of a fork: no lock, and no other thread.
    pub(crate) fn close_in_child(&self) {
        self.end.store(0, Ordering::Relaxed);
    }

    /// The first number that was not taken from this cursor.
    pub(crate) fn position(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A caller that sees a new end with an old next number would take from the gap between two chunks.
    #[test]
    fn switching_chunks_issues_nothing_between_them() {
        const CHUNKS: u64 = 3_000_000;
        let cursor = RangeCursor::new();
        let count = |numbers: Range<u64>| {
            assert!(
                numbers.start % 10 < 2 && numbers.end - numbers.start == 1,
                "{numbers:?}"
            );
            numbers.start
        };
        let sums = std::thread::scope(|scope| {
            let callers = [(); 2].map(|()| {
                scope.spawn(|| {
                    let (mut sum, mut last) = (0, 0);
                    while last < CHUNKS * 10 - 10 {
                        match cursor.take(1).map(count) {
                            Some(number) => {
                                assert!(number > last, "{number} after {last}");
                                last = number;
                                sum += number;
                            }
                            None => {
                                let position = cursor.position(); // once: it changes
                                last = last.max(position - position % 10);
                            }
                        }
                    }
                    sum
                })
            });
            let mut sum = 0;
            // Chunks of two numbers: 10 and 11, 20 and 21, ...
            for chunk in 1..=CHUNKS {
                while let Some(number) = cursor.take(1).map(count) {
                    sum += number;
                }
                sum += count(cursor.refill(chunk * 10..chunk * 10 + 2, 1));
            }
            while let Some(number) = cursor.take(1).map(count) {
                sum += number;
            }
            callers
                .map(|caller| caller.join().expect("no panic"))
                .iter()
                .sum::<u64>()
                + sum
        });
        let every_number_once = (1..=CHUNKS).map(|chunk| chunk * 20 + 1).sum::<u64>();
        assert_eq!(sums, every_number_once);
    }

    #[test]
    fn a_run_ends_with_its_chunk_and_nothing_follows_a_stop() {
        let cursor = RangeCursor::new();
        assert_eq!(cursor.take(5), None);
        assert_eq!(cursor.refill(10..20, 4), 10..14);
        assert_eq!(cursor.take(100), Some(14..20));
        assert_eq!(cursor.take(1), None);
        assert_eq!(cursor.refill(30..40, 1), 30..31);
        assert_eq!(cursor.stop(), Some(31..40));
        assert_eq!((cursor.take(1), cursor.stop()), (None, None));
        assert!(!cursor.give_back(&(31..35)), "later ones were taken");
        assert!(cursor.give_back(&(35..40)));
        assert_eq!(cursor.take(9), Some(35..40));
        assert_eq!(cursor.refill(40..41, 9), 40..41);
    }
}
