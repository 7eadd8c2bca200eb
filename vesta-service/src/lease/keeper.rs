//! The keeper: runs the driver, in a thread or by hand.

#[cfg(all(test, shuttle))]
mod schedules;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::{Driver, MachineSlot, RETRY_AFTER};
use crate::sync::{Mutex, thread};
use crate::wait::Drive;

/// Does work of a driver. After a panic nobody knows what state that is in: the lease in force is
/// sealed, so that its health says so and only a restart goes on.
fn sealing_on_panic<T>(slot: &MachineSlot, work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    if done.is_err() {
        let reason = "its keeper ended by a panic, which is a fault of this program";
        tracing::error!("no more IDs: {reason}");
        slot.leases.current().seal(reason);
    }
    done.ok()
}

/// A driver, run by a thread of its own or by the callers of [`maintain`](Self::maintain).
#[derive(Debug)]
pub(crate) struct Keeper {
    /// The driver, unless a thread has it. Empty once it is over: what it has locked is free then.
    by_hand: Mutex<Option<Box<Driver>>>,
    /// The longest that a release may take: one request and its repetition.
    timeout: Duration,
}

impl Keeper {
    /// Runs the driver in a thread that ends when the slot is stopped, or leaves it to
    /// [`maintain`](Self::maintain).
    pub(crate) fn start(
        mut driver: Driver,
        slot: &Arc<MachineSlot>,
        drive: Drive,
    ) -> std::io::Result<Self> {
        let request_timeout = driver.machine.plan.timing.request_timeout;
        let timeout = request_timeout * 2 + Duration::from_millis(500);
        if drive == Drive::ByHand {
            return Ok(Self { by_hand: Mutex::new(Some(Box::new(driver))), timeout });
        }
        let slot = slot.clone();
        thread::Builder::new().name("vesta-keeper".into()).spawn(move || {
            sealing_on_panic(&slot, || {
                while let Some(pause) = driver.step(&slot) {
                    if pause.is_zero() {
                        continue;
                    }
                    slot.next_attempt_at(driver.clock().monotonic().saturating_add(pause));
                    slot.sleep(pause);
                    if slot.stopping() {
                        // An unanswered release is tried again soon, but never in a tight loop.
                        driver.clock().park(RETRY_AFTER.min(pause));
                    }
                }
            });
            drop(driver); // unlocks its files before anybody hears of the end
            slot.end();
        })?;
        Ok(Self { by_hand: Mutex::default(), timeout })
    }

    /// Does what is due, if no thread does it. Returns how long there is nothing more to do.
    pub(crate) fn maintain(&self, slot: &MachineSlot) -> Option<Duration> {
        let mut running = self.by_hand.lock();
        while let Some(driver) = running.as_mut() {
            match sealing_on_panic(slot, || driver.step(slot)).flatten() {
                Some(Duration::ZERO) => {}
                // A search ends within this call.
                Some(pause) if driver.machine.is_searching() => driver.clock().park(pause),
                Some(pause) => {
                    slot.next_attempt_at(driver.clock().monotonic().saturating_add(pause));
                    return Some(pause);
                }
                None => {
                    *running = None;
                    slot.end();
                }
            }
        }
        None
    }

    /// Leaves the driver as it is, files and connections too: in the child of a fork they are shared with
    /// the parent, and closing them could be heard there.
    pub(crate) fn forget(&self) {
        std::mem::forget(self.by_hand.lock().take());
    }

    /// Gives the record of a slot back that was asked to stop and is sealed, as far as the store
    /// answers in time. Whatever happens, the durable bound covers what was issued.
    pub(crate) fn close(&self, slot: &MachineSlot) {
        let unanswered = self.maintain(slot).is_some();
        if unanswered {
            *self.by_hand.lock() = None;
            slot.end();
        }
        if unanswered || !slot.wait_until_over(self.timeout) {
            tracing::warn!("the store did not confirm the release; the bound stays where it is");
        }
    }
}
