//! The keeper: runs the driver, in a thread or by hand.

#[cfg(all(test, shuttle))]
mod schedules;

use std::sync::Arc;
use std::time::Duration;

use super::{Driver, MachineSlot, RETRY_AFTER};
use crate::sync::{Mutex, thread};

#[derive(Debug)]
enum Runs {
    InThread,
    /// Empty once it is over: what the driver has locked is free then.
    ByHand(Mutex<Option<Box<Driver>>>),
}

/// A driver, run by a thread of its own or by the callers of [`maintain`](Self::maintain).
#[derive(Debug)]
pub(crate) struct Keeper {
    runs: Runs,
    timeout: Duration,
}

impl Keeper {
    /// Runs the driver in a thread that ends when the slot is stopped.
    pub(crate) fn in_thread(driver: Driver, slot: &Arc<MachineSlot>) -> std::io::Result<Self> {
        let timeout = close_timeout(&driver);
        let slot = slot.clone();
        let mut driver = driver;
        thread::Builder::new().name("vesta-keeper".into()).spawn(move || {
            while let Some(pause) = driver.step(&slot) {
                if !pause.is_zero() {
                    slot.sleep(pause);
                }
                if slot.stopping() && pause > Duration::ZERO {
                    // An unanswered release is tried again soon, but never in a tight loop.
                    driver.clock.park(RETRY_AFTER.min(pause));
                }
            }
            drop(driver); // unlocks its files before anybody hears of the end
            slot.end();
        })?;
        Ok(Self { runs: Runs::InThread, timeout })
    }

    /// Leaves the driving to [`maintain`](Self::maintain).
    pub(crate) fn by_hand(driver: Driver) -> Self {
        Self {
            timeout: close_timeout(&driver),
            runs: Runs::ByHand(Mutex::new(Some(Box::new(driver)))),
        }
    }

    /// Does what is due, if no thread does it. Returns how long there is nothing more to do.
    pub(crate) fn maintain(&self, slot: &MachineSlot) -> Option<Duration> {
        let Runs::ByHand(driver) = &self.runs else { return None };
        let mut running = driver.lock();
        while let Some(driver) = running.as_mut() {
            match driver.step(slot) {
                Some(Duration::ZERO) => {}
                // A search ends within this call.
                Some(pause) if driver.machine.is_searching() => driver.clock.park(pause),
                Some(pause) => return Some(pause),
                None => *running = None,
            }
        }
        slot.end();
        None
    }

    /// Seals the machine ID and gives the record back, as far as the store answers in time. Whatever
    /// happens, nothing is issued afterwards and the durable bound covers what was.
    pub(crate) fn close(&self, slot: &MachineSlot) {
        slot.request_stop();
        slot.current().seal("it was shut down");
        let over = match &self.runs {
            Runs::InThread => slot.wait_until_over(self.timeout),
            Runs::ByHand(driver) => {
                let over = self.maintain(slot).is_none();
                *driver.lock() = None;
                over
            }
        };
        if !over {
            tracing::warn!("the store did not confirm the release; the bound stays where it is");
        }
    }
}

/// The longest that a release may take: one request and its repetition.
fn close_timeout(driver: &Driver) -> Duration {
    driver.machine.plan.timing.request_timeout * 2 + Duration::from_millis(500)
}
