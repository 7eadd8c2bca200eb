//! The run that is being handed out right now, shared by all threads without a lock: an ID costs
//! one fetch-add and four loads.
//!
//! One word says which run ("turn") is being handed out and how many of its IDs are taken:
//!
//! | bits 63–26 | bits 25–0 |
//! |---|---|
//! | turn | taken |
//!
//! What a turn hands out stands in slot `turn % SLOTS`. **No ID is handed out twice:** a turn is
//! published once and its number never comes back, so a fetch-add returns each (turn, taken) once,
//! and the slot is believed only while it carries that very turn. A reader that was held up until
//! its slot was written anew loses its IDs, which is harmless.
//!
//! `taken` never carries into `turn`: a thread that finds the run used up goes through the lock
//! ([`Writer`]), where a new turn begins or the lane is closed; so each thread adds to a used-up
//! turn at most twice, at most [`MOST_TAKEN`] each time, and 2^17 threads would be needed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use vesta_intf::IdRun;

/// The largest number of IDs that a run in the lane has.
pub(super) const MOST: u32 = 4096;

/// The largest number of IDs that one call takes.
const MOST_TAKEN: u32 = 256;

const TAKEN_BITS: u32 = 26;

/// Runs that stay readable after the next one is published; a reader would have to sleep through
/// as many to lose its IDs.
const SLOTS: usize = 8;

/// Turn numbers end here; afterwards the lane stays closed and callers go through the lock.
const LAST_TURN: u64 = (1 << (64 - TAKEN_BITS)) - 2;

/// In a slot: being written. No live turn has this number.
const NO_TURN: u64 = 0;

#[derive(Debug)]
pub(super) struct Lane {
    cursor: Cursor,
    /// Hardly ever written, so that asking a closed lane does not touch the cursor.
    open: AtomicBool,
    slots: [Slot; SLOTS],
}

// On cache lines of its own: every caller writes it (two lines, as neighbours are fetched together).
#[derive(Debug)]
#[repr(align(128))]
struct Cursor(AtomicU64);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    turn: AtomicU64,
    first: AtomicU64,
    step: AtomicU64,
    count: AtomicU64,
}

/// The right to change what the lane hands out. There is one per lane, and a lock around it.
#[derive(Debug)]
pub(super) struct Writer {
    turn: u64,
    count: u32,
    open: bool,
}

impl Lane {
    pub(super) fn new() -> (Self, Writer) {
        Self::starting_at(NO_TURN)
    }

    fn starting_at(turn: u64) -> (Self, Writer) {
        let lane = Self {
            cursor: Cursor(AtomicU64::new(turn << TAKEN_BITS)),
            open: AtomicBool::new(false),
            slots: Default::default(),
        };
        (lane, Writer { turn, count: 0, open: false })
    }

    /// Up to `most` IDs (at most [`MOST_TAKEN`]), or nothing: closed, used up, or held up for too long.
    #[inline]
    pub(super) fn take(&self, most: u32) -> Option<IdRun> {
        // Relaxed: only spares the cursor; whoever needs to know the truth holds the lock.
        if !self.open.load(Ordering::Relaxed) {
            return None;
        }
        // Acquire: the slot of this turn was written before the cursor came to the turn.
        let most = u64::from(most.min(MOST_TAKEN));
        let word = self.cursor.0.fetch_add(most, Ordering::Acquire);
        let (turn, taken) = (word >> TAKEN_BITS, taken_of(word));
        let slot = &self.slots[turn as usize % SLOTS];
        let first = slot.first.load(Ordering::Relaxed);
        let step = slot.step.load(Ordering::Relaxed);
        let count = slot.count.load(Ordering::Relaxed);
        // Pairs with the fence in `publish`: if a value above is from a later turn, this sees it.
        fence(Ordering::Acquire);
        if slot.turn.load(Ordering::Relaxed) != turn || taken >= count {
            return None;
        }
        let count = (count - taken).min(most) as u32;
        Some(IdRun { first: first + taken * step, step, count })
    }

    /// Hands out `run` from now on; what was left of the one before is lost. Gives the run back if
    /// the lane has no turn left for it.
    pub(super) fn publish(&self, writer: &mut Writer, run: IdRun) -> Result<(), IdRun> {
        debug_assert!(run.count <= MOST);
        if writer.turn >= LAST_TURN {
            self.close(writer);
            return Err(run);
        }
        *writer = Writer { turn: writer.turn + 1, count: run.count, open: true };
        let slot = &self.slots[writer.turn as usize % SLOTS];
        slot.turn.store(NO_TURN, Ordering::Relaxed);
        // Nobody sees a value below without seeing NO_TURN, or what came after it.
        fence(Ordering::Release);
        slot.first.store(run.first, Ordering::Relaxed);
        slot.step.store(run.step, Ordering::Relaxed);
        slot.count.store(u64::from(run.count), Ordering::Relaxed);
        slot.turn.store(writer.turn, Ordering::Release);
        // Release: whoever reads this turn from the cursor sees its slot.
        self.cursor.0.store(writer.turn << TAKEN_BITS, Ordering::Release);
        self.open.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Hands out nothing from now on, and says how many IDs were left.
    pub(super) fn close(&self, writer: &mut Writer) -> u32 {
        if !writer.open {
            return 0;
        }
        self.open.store(false, Ordering::Relaxed);
        writer.open = false;
        // A turn that no slot carries. At most LAST_TURN + 1, which fits its bits.
        writer.turn += 1;
        let word = self.cursor.0.swap(writer.turn << TAKEN_BITS, Ordering::Relaxed);
        writer.left(word)
    }

    /// Hands out nothing from now on, and gives back what was left.
    pub(super) fn take_back(&self, writer: &mut Writer) -> Option<IdRun> {
        let slot = &self.slots[writer.turn as usize % SLOTS];
        // Relaxed: only the holder of `writer` writes them.
        let (first, step) = (slot.first.load(Ordering::Relaxed), slot.step.load(Ordering::Relaxed));
        match self.close(writer) {
            0 => None,
            left => {
                let taken = u64::from(writer.count - left);
                Some(IdRun { first: first + taken * step, step, count: left })
            }
        }
    }

    /// How many IDs are left.
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
        IdRun { first, step: 10, count }
    }

    #[test]
    fn a_run_is_handed_out_piece_by_piece_and_then_nothing() {
        let (lane, mut writer) = Lane::new();
        assert_eq!(lane.take(1), None);
        lane.publish(&mut writer, run(100, 5)).unwrap();
        assert_eq!(lane.take(1), Some(run(100, 1)));
        assert_eq!(lane.take(3), Some(run(110, 3)));
        assert_eq!(lane.left(&writer), 1);
        assert_eq!(lane.take(3), Some(run(140, 1)));
        assert_eq!(lane.take(3), None);
        assert_eq!(lane.left(&writer), 0);
    }

    #[test]
    fn a_closed_lane_says_what_was_left_and_hands_out_nothing() {
        let (lane, mut writer) = Lane::new();
        lane.publish(&mut writer, run(100, 5)).unwrap();
        lane.take(2);
        assert_eq!(lane.close(&mut writer), 3);
        assert_eq!(lane.close(&mut writer), 0);
        assert_eq!(lane.take(1), None);
        // A caller that had seen it open before it was closed gets nothing either.
        lane.open.store(true, Ordering::Relaxed);
        assert_eq!(lane.take(1), None);
        lane.publish(&mut writer, run(500, 1)).unwrap();
        assert_eq!(lane.take(1), Some(run(500, 1)));
    }

    #[test]
    fn what_is_taken_back_is_what_nobody_took() {
        let (lane, mut writer) = Lane::new();
        assert_eq!(lane.take_back(&mut writer), None);
        lane.publish(&mut writer, run(100, 5)).unwrap();
        lane.take(2);
        assert_eq!(lane.take_back(&mut writer), Some(run(120, 3)));
        assert_eq!((lane.take(1), lane.take_back(&mut writer)), (None, None));
        lane.publish(&mut writer, run(500, 2)).unwrap();
        lane.take(3);
        assert_eq!(lane.take_back(&mut writer), None);
    }

    #[test]
    fn asking_a_closed_lane_does_not_move_it() {
        let (lane, mut writer) = Lane::new();
        lane.publish(&mut writer, run(100, 5)).unwrap();
        lane.close(&mut writer);
        let before = lane.cursor.0.load(Ordering::Relaxed);
        (0..1000).for_each(|_| assert_eq!(lane.take(MOST), None));
        assert_eq!(lane.cursor.0.load(Ordering::Relaxed), before);
    }

    #[test]
    fn when_the_turns_end_the_lane_stays_closed() {
        let (lane, mut writer) = Lane::starting_at(LAST_TURN - 1);
        lane.publish(&mut writer, run(100, 5)).unwrap();
        assert_eq!(lane.take(1), Some(run(100, 1)));
        assert_eq!(lane.publish(&mut writer, run(500, 5)), Err(run(500, 5)));
        assert_eq!(lane.take(1), None);
        assert_eq!(lane.publish(&mut writer, run(500, 5)), Err(run(500, 5)));
    }

    #[test]
    fn a_reader_that_was_held_up_too_long_gets_nothing() {
        let (lane, mut writer) = Lane::new();
        lane.publish(&mut writer, run(100, 5)).unwrap();
        let word = lane.cursor.0.load(Ordering::Relaxed);
        for n in 1..=SLOTS as u64 {
            lane.publish(&mut writer, run(1000 * n, 5)).unwrap();
        }
        // As if the reader's fetch-add had been before all of that.
        lane.cursor.0.store(word, Ordering::Relaxed);
        assert_eq!(lane.take(1), None);
    }

    /// Tiny runs, so that readers, the writer and closings meet all the time.
    #[test]
    fn threads_never_get_the_same_id() {
        const THREADS: usize = 8;
        const RUNS: u64 = 60_000;
        let (lane, writer) = Lane::new();
        let writer = Mutex::new((writer, 0_u64));
        let seen: Vec<AtomicU32> = (0..RUNS * 4).map(|_| AtomicU32::new(0)).collect();
        let (refused, closed) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (lane, writer, seen, refused, closed) =
                    (&lane, &writer, &seen, &refused, &closed);
                scope.spawn(move || {
                    let mut last = None;
                    loop {
                        if let Some(run) = lane.take(1 + thread as u32 % 3) {
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
                            lane.close(writer);
                            return;
                        }
                        if lane.left(writer) > 0 {
                            continue;
                        }
                        if *n % 7 == 0 {
                            lane.close(writer);
                            closed.fetch_add(1, Ordering::Relaxed);
                        }
                        let run = IdRun { first: *n * 4, step: 1, count: 1 + (*n % 4) as u32 };
                        *n += 1;
                        lane.publish(writer, run).unwrap();
                    }
                });
            }
        });
        let count = |n| seen.iter().filter(|s| s.load(Ordering::Relaxed) == n).count() as u64;
        let published: u64 = (0..RUNS).map(|n| 1 + n % 4).sum();
        let (once, never) = (count(1), count(0));
        assert_eq!(once + never, RUNS * 4, "an ID was handed out twice");
        assert!(once > published / 2, "nearly every ID is handed out, but only {once} were");
        assert!(refused.into_inner() > RUNS && closed.into_inner() > 0, "the threads never met");
    }
}
