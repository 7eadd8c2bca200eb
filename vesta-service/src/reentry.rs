//! Calls in the middle of another call of the same thread: from a signal handler, or from a subscriber of the events
//! that the other call logs. Outside of its fastest path a call holds locks, and the inner one would wait for them,
//! and so for itself.

use std::cell::Cell;

use vesta_intf::IdError;

use crate::sync::per_thread;

per_thread! {
    static INSIDE: Cell<bool> = Cell::new(false);
}

/// The calling thread is inside a call, until this is dropped.
pub(crate) struct Inside(());

impl Inside {
    /// # Errors
    /// [`IdError::Reentered`] if it already is.
    pub(crate) fn enter() -> Result<Self, IdError> {
        match INSIDE.with(|inside| inside.replace(true)) {
            true => Err(IdError::Reentered),
            false => Ok(Self(())),
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(false));
    }
}
