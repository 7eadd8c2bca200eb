//! Group commit: changes that arrive while others are written follow together, in one transaction with one sync. A
//! caller that is alone writes at once. While many come one after another, each transaction waits a little for more.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::{Put, StoreError};

type Answer = Result<Vec<bool>, StoreError>;

/// Changes of one caller, and their answer.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) area: String,
    pub(super) puts: Vec<Put>,
    answer: OnceLock<Answer>,
}

#[derive(Debug, Default)]
pub(super) struct Group {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Arc<Job>>,
    /// True while a caller writes its changes and those of others.
    is_writing: bool,
    pace: Pace,
}

/// Spaces transactions that come one after another: most of a change's cost is that of its transaction.
#[derive(Debug, Default)]
struct Pace {
    /// Moment at which all transactions so far would be over if each took [`EACH`](Self::EACH).
    over: Duration,
}

impl Pace {
    const EACH: Duration = Duration::from_millis(10);
    /// So many may come at once without a pause: more than a start needs.
    const AT_ONCE: u32 = 16;

    /// The pause before the next transaction, and counts that.
    fn pause(&mut self, now: Duration) -> Duration {
        let ahead = self.over.saturating_sub(now);
        self.over = now + ahead + Self::EACH;
        ahead.saturating_sub(Self::EACH * Self::AT_ONCE)
    }
}

impl Group {
    /// Puts changes together with those of other callers. The caller whose turn it is writes all that wait by
    /// `write`, which returns the answers in order, or one error for all.
    pub(super) fn put(
        &self,
        area: &str,
        puts: &[Put],
        write: impl FnOnce(&[Arc<Job>]) -> Result<Vec<Vec<bool>>, StoreError>,
    ) -> Answer {
        let own = Arc::new(Job {
            area: area.to_owned(),
            puts: puts.to_vec(),
            answer: OnceLock::new(),
        });
        let mut state = self.state();
        state.waiting.push(own.clone());
        let others_write = |state: &mut State| state.is_writing && own.answer.get().is_none();
        let waited = self.changed.wait_while(state, others_write);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = own.answer.get() {
            return answer.clone();
        }
        state.is_writing = true;
        let clock = SystemClock::new();
        let pause = state.pace.pause(clock.monotonic());
        drop(state);
        if !pause.is_zero() {
            clock.park(pause);
        }
        let turn = Turn {
            group: self,
            jobs: mem::take(&mut self.state().waiting),
        };
        turn.answer(&write(&turn.jobs));
        own.answer.get().cloned().expect("it was in this turn")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of callers that wait while another one writes.
    #[cfg(test)]
    fn waiting(&self) -> Option<usize> {
        let state = self.state();
        state.is_writing.then_some(state.waiting.len())
    }
}

/// The changes of one transaction. Its end lets the next caller write, also after a panic.
struct Turn<'a> {
    group: &'a Group,
    jobs: Vec<Arc<Job>>,
}

impl Turn<'_> {
    /// Answers each caller. If the outcome of the transaction is unknown, it is unknown to each.
    fn answer(&self, written: &Result<Vec<Vec<bool>>, StoreError>) {
        for (at, job) in self.jobs.iter().enumerate() {
            let answer = written.as_ref().map(|done| done[at].clone());
            let _ = job.answer.set(answer.map_err(Clone::clone)); // it may have one after a panic only
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let cause = std::io::Error::other("the writing thread panicked");
            self.answer(&Err(StoreError::unavailable("unknown outcome", cause)));
        }
        self.group.state().is_writing = false;
        self.group.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
