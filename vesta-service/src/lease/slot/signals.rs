//! Signals: callers wake the keeper; the keeper announces its end.

use std::time::Duration;

use crate::lease::Journal;
use crate::sync::{Condvar, Mutex};

/// Signals between all slots of a service and their keeper.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    state: Mutex<SignalState>,
    /// Wakes the keeper, and announces the end.
    changed: Condvar,
    /// Journal of events.
    pub(crate) journal: Journal,
}

#[derive(Debug, Default)]
struct SignalState {
    /// True if there may be something to do.
    woken: bool,
    /// True once the keeper has ended.
    over: bool,
}

impl Signals {
    /// Makes the keeper check at once whether anything is due.
    pub(super) fn wake(&self) {
        let mut state = self.state.lock();
        // One notification is enough: a thousand slots of one caller may ask for it.
        if !state.woken {
            state.woken = true;
            self.changed.notify_all();
        }
    }

    /// Sleeps for `duration` or until the keeper is woken. A wake-up before the call counts, too.
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
