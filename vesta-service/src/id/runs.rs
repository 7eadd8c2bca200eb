//! Short runs of positions, private to each thread.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vesta_intf::{Field, IdError, IdMeta};

use super::gate::Gate;
use crate::sequence::{Claim, within};
use crate::sync::per_thread;

/// Maximum number of positions of a run; it has at most a sixteenth of a tick.
const LENGTH: u64 = 64;
/// Number of machine IDs for which a thread keeps a run.
const KEPT: usize = 8;

/// The rest of a thread's run. Each word is separate: when a word that was just written is read together with
/// its neighbour, the processor stalls.
#[derive(Debug)]
struct Run {
    /// The number of its `Runs`; 0 for none.
    line: Cell<u64>,
    /// The cheap clock reading at which it was taken: the run ends when the reading changes.
    shown: Cell<u64>,
    next: Cell<u64>,
    end: Cell<u64>,
}

impl Run {
    const fn none() -> Self {
        Self {
            line: Cell::new(0),
            shown: Cell::new(0),
            next: Cell::new(0),
            end: Cell::new(0),
        }
    }

    fn words(&self) -> [&Cell<u64>; 4] {
        [&self.line, &self.shown, &self.next, &self.end]
    }

    fn set(&self, values: [u64; 4]) {
        for (word, value) in self.words().into_iter().zip(values) {
            word.set(value);
        }
    }

    fn swap(&self, other: &Self) {
        for (one, other) in self.words().into_iter().zip(other.words()) {
            one.swap(other);
        }
    }
}

per_thread! {
    /// Each `Runs` has a home slot, by its number. Its run is kept elsewhere while the slot holds the run
    /// of another one.
    static RUNS: [Run; KEPT] = [const { Run::none() }; KEPT];
}

/// The runs of one machine ID, of all threads.
#[derive(Debug)]
pub(crate) struct Runs {
    /// Gate for taking a new run.
    pub(crate) gate: Gate,
    /// Unique within the process.
    line: u64,
    home: u8,
    /// Equal to `line` while threads may issue the rest of their runs; 0 afterwards, which no run has. Not a
    /// checker's primitive: a thread that sees the change late issues positions that were its own already.
    open: AtomicU64,
    length: u32,
    /// Counts the positions of dropped runs.
    lost: Arc<AtomicU64>,
}

impl Runs {
    pub(crate) fn new(meta: &IdMeta, lost: Arc<AtomicU64>) -> Self {
        static LINES: AtomicU64 = AtomicU64::new(1);
        let line = LINES.fetch_add(1, Ordering::Relaxed);
        let length = (meta.max(Field::Seq) / 16 + 1).min(LENGTH);
        Self {
            gate: Gate::closed(),
            line,
            home: line.to_le_bytes()[0],
            open: AtomicU64::new(line),
            length: u32::try_from(length).unwrap_or(1),
            lost,
        }
    }

    /// Ends the runs of all threads.
    pub(crate) fn end(&self) {
        // Relaxed: the rest of a thread's run was taken before, and stays its own until it sees this.
        self.open.store(0, Ordering::Relaxed);
    }

    /// As [`end`](Self::end), and also closes the gate to new runs, in the child of a fork.
    pub(crate) fn close_in_child(&self) {
        self.end();
        self.gate.close();
    }

    /// Index of the home slot.
    #[inline(always)]
    fn home(&self) -> usize {
        usize::from(self.home) % KEPT
    }

    #[inline(always)]
    fn is_current(&self, run: &Run, shown: u64) -> bool {
        run.line.get() == self.open.load(Ordering::Relaxed)
            && run.shown.get() == shown
            && run.next.get() < run.end.get()
    }

    /// Takes one position from the thread's run.
    #[inline(always)] // on the path of every ID: a call would be measurable
    pub(crate) fn one(&self, shown: u64) -> Option<u64> {
        RUNS.with(|runs| {
            let run = &runs[self.home()];
            if !self.is_current(run, shown) {
                return None;
            }
            let next = run.next.get();
            run.next.set(next + 1);
            Some(next)
        })
    }

    /// Takes up to `want` positions from the thread's run.
    pub(crate) fn next(&self, shown: u64, want: u32) -> Option<Claim> {
        RUNS.with(|runs| self.next_of(&runs[self.home()], shown, want))
    }

    fn next_of(&self, run: &Run, shown: u64, want: u32) -> Option<Claim> {
        self.is_current(run, shown).then(|| {
            let claim = within(run.next.get(), want, run.end.get());
            run.next.set(claim.end);
            claim
        })
    }

    /// As [`next`](Self::next), wherever the run is kept. If nothing is left, takes a new run with
    /// `take` and returns its first positions.
    #[cold]
    #[inline(never)]
    pub(crate) fn renew(
        &self,
        shown: u64,
        want: u32,
        take: impl Fn(u32) -> Result<Claim, IdError>,
    ) -> Result<Claim, IdError> {
        RUNS.with(|runs| {
            let home = &runs[self.home()];
            let of = |line| runs.iter().find(|run| run.line.get() == line);
            // Moves its own run here, or else moves the run in its slot to a free one.
            if let Some(other) = of(self.line).or_else(|| of(0))
                && home.line.get() != self.line
            {
                home.swap(other);
            }
            if let Some(claim) = self.next_of(home, shown, want) {
                return Ok(claim);
            }
            if home.line.get() == self.line {
                let lost = home.end.get() - home.next.get();
                self.lost.fetch_add(lost, Ordering::Relaxed); // a statistic
            }
            home.set([0; 4]);
            let Claim { start, end } = match take(want.max(self.length)) {
                Err(_) if want == 1 => take(1)?, // one position may be available, but not a run
                taken => taken?,
            };
            let claim = within(start, want, end);
            home.set([self.line, shown, claim.end, end]);
            Ok(claim)
        })
    }
}
