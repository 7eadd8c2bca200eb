//! One store and the connections to it, each with a fate of its own for what is sent over it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use vesta_service::{
    Cas, Clock as _, Expect, LeaseStore, ManualClock, MemoryStore, Namespace, Record, StoreError,
    Timing,
};

use crate::planted::Flaw;

/// What becomes of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It never arrives.
    Lost,
    /// It arrives and is done; the reply does not come back.
    ReplyLost,
    /// The sender gives up; some time later it arrives all the same.
    Late,
    /// It takes so many milliseconds there, and as many back.
    Slow(u16),
    /// The store refuses for good.
    Permanent,
}

/// The windows of one claim, as the store saw them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) service: usize,
    pub(crate) epoch: u64,
    pub(crate) owner: u128,
    /// The bound that was found: everything the claim issues lies at or above it.
    pub(crate) base: u64,
    /// The bound that its owner was told. Everything it issues lies below it.
    pub(crate) told: u64,
    pub(crate) released_at: Option<u64>,
}

struct Late {
    machine: u64,
    service: usize,
    expect: Expect,
    new: Record,
}

/// The store itself, and a protocol of what was done in it.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) memory: MemoryStore,
    pub(crate) flaw: Flaw,
    may_forget: bool,
    /// By machine ID, oldest first.
    pub(crate) windows: Mutex<BTreeMap<u64, Vec<Window>>>,
    floor: AtomicU64,
    late: Mutex<Vec<Late>>,
    /// Claims and releases since the last look.
    changes: Mutex<Vec<(u64, Window)>>,
    /// The first broken rule of the protocol.
    pub(crate) broken: Mutex<Option<String>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the store")
    }
}

pub(crate) const NAMESPACE: &str = "default";

impl Shared {
    pub(crate) fn new(flaw: Flaw, may_forget: bool) -> Self {
        Self { flaw, may_forget, ..Self::default() }
    }

    pub(crate) fn record(&self, machine: u64) -> Option<Record> {
        self.memory.read(NAMESPACE, machine).ok().flatten()
    }

    fn apply(
        &self,
        service: usize,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        let before = self.record(machine);
        let extends = new.epoch == expect.epoch && !new.released;
        let new = &match self.flaw {
            Flaw::StoreReleasesTooMuch if new.released => {
                Record { bound: new.bound.saturating_sub(2), ..new.clone() }
            }
            _ => new.clone(),
        };
        let outcome = match self.memory.cas(NAMESPACE, machine, expect, new)? {
            Cas::Conflict(current) if self.flaw == Flaw::StoreIgnoresTheExpected => {
                self.memory.cas(NAMESPACE, machine, &current.expect(), new)?
            }
            outcome => outcome,
        };
        if outcome == Cas::Done {
            self.note(service, machine, before, new);
            if let (Flaw::StoreForgetsExtensions, true) = (self.flaw, extends) {
                let older = Record { bound: expect.bound, ..new.clone() };
                self.memory.cas(NAMESPACE, machine, &new.expect(), &older)?;
            }
        }
        Ok(outcome)
    }

    /// Checks what a change did to a record: invariants 1 and 2 of the protocol.
    fn note(&self, service: usize, machine: u64, before: Option<Record>, new: &Record) {
        let before = before.unwrap_or_default();
        let mut windows = self.windows.lock();
        let windows = windows.entry(machine).or_default();
        let owned = windows.last().is_some_and(|w| w.epoch == new.epoch && w.service == service);
        let flaw = if new.epoch == before.epoch + 1 {
            let base = before.bound.max(self.floor.load(Ordering::Relaxed));
            let (epoch, owner) = (new.epoch, new.owner);
            let fresh = Window { service, epoch, owner, base, told: 0, released_at: None };
            windows.push(fresh);
            self.changes.lock().push((machine, fresh));
            (new.bound < before.bound).then_some("a claim lowered the bound")
        } else if new.epoch != before.epoch {
            Some("an epoch was left out or came again")
        } else if !owned {
            Some("changed by somebody who does not hold it")
        } else if new.released {
            let window = windows.last_mut().expect("owned");
            window.released_at = Some(new.bound);
            self.changes.lock().push((machine, *window));
            (new.bound > before.bound).then_some("a release raised the bound")
        } else {
            (new.bound < before.bound).then_some("an extension lowered the bound")
        };
        if let Some(flaw) = flaw {
            let text = format!("machine {machine}: {flaw}: {before:?} -> {new:?}");
            self.broken.lock().get_or_insert(text);
        }
    }

    /// The owner hears of a bound.
    fn tell(&self, service: usize, machine: u64, new: &Record) {
        let mut windows = self.windows.lock();
        let window = windows
            .get_mut(&machine)
            .and_then(|all| all.iter_mut().rfind(|w| w.service == service && w.epoch == new.epoch));
        if let Some(window) = window
            && !new.released
        {
            window.told = window.told.max(new.bound);
        }
    }

    pub(crate) fn take_changes(&self) -> Vec<(u64, Window)> {
        std::mem::take(&mut *self.changes.lock())
    }

    pub(crate) fn raise_floor(&self, floor: u64) {
        if let Ok(floor) = self.memory.raise_floor(NAMESPACE, floor) {
            self.floor.store(floor, Ordering::Relaxed);
        }
    }

    /// A request that was believed lost arrives.
    pub(crate) fn deliver(&self, which: usize) {
        let mut late = self.late.lock();
        if late.is_empty() {
            return;
        }
        let which = which % late.len();
        let Late { machine, service, expect, new } = late.swap_remove(which);
        drop(late);
        let _nobody_waits = self.apply(service, machine, &expect, &new);
    }
}

/// The way to the store of one service.
#[derive(Debug)]
pub(crate) struct Link {
    shared: Arc<Shared>,
    pub(crate) service: usize,
    clock: ManualClock,
    timing: Timing,
    pub(crate) cut: AtomicBool,
    pub(crate) fates: Mutex<VecDeque<Fate>>,
    failed_for_good: AtomicBool,
    requests: AtomicU64,
}

fn no_answer() -> StoreError {
    StoreError::unavailable("no answer", std::io::Error::other("timed out"))
}

impl Link {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        service: usize,
        clock: ManualClock,
        timing: Timing,
    ) -> Self {
        Self {
            shared: shared.clone(),
            service,
            clock,
            timing,
            cut: AtomicBool::new(false),
            fates: Mutex::default(),
            failed_for_good: AtomicBool::new(false),
            requests: AtomicU64::new(0),
        }
    }

    pub(crate) fn has_failed_for_good(&self) -> bool {
        self.failed_for_good.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn healthy(&self) -> bool {
        !self.cut.load(Ordering::Relaxed)
            && self.fates.lock().is_empty()
            && !self.failed_for_good.load(Ordering::Relaxed)
    }

    fn fate(&self) -> Option<Fate> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if self.cut.load(Ordering::Relaxed) {
            return Some(Fate::Lost);
        }
        if self.failed_for_good.load(Ordering::Relaxed) {
            return Some(Fate::Permanent);
        }
        self.fates.lock().pop_front()
    }

    /// A request that changes nothing.
    fn ask<T>(&self, answer: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        match self.fate() {
            None => answer(),
            Some(Fate::Slow(millis)) => {
                self.clock.park(2 * Duration::from_millis(millis.into()));
                answer()
            }
            Some(Fate::Permanent) => self.fail_for_good(),
            Some(_) => Err(no_answer()),
        }
    }

    fn fail_for_good<T>(&self) -> Result<T, StoreError> {
        self.failed_for_good.store(true, Ordering::Relaxed);
        Err(StoreError::permanent("the store is damaged"))
    }
}

impl LeaseStore for Link {
    fn describe(&self) -> String {
        "the store".into()
    }

    fn timing(&self) -> Timing {
        self.timing
    }

    fn may_forget(&self) -> bool {
        self.shared.may_forget
    }

    fn open_namespace(&self, namespace: &str, fingerprint: &str) -> Result<Namespace, StoreError> {
        self.ask(|| self.shared.memory.open_namespace(namespace, fingerprint))
    }

    fn list(&self, namespace: &str) -> Result<Vec<(u64, Record)>, StoreError> {
        self.ask(|| self.shared.memory.list(namespace))
    }

    fn read(&self, namespace: &str, machine: u64) -> Result<Option<Record>, StoreError> {
        self.ask(|| self.shared.memory.read(namespace, machine))
    }

    fn cas(
        &self,
        _namespace: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        let fate = self.fate();
        let way = match fate {
            Some(Fate::Slow(millis)) => Duration::from_millis(millis.into()),
            _ => Duration::ZERO,
        };
        match fate {
            Some(Fate::Lost) => return Err(no_answer()),
            Some(Fate::Permanent) => return self.fail_for_good(),
            Some(Fate::Late) => {
                let (expect, new) = (*expect, new.clone());
                let late = Late { machine, service: self.service, expect, new };
                self.shared.late.lock().push(late);
                return Err(no_answer());
            }
            _ => self.clock.park(way),
        }
        let outcome = self.shared.apply(self.service, machine, expect, new)?;
        if fate == Some(Fate::ReplyLost) {
            return Err(no_answer());
        }
        self.clock.park(way);
        match &outcome {
            Cas::Done => self.shared.tell(self.service, machine, new),
            Cas::Conflict(current) if current.attempt == new.attempt => {
                self.shared.tell(self.service, machine, current);
            }
            Cas::Conflict(_) => {}
        }
        Ok(outcome)
    }
}
