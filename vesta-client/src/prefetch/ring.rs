//! Lock-free ring that hands out the current run to all threads: an ID costs one fetch-add and four
//! loads.
//!
//! One word holds the current run (its generation) and how many of its IDs are taken:
//!
//! | bits 63–26 | bits 25–0 |
//! |---|---|
//! | generation | taken |
//!
//! The run of a generation is in slot `generation % SLOTS`. **No ID is handed out twice:** a
//! generation is published once and never reused, so a fetch-add returns each (generation, taken)
//! once. A slot is valid only while it carries that generation. A reader delayed until its slot was
//! overwritten loses its IDs, which is harmless.
//!
//! `taken` never carries into `generation`. A thread that finds the run used up goes through the lock ([`Writer`]),
//! where a new generation begins or the ring is closed. So each thread adds to a used-up generation at most twice, at
//! most [`MAX_TAKE`] each time, and overflow would take 2^17 threads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use vesta_intf::IdRun;

use crate::fork::process;

/// Maximum number of IDs in a run of the ring.
pub(super) const MAX_RUN: u32 = 4096;

/// Maximum number of IDs per call.
const MAX_TAKE: u32 = 256;

const TAKEN_BITS: u32 = 26;

/// Number of runs that stay readable; a reader loses its IDs only if as many are published during
/// its call.
const SLOTS: usize = 8;

/// Last generation; afterwards the ring stays closed and callers go through the lock.
const LAST_GENERATION: u64 = (1 << (64 - TAKEN_BITS)) - 2;

/// Generation of a slot that is being written.
const NO_GENERATION: u64 = 0;

#[derive(Debug)]
pub(super) struct Ring {
    cursor: Cursor,
    /// The process in which the ring is open; 0 if it is closed. Rarely written, so reading a closed ring does not
    /// touch the cursor.
    open: AtomicU32,
    slots: [Slot; SLOTS],
}

// On its own cache lines: every caller writes it (two lines, as adjacent lines are fetched together).
#[derive(Debug)]
#[repr(align(128))]
struct Cursor(AtomicU64);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    generation: AtomicU64,
    first: AtomicU64,
    step: AtomicU64,
    count: AtomicU64,
}

/// Exclusive right to publish to the ring, guarded by a lock.
#[derive(Debug)]
pub(super) struct Writer {
    generation: u64,
    count: u32,
    open: bool,
}

impl Ring {
    pub(super) fn new() -> (Self, Writer) {
        Self::starting_at(NO_GENERATION)
    }

    fn starting_at(generation: u64) -> (Self, Writer) {
        let ring = Self {
            cursor: Cursor(AtomicU64::new(generation << TAKEN_BITS)),
            open: AtomicU32::new(0),
            slots: Default::default(),
        };
        (
            ring,
            Writer {
                generation,
                count: 0,
                open: false,
            },
        )
    }

    /// Takes up to `most` IDs (at most [`MAX_TAKE`]). Returns `None` if the ring is closed or used up, in a forked
    /// child, or if the caller was delayed too long.
    #[inline]
    pub(super) fn take(&self, most: u32) -> Option<IdRun> {
        // Relaxed: a hint that avoids reading the cursor; exact answers need the lock.
        if self.open.load(Ordering::Relaxed) != process() {
            return None;
        }
        // Acquire: the slot was written before the cursor reached its generation.
        let most = u64::from(most.min(MAX_TAKE));
        let word = self.cursor.0.fetch_add(most, Ordering::Acquire);
        let (generation, taken) = (word >> TAKEN_BITS, taken_of(word));
        let slot = &self.slots[generation as usize % SLOTS];
        let first = slot.first.load(Ordering::Relaxed);
        let step = slot.step.load(Ordering::Relaxed);
        let count = slot.count.load(Ordering::Relaxed);
        // Pairs with the fence in `publish`: if a value above is from a later generation, this sees it.
        fence(Ordering::Acquire);
        if slot.generation.load(Ordering::Relaxed) != generation || taken >= count {
            return None;
        }
        let count = (count - taken).min(most) as u32;
        Some(IdRun {
            first: first + taken * step,
            step,
            count,
        })
    }

    /// Publishes `run`; the rest of the previous one is lost. Returns the run if no generation is
    /// left for it.
    pub(super) fn publish(&self, writer: &mut Writer, run: IdRun) -> Result<(), IdRun> {
        debug_assert!(run.count <= MAX_RUN);
        if writer.generation >= LAST_GENERATION {
            self.close(writer);
            return Err(run);
        }
        *writer = Writer {
            generation: writer.generation + 1,
            count: run.count,
            open: true,
        };
        let slot = &self.slots[writer.generation as usize % SLOTS];
        slot.generation.store(NO_GENERATION, Ordering::Relaxed);
        // A reader that sees a value below also sees NO_GENERATION, or a later generation.
        fence(Ordering::Release);
        slot.first.store(run.first, Ordering::Relaxed);
        slot.step.store(run.step, Ordering::Relaxed);
        slot.count.store(u64::from(run.count), Ordering::Relaxed);
        slot.generation.store(writer.generation, Ordering::Release);
        // Release: a reader of this generation from the cursor sees its slot.
        self.cursor
            .0
            .store(writer.generation << TAKEN_BITS, Ordering::Release);
        self.open.store(process(), Ordering::Relaxed);
        Ok(())
    }

    /// Closes the ring and returns the number of IDs left.
    pub(super) fn close(&self, writer: &mut Writer) -> u32 {
        if !writer.open {
            return 0;
        }
        self.open.store(0, Ordering::Relaxed);
        writer.open = false;
        // A generation without a slot. At most LAST_GENERATION + 1, which fits its bits.
        writer.generation += 1;
        let word = self
            .cursor
            .0
            .swap(writer.generation << TAKEN_BITS, Ordering::Relaxed);
        writer.left(word)
    }

    /// Closes the ring and returns the rest of its run.
    pub(super) fn take_back(&self, writer: &mut Writer) -> Option<IdRun> {
        let slot = &self.slots[writer.generation as usize % SLOTS];
        // Relaxed: only the holder of `writer` writes them.
        let (first, step) = (
            slot.first.load(Ordering::Relaxed),
            slot.step.load(Ordering::Relaxed),
        );
        match self.close(writer) {
            0 => None,
            left => {
                let taken = u64::from(writer.count - left);
                Some(IdRun {
                    first: first + taken * step,
                    step,
                    count: left,
                })
            }
        }
    }

    /// Number of IDs left.
    pub(super) fn left(&self, writer: &Writer) -> u32 {
        if !writer.open {
            return 0;
        }
        writer.left(self.cursor.0.load(Ordering::Relaxed))
    }
}

impl Writer {
    fn left(&self, word: u64) -> u32 {
        self.count - taken_of(word).min(self.count.into()) as u32
    }
}

fn taken_of(word: u64) -> u64 {
    word & ((1 << TAKEN_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::atomic::AtomicU32;

    fn run(first: u64, count: u32) -> IdRun {
        IdRun {
            first,
            step: 10,
            count,
        }
    }

    #[test]
    fn a_run_is_handed_out_piece_by_piece_and_then_nothing() {
        let (ring, mut writer) = Ring::new();
        assert_eq!(ring.take(1), None);
        ring.publish(&mut writer, run(100, 5)).unwrap();
        assert_eq!(ring.take(1), Some(run(100, 1)));
        assert_eq!(ring.take(3), Some(run(110, 3)));
        assert_eq!(ring.left(&writer), 1);
        assert_eq!(ring.take(3), Some(run(140, 1)));
        assert_eq!(ring.take(3), None);
        assert_eq!(ring.left(&writer), 0);
    }

    #[test]
    fn a_closed_ring_returns_the_rest_and_hands_out_nothing() {
        let (ring, mut writer) = Ring::new();
        ring.publish(&mut writer, run(100, 5)).unwrap();
        ring.take(2);
        assert_eq!(ring.close(&mut writer), 3);
        assert_eq!(ring.close(&mut writer), 0);
        assert_eq!(ring.take(1), None);
        // A caller that had seen it open before it was closed gets nothing either.
        ring.open.store(process(), Ordering::Relaxed);
        assert_eq!(ring.take(1), None);
        ring.publish(&mut writer, run(500, 1)).unwrap();
        assert_eq!(ring.take(1), Some(run(500, 1)));
    }

    #[test]
    fn the_rest_taken_back_was_taken_by_no_caller() {
        let (ring, mut writer) = Ring::new();
        assert_eq!(ring.take_back(&mut writer), None);
        ring.publish(&mut writer, run(100, 5)).unwrap();
        ring.take(2);
        assert_eq!(ring.take_back(&mut writer), Some(run(120, 3)));
        assert_eq!((ring.take(1), ring.take_back(&mut writer)), (None, None));
        ring.publish(&mut writer, run(500, 2)).unwrap();
        ring.take(3);
        assert_eq!(ring.take_back(&mut writer), None);
    }

    #[test]
    fn asking_a_closed_ring_does_not_move_it() {
        let (ring, mut writer) = Ring::new();
        ring.publish(&mut writer, run(100, 5)).unwrap();
        ring.close(&mut writer);
        let before = ring.cursor.0.load(Ordering::Relaxed);
        (0..1000).for_each(|_| assert_eq!(ring.take(MAX_RUN), None));
        assert_eq!(ring.cursor.0.load(Ordering::Relaxed), before);
    }

    #[test]
    fn after_the_last_generation_the_ring_stays_closed() {
        let (ring, mut writer) = Ring::starting_at(LAST_GENERATION - 1);
        ring.publish(&mut writer, run(100, 5)).unwrap();
        assert_eq!(ring.take(1), Some(run(100, 1)));
        assert_eq!(ring.publish(&mut writer, run(500, 5)), Err(run(500, 5)));
        assert_eq!(ring.take(1), None);
        assert_eq!(ring.publish(&mut writer, run(500, 5)), Err(run(500, 5)));
    }

    #[test]
    fn a_reader_delayed_too_long_gets_nothing() {
        let (ring, mut writer) = Ring::new();
        ring.publish(&mut writer, run(100, 5)).unwrap();
        let word = ring.cursor.0.load(Ordering::Relaxed);
        for n in 1..=SLOTS as u64 {
            ring.publish(&mut writer, run(1000 * n, 5)).unwrap();
        }
        // As if the reader's fetch-add had happened before all of that.
        ring.cursor.0.store(word, Ordering::Relaxed);
        assert_eq!(ring.take(1), None);
    }

    /// Tiny runs, so that readers, the writer and closings collide all the time.
    #[test]
    fn threads_never_get_the_same_id() {
        const THREADS: usize = 8;
        const RUNS: u64 = 60_000;
        let (ring, writer) = Ring::new();
        let writer = Mutex::new((writer, 0_u64));
        let seen: Vec<AtomicU32> = (0..RUNS * 4).map(|_| AtomicU32::new(0)).collect();
        let (refused, closed) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (ring, writer, seen, refused, closed) =
                    (&ring, &writer, &seen, &refused, &closed);
                scope.spawn(move || {
                    let mut last = None;
                    loop {
                        if let Some(run) = ring.take(1 + thread as u32 % 3) {
                            for id in run.iter() {
                                assert!(Some(id) > last, "ascending for each thread");
                                last = Some(id);
                                seen[id as usize].fetch_add(1, Ordering::Relaxed);
                            }
                            continue;
                        }
                        refused.fetch_add(1, Ordering::Relaxed);
                        let mut guard = writer.lock();
                        let (writer, n) = &mut *guard;
                        if *n == RUNS {
                            ring.close(writer);
                            return;
                        }
                        if ring.left(writer) > 0 {
                            continue;
                        }
                        if *n % 7 == 0 {
                            ring.close(writer);
                            closed.fetch_add(1, Ordering::Relaxed);
                        }
                        let run = IdRun {
                            first: *n * 4,
                            step: 1,
                            count: 1 + (*n % 4) as u32,
                        };
                        *n += 1;
                        ring.publish(writer, run).unwrap();
                    }
                });
            }
        });
        let count = |n| {
            seen.iter()
                .filter(|s| s.load(Ordering::Relaxed) == n)
                .count() as u64
        };
        let published: u64 = (0..RUNS).map(|n| 1 + n % 4).sum();
        let (once, never) = (count(1), count(0));
        assert_eq!(once + never, RUNS * 4, "an ID was handed out twice");
        assert!(
            once > published / 2,
            "nearly every ID is handed out, but only {once} were"
        );
        assert!(
            refused.into_inner() > RUNS && closed.into_inner() > 0,
            "the threads never met"
        );
    }
}
