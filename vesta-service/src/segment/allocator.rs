//! Hands out the numbers of one tag to all threads of the process.
//!
//! A [`RangeCursor`] is what every call touches: the next number and the end of the chunk it belongs to. As
//! the numbers of one line only ever grow, one compare-and-swap of the next number is enough; the end
//! need not change in the same step. What is used up is replaced under a lock, outside.
//!
//! In strict mode all threads share one line. In relaxed mode they are spread over several
//! **stripes**, lines of their own that take runs from the shared one, so that cores do not wait for
//! each other: numbers increase within each thread, and across threads they do not.

#[cfg(all(test, loom))]
mod races;

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;

use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::wait::BackOff;

/// Numbers from `next` on below `end`; none if `next` has come to `end` or beyond.
///
/// Why no number is taken twice: `next` changes by compare-and-swap from below an `end` and, when it
/// has reached it, by [`refill`](Self::refill) to a chunk that lies above; so its value only grows, and
/// a change from an old value fails. A caller that sees a new `end` also sees the `next` that was
/// written before it, and so cannot take a number between two chunks.
#[derive(Debug)]
#[repr(align(128))] // a cache line (pair) of its own: both words are written when a chunk is used up
pub(crate) struct RangeCursor {
    next: AtomicU64,
    end: AtomicU64,
}

impl RangeCursor {
    pub(crate) const fn new() -> Self {
        Self { next: AtomicU64::new(0), end: AtomicU64::new(0) }
    }

    /// The next 1 to `want` numbers, if there are any.
    #[inline]
    pub(crate) fn take(&self, want: u64) -> Option<Range<u64>> {
        // Relaxed: the order of all changes of this one word is what uniqueness needs.
        let mut start = self.next.load(Ordering::Relaxed);
        let mut back_off = BackOff::new();
        loop {
            // Acquire, with the release in `refill`: see above.
            let left = self.end.load(Ordering::Acquire).checked_sub(start)?;
            if left == 0 {
                return None;
            }
            let end = start + want.min(left);
            match self.next.compare_exchange(start, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(start..end),
                Err(_) => {
                    back_off.spin();
                    start = self.next.load(Ordering::Relaxed);
                }
            }
        }
    }

    /// Goes over to another chunk and takes the first 1 to `want` numbers of it. The caller holds the
    /// line's lock and has seen, under it, that nothing is left. `chunk` is not empty and lies above
    /// everything the line had.
    pub(crate) fn refill(&self, chunk: Range<u64>, want: u64) -> Range<u64> {
        debug_assert!(chunk.start >= self.next.load(Ordering::Relaxed) && !chunk.is_empty());
        let end = chunk.start + want.min(chunk.end - chunk.start);
        self.next.store(end, Ordering::Relaxed);
        // Release: `next` is seen before.
        self.end.store(chunk.end, Ordering::Release);
        chunk.start..end
    }

    /// Takes away what is left. As that is taken like any number, no caller gets any of it. The caller
    /// holds the line's lock.
    pub(crate) fn stop(&self) -> Option<Range<u64>> {
        self.take(u64::MAX)
    }

    /// Leaves nothing, in the child of a fork: no lock, and no other thread.
    fn close_in_child(&self) {
        self.end.store(0, Ordering::Relaxed);
    }

    /// The first number that was not taken from here.
    pub(crate) fn position(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}

/// A line that some threads have to themselves.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Stripe {
    cursor: RangeCursor,
    lock: Mutex<()>,
}

/// The most numbers that a stripe takes from the shared line at a time for single calls.
const LONGEST_RUN: u64 = 1024;
/// A stripe takes at most this part of a chunk, so that a small one does for many threads.
const SHARE: u64 = 64;

/// The lines of one tag.
#[derive(Debug)]
pub(crate) struct Allocator {
    shared: RangeCursor,
    /// Numbers that a stripe takes at a time: depends on the size of the chunk.
    run: AtomicU64,
    /// From one number to the next. As long as a line exists, for a caller may have read it long ago.
    stride: u64,
    /// Empty in strict mode; otherwise a power of two.
    stripes: Box<[Stripe]>,
}

/// Home slot of the next thread that asks for the first time.
static NEXT_HOME: AtomicUsize = AtomicUsize::new(0);

crate::sync::thread_local! {
    /// The number of the stripe this thread keeps to, not yet wrapped around.
    static HOME: Cell<usize> = Cell::new(NEXT_HOME.fetch_add(1, Ordering::Relaxed));
}

impl Allocator {
    /// One line for all threads.
    pub(crate) fn strict(stride: u64) -> Self {
        let run = AtomicU64::new(stride);
        Self { shared: RangeCursor::new(), run, stride, stripes: Box::default() }
    }

    /// Several lines, so that threads rarely meet.
    pub(crate) fn relaxed(stride: u64) -> Self {
        let cores = std::thread::available_parallelism().map_or(4, usize::from);
        let count = (cores * 8).next_power_of_two().clamp(8, 128);
        let stripe = || Stripe { cursor: RangeCursor::new(), lock: Mutex::new(()) };
        Self { stripes: (0..count).map(|_| stripe()).collect(), ..Self::strict(stride) }
    }

    fn stripe(&self) -> Option<&Stripe> {
        // A thread that is ending has no home any more; any one will do.
        let home = HOME.try_with(Cell::get).unwrap_or(0);
        self.stripes.get(home & self.stripes.len().wrapping_sub(1))
    }

    /// From one number to the next.
    pub(crate) const fn stride(&self) -> u64 {
        self.stride
    }

    /// The next 1 to `want` numbers, if there are some at hand for this thread: from the start of what is
    /// returned on, a stride apart.
    #[inline]
    pub(crate) fn take(&self, want: u64) -> Option<Range<u64>> {
        let line = if self.stripes.is_empty() { &self.shared } else { &self.stripe()?.cursor };
        // In a branch of its own the usual one costs nothing.
        match self.stride {
            1 => line.take(want),
            stride => line.take(want * stride),
        }
    }

    /// As [`take`](Self::take), when that found nothing: `more` gives the numbers below so much more, from the
    /// shared line, after refilling it if need be.
    pub(crate) fn take_from<E>(
        &self,
        want: u64,
        more: impl FnOnce(&RangeCursor, u64) -> Result<Range<u64>, E>,
    ) -> Result<Range<u64>, E> {
        let want = want * self.stride;
        let Some(stripe) = self.stripe() else { return more(&self.shared, want) };
        let _guard = stripe.lock.lock();
        if let Some(taken) = stripe.cursor.take(want) {
            return Ok(taken);
        }
        let run = want.max(self.run.load(Ordering::Relaxed));
        // Acquired first, so that `stop` finds whatever is taken here in the stripe.
        let numbers = match self.shared.take(run) {
            Some(numbers) => numbers,
            None => more(&self.shared, run)?,
        };
        Ok(stripe.cursor.refill(numbers, want))
    }

    /// A chunk of this size is now in use.
    pub(crate) fn set_chunk_size(&self, size: u64) {
        let run = (size / self.stride / SHARE).clamp(1, LONGEST_RUN) * self.stride;
        self.run.store(run, Ordering::Relaxed);
    }

    /// The line that all share. Its lock is the caller's.
    pub(crate) const fn shared(&self) -> &RangeCursor {
        &self.shared
    }

    /// Leaves nothing to take without a look at the process, in the child of a fork.
    pub(crate) fn close_in_child(&self) {
        self.shared.close_in_child();
        self.stripes.iter().for_each(|stripe| stripe.cursor.close_in_child());
    }

    /// Takes away what the stripes have. The shared line must be stopped before, and its lock given
    /// back: a stripe that just took a run is waited for.
    pub(crate) fn stop_stripes(&self) -> Vec<Range<u64>> {
        let stop = |stripe: &Stripe| {
            let _guard = stripe.lock.lock();
            stripe.cursor.stop()
        };
        self.stripes.iter().filter_map(stop).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A caller that sees a new end and an old next number would take from the gap between two chunks.
    #[test]
    fn going_over_to_another_lot_gives_out_nothing_between_the_lots() {
        const CHUNKS: u64 = 3_000_000;
        let cursor = RangeCursor::new();
        let count = |numbers: Range<u64>| {
            assert!(numbers.start % 10 < 2 && numbers.end - numbers.start == 1, "{numbers:?}");
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
                                let position = cursor.position(); // once: it moves
                                last = last.max(position - position % 10);
                            }
                        }
                    }
                    sum
                })
            });
            let mut sum = 0;
            // Lots of two numbers: 10 and 11, 20 and 21, ...
            for chunk in 1..=CHUNKS {
                while let Some(number) = cursor.take(1).map(count) {
                    sum += number;
                }
                sum += count(cursor.refill(chunk * 10..chunk * 10 + 2, 1));
            }
            while let Some(number) = cursor.take(1).map(count) {
                sum += number;
            }
            callers.map(|caller| caller.join().expect("no panic")).iter().sum::<u64>() + sum
        });
        let every_number_once = (1..=CHUNKS).map(|chunk| chunk * 20 + 1).sum::<u64>();
        assert_eq!(sums, every_number_once);
    }

    #[test]
    fn a_run_ends_with_its_lot_and_nothing_comes_after_a_stop() {
        let cursor = RangeCursor::new();
        assert_eq!(cursor.take(5), None);
        assert_eq!(cursor.refill(10..20, 4), 10..14);
        assert_eq!(cursor.take(100), Some(14..20));
        assert_eq!(cursor.take(1), None);
        assert_eq!(cursor.refill(30..40, 1), 30..31);
        assert_eq!(cursor.stop(), Some(31..40));
        assert_eq!((cursor.take(1), cursor.stop()), (None, None));
        assert_eq!(cursor.refill(40..41, 9), 40..41);
    }
}
