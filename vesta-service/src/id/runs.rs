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
/// A thread keeps the runs of so many lines, those that it used last.
const KEPT: usize = 8;

/// The rest of a run that a thread has.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The number of its line; 0 for none.
    line: u64,
    /// The glance at the clock at which it was taken: it ends when another shows.
    shown: u64,
    next: u64,
    end: u64,
}

impl Run {
    const NONE: Self = Self {
        line: 0,
        shown: 0,
        next: 0,
        end: 0,
    };
}

per_thread! {
    /// The line that was used last stands first.
    static RUNS: [Cell<Run>; KEPT] = [const { Cell::new(Run::NONE) }; KEPT];
}

/// The runs of one line, of all threads.
#[derive(Debug)]
pub(crate) struct Runs {
    /// To a new run.
    pub(crate) gate: Gate,
    /// No two lines of a process have the same; 0 in the child of a fork, where no run is this line's.
    line: AtomicU64,
    length: u32,
    /// Counts positions of runs that were dropped.
    lost: Arc<AtomicU64>,
}

impl Runs {
    pub(crate) fn new(meta: &IdMeta, lost: Arc<AtomicU64>) -> Self {
        static LINES: AtomicU64 = AtomicU64::new(1);
        let line = LINES.fetch_add(1, Ordering::Relaxed).into();
        let length = (meta.max(Field::Seq) / 16 + 1).min(LENGTH);
        Self {
            gate: Gate::closed(),
            line,
            length: u32::try_from(length).unwrap_or(1),
            lost,
        }
    }

    /// Ends what every thread has left, in the child of a fork.
    pub(crate) fn close_in_child(&self) {
        self.line.store(0, Ordering::Relaxed);
        self.gate.close();
    }

    fn line(&self) -> u64 {
        self.line.load(Ordering::Relaxed) // it only changes where no other thread is
    }

    /// Up to `want` positions of what the thread has left, if this is the line it used last.
    #[inline]
    pub(crate) fn next(&self, shown: u64, want: u32) -> Option<Claim> {
        RUNS.with(|[kept, ..]| {
            let run = kept.get();
            if run.line != self.line() || run.shown != shown || run.next >= run.end {
                return None;
            }
            let claim = within(run.next, want, run.end);
            kept.set(Run {
                next: claim.end,
                ..run
            });
            Some(claim)
        })
    }

    /// As [`next`](Self::next), after any other line. Without anything left: the first positions of a
    /// new run, which `take` takes.
    #[cold]
    #[inline(never)]
    pub(crate) fn renew(
        &self,
        shown: u64,
        want: u32,
        is_sealed: bool,
        take: impl Fn(u32) -> Result<Claim, IdError>,
    ) -> Result<Claim, IdError> {
        RUNS.with(|runs| {
            let at = runs.iter().position(|kept| kept.get().line == self.line());
            let at = at.unwrap_or(KEPT - 1);
            runs[..=at]
                .windows(2)
                .rev()
                .for_each(|pair| pair[0].swap(&pair[1]));
            if let Some(claim) = self.next(shown, want).filter(|_| !is_sealed) {
                return Ok(claim);
            }
            let old = runs[0].replace(Run::NONE);
            if old.line == self.line() {
                self.lost.fetch_add(old.end - old.next, Ordering::Relaxed); // a statistic
            }
            let Claim { start, end } = match take(want.max(self.length)) {
                Err(_) if want == 1 => take(1)?, // there may be room for one, but not for a run
                taken => taken?,
            };
            let claim = within(start, want, end);
            runs[0].set(Run {
                line: self.line(),
                shown,
                next: claim.end,
                end,
            });
            Ok(claim)
        })
    }
}
