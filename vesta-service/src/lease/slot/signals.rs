//! Signals: callers wake the keeper, and it announces its end.

use std::time::Duration;

use crate::lease::Journal;
use crate::sync::{Condvar, Mutex};

/// The signals between all slots of a service and their keeper.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    state: Mutex<SignalState>,
    /// Wakes the keeper, and announces the end.
    changed: Condvar,
    /// The events so far.
    pub(crate) journal: Journal,
}

#[derive(Debug, Default)]
struct SignalState {
    /// There may be something to do.
    woken: bool,
    /// The keeper has ended.
    over: bool,
}

impl Signals {
    /// Has the keeper look at once whether there is something to do.
    pub(super) fn wake(&self) {
        let mut state = self.state.lock();
        // Once is enough: a thousand slots of one caller may ask for it.
        if !state.woken {
            state.woken = true;
            self.changed.notify_all();
        }
    }

    /// Sleeps for `duration` or until the keeper is woken, which may have happened already.
    pub(super) fn sleep(&self, duration: Duration) {
        let mut state = self.state.lock();
        if !state.woken {
            self.changed.wait_for(&mut state, duration);
        }
        state.woken = false;
    }

    pub(super) fn end(&self) {
        self.state.lock().over = true;
        self.changed.notify_all();
    }

    /// Waits until the keeper has ended; `false` if it takes longer than `limit`.
    pub(crate) fn wait_until_over(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        self.changed
            .wait_while_for(&mut state, |state| !state.over, limit);
        state.over
    }
}
