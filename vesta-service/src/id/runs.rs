//! Short runs of positions that each thread has for itself.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vesta_intf::{Field, IdError, IdMeta};

use super::gate::Gate;
use crate::sequence::{Claim, within};
use crate::sync::per_thread;

/// A run has at most so many positions, and no more than a sixteenth of a tick.
const LENGTH: u64 = 64;
/// Lines of which a thread keeps a run.
const KEPT: usize = 8;

/// The rest of a run that a thread has. Each word by itself: where one that was just written is read together
/// with its neighbour, the processor waits for it.
#[derive(Debug)]
struct Run {
    /// The number of its line; 0 for none.
    line: Cell<u64>,
    /// The glance at the clock at which it was taken: it ends when another shows.
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
    /// Each line has a home among them by its number. A run stands elsewhere while its home has another's.
    static RUNS: [Run; KEPT] = [const { Run::none() }; KEPT];
}

/// The runs of one line, of all threads.
#[derive(Debug)]
pub(crate) struct Runs {
    /// To a new run.
    pub(crate) gate: Gate,
    /// No two lines of a process have the same.
    line: u64,
    home: u8,
    /// The line while it gives out what threads have left; 0 afterwards, which no run is of. Not a checker's
    /// primitive: a thread that sees it late gives out positions that were its own already.
    open: AtomicU64,
    length: u32,
    /// AtomicU64s positions of runs that were dropped.
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

    /// Ends what every thread has left.
    pub(crate) fn end(&self) {
        // Relaxed: what a thread has left was taken before, and stays its own until it sees this.
        self.open.store(0, Ordering::Relaxed);
    }

    /// As [`end`](Self::end), and the way to new runs, in the child of a fork.
    pub(crate) fn close_in_child(&self) {
        self.end();
        self.gate.close();
    }

    /// Where the line's runs stand.
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

    /// One position of what the thread has left.
    #[inline(always)] // on the way of every ID: a call would show
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

    /// Up to `want` positions of what the thread has left.
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

    /// As [`next`](Self::next), wherever the run stands. Without anything left: the first positions of a
    /// new run, which `take` takes.
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
            // Its own run, or else room for that of the line that is here.
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
                Err(_) if want == 1 => take(1)?, // there may be room for one, but not for a run
                taken => taken?,
            };
            let claim = within(start, want, end);
            home.set([self.line, shown, claim.end, end]);
            Ok(claim)
        })
    }
}
