//! Keeper: does the rounds of a service, in one thread or by hand.

#[cfg(all(test, shuttle))]
mod schedules;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::machine::MachineSlot;
use super::rounds::Rounds;
use super::signals::Signals;
use crate::sync::{Mutex, thread};
use crate::wait::Drive;
use crate::wait::RETRY_AFTER;

/// Does a round. After a panic the state of the drivers is unknown, so all leases in force are sealed: the
/// service then reports itself unhealthy until it is restarted.
fn sealing_on_panic<T>(slots: &[Arc<MachineSlot>], work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    if done.is_err() {
        let reason = "its keeper ended by a panic, which is a fault of this program";
        tracing::error!("no more IDs: {reason}");
        for slot in slots {
            slot.leases.current().seal(reason);
        }
    }
    done.ok()
}

/// Keeper of all slots' rounds, which are done by one thread or by the callers of
/// [`maintain`](Self::maintain).
#[derive(Debug)]
pub(crate) struct Keeper {
    /// Rounds, unless a thread does them. Empty once they are over, so that their locks are released.
    by_hand: Mutex<Option<Box<Rounds>>>,
    slots: Vec<Arc<MachineSlot>>,
    signals: Arc<Signals>,
    /// Maximum time for a release: one request and its repetition.
    timeout: Duration,
}

impl Keeper {
    /// Does the rounds in a thread that ends when the slots are stopped, or leaves them to
    /// [`maintain`](Self::maintain).
    pub(crate) fn start(mut rounds: Rounds, drive: Drive) -> std::io::Result<Self> {
        let request_timeout = rounds.plan().timing.request_timeout;
        let timeout = request_timeout * 2 + Duration::from_millis(500);
        let (slots, signals) = (rounds.slots(), rounds.signals().clone());
        if drive == Drive::ByHand {
            let by_hand = Mutex::new(Some(Box::new(rounds)));
            return Ok(Self {
                by_hand,
                slots,
                signals,
                timeout,
            });
        }
        let this = Self {
            by_hand: Mutex::default(),
            slots,
            signals,
            timeout,
        };
        let (slots, signals) = (this.slots.clone(), this.signals.clone());
        thread::Builder::new()
            .name("vesta-keeper".into())
            .spawn(move || {
                crate::os::prepare_barrier(); // here, because it takes milliseconds
                sealing_on_panic(&slots, || {
                    while let Some(pause) = rounds.round() {
                        if pause.is_zero() {
                            continue;
                        }
                        signals.sleep(pause);
                        if slots[0].stopping() {
                            // An unanswered release is retried soon, but never in a tight loop.
                            rounds.clock().park(RETRY_AFTER.min(pause));
                        }
                    }
                });
                drop(rounds); // unlocks their files before the end is announced
                end(&slots, &signals);
            })?;
        Ok(this)
    }

    /// Slots, in a fixed order.
    pub(crate) fn slots(&self) -> &[Arc<MachineSlot>] {
        &self.slots
    }

    /// Does what is due, if no thread does it. Returns the time until more is due.
    pub(crate) fn maintain(&self) -> Option<Duration> {
        let mut running = self.by_hand.lock();
        while let Some(rounds) = running.as_mut() {
            match sealing_on_panic(&self.slots, || rounds.round()).flatten() {
                Some(Duration::ZERO) => {}
                // A search ends within this call.
                Some(pause) if rounds.are_searching() => rounds.clock().park(pause),
                Some(pause) => return Some(pause),
                None => {
                    *running = None;
                    end(&self.slots, &self.signals);
                }
            }
        }
        None
    }

    /// Leaks the rounds, with their files and connections. In the child of a fork these are shared with the
    /// parent, which could notice if they were closed.
    pub(crate) fn forget(&self) {
        std::mem::forget(self.by_hand.lock().take());
    }

    /// Releases the records of slots that were asked to stop and are sealed, as far as the store answers in
    /// time. Whatever happens, the durable bounds cover what was issued.
    pub(crate) fn close(&self) {
        let unanswered = self.maintain().is_some();
        if unanswered {
            *self.by_hand.lock() = None;
            end(&self.slots, &self.signals);
        }
        if unanswered || !self.wait_until_over(self.timeout) {
            tracing::warn!("the store did not confirm the release; the bound is not lowered");
        }
    }

    /// Waits until all slots are given up; `false` if that takes longer than `limit`.
    pub(crate) fn wait_until_over(&self, limit: Duration) -> bool {
        self.signals.wait_until_over(limit)
    }
}

fn end(slots: &[Arc<MachineSlot>], signals: &Signals) {
    for slot in slots {
        slot.end();
    }
    signals.end();
}
