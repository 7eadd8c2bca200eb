//! The store that all hosts share: its records, what it forgets, and what arrives late.

mod windows;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use vesta_service::{Cas, Expect, Namespace, Record};
use vesta_testkit::Rng;

use super::counts::Counts;
use super::planted::Planted;
use super::time::Time;
pub(crate) use windows::Window;
pub(crate) use wire::{Sender, Wire};

/// Store and network conditions: in so many of a hundred cases a request fails in this way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Weather {
    pub(crate) down_until: u64,
    pub(crate) refused: u64,
    pub(crate) reply_lost: u64,
    /// Reported as failed, done later: seconds or hours.
    pub(crate) late: u64,
    /// Done, and done again later.
    pub(crate) twice: u64,
    pub(crate) slow: u64,
    /// A read shows what was so before the latest changes of others.
    pub(crate) stale: u64,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) time: Arc<Time>,
    pub(crate) may_forget: bool,
    pub(crate) planted: Option<Planted>,
    processes: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rng: Rng,
    spaces: BTreeMap<String, Space>,
    weather: Weather,
    late: Vec<Late>,
    counts: Counts,
    /// The first change that broke a rule of the records.
    flaw: Option<String>,
}

#[derive(Debug)]
struct Space {
    meta: Namespace,
    records: BTreeMap<u64, Record>,
    changes: Vec<Change>,
    /// Changes before this one cannot be undone or be seen as not yet done.
    settled: usize,
    windows: windows::Windows,
    /// It was wiped once: what comes late may lie below what was granted.
    wiped: bool,
    /// Machine IDs released, and at which position.
    released: Vec<(u64, u64)>,
}

#[derive(Debug)]
struct Change {
    at: u64,
    by: Sender,
    machine: u64,
    before: Option<Record>,
}

#[derive(Debug)]
struct Late {
    due: u64,
    by: Sender,
    namespace: String,
    machine: u64,
    expect: Expect,
    new: Record,
}

impl Shared {
    pub(crate) fn new(
        time: Arc<Time>,
        rng: Rng,
        may_forget: bool,
        planted: Option<Planted>,
    ) -> Arc<Self> {
        let state = State {
            rng,
            spaces: BTreeMap::new(),
            weather: Weather::default(),
            late: Vec::new(),
            counts: Counts::default(),
            flaw: None,
        };
        let processes = AtomicU64::new(0);
        Arc::new(Self { time, may_forget, planted, processes, state: Mutex::new(state) })
    }

    pub(crate) fn weather(&self, weather: Weather) {
        self.state.lock().weather = weather;
    }

    pub(crate) fn counts(&self) -> Counts {
        self.state.lock().counts.clone()
    }

    pub(crate) fn flaw(&self) -> Option<String> {
        self.state.lock().flaw.take()
    }

    /// The window of this process that a position of a machine ID lies in, as far as the process was
    /// told of it; the latest one if it lies in none.
    pub(crate) fn window(&self, by: Sender, namespace: &str, machine: u64, at: u64) -> Window {
        let state = self.state.lock();
        let Some(space) = state.spaces.get(namespace) else { return Window::default() };
        let mut window = space.windows.find(by, machine, at);
        let current = space.records.get(&machine).filter(|record| record.owner == window.owner);
        if let (Some(record), false) = (current, self.may_forget || space.wiped) {
            window.told = window.told.min(record.bound);
        }
        window
    }

    /// True if the record of a machine ID is still as this process claimed it.
    pub(crate) fn holds(&self, by: Sender, namespace: &str, machine: u64) -> bool {
        let state = self.state.lock();
        let Some(space) = state.spaces.get(namespace) else { return false };
        let owner = space.windows.find(by, machine, u64::MAX).owner;
        owner != 0 && space.records.get(&machine).is_some_and(|record| record.owner == owner)
    }

    /// Up to where any line was ever granted.
    pub(crate) fn highest_grant(&self, namespace: &str) -> u64 {
        let state = self.state.lock();
        state.spaces.get(namespace).map_or(0, |space| space.windows.highest_grant())
    }

    pub(crate) fn record(&self, namespace: &str, machine: u64) -> Option<Record> {
        self.state.lock().spaces.get(namespace)?.records.get(&machine).cloned()
    }

    pub(crate) fn floor(&self, namespace: &str) -> u64 {
        self.state.lock().spaces.get(namespace).map_or(0, |space| space.meta.floor)
    }

    /// Takes the releases since the last call: machine ID and position.
    pub(crate) fn released(&self, namespace: &str) -> Vec<(u64, u64)> {
        let mut state = self.state.lock();
        let space = state.spaces.get_mut(namespace);
        space.map(|space| std::mem::take(&mut space.released)).unwrap_or_default()
    }

    /// Does what is late and due by now; with `all`, what is due later, too.
    pub(crate) fn deliver(&self, all: bool) {
        let mut state = self.state.lock();
        let now = if all { u64::MAX } else { self.time.now() };
        state.deliver(now, self);
    }

    /// Somebody who is not in the simulation takes a record over, and issues nothing.
    pub(crate) fn steal(&self, namespace: &str, machine: u64) -> bool {
        let mut state = self.state.lock();
        let owner = u128::from(state.rng.bits()) << 1 | 1;
        let attempt = state.rng.bits() >> 1;
        let Some(record) = state.spaces.get(namespace).and_then(|s| s.records.get(&machine)) else {
            return false;
        };
        let new =
            Record { epoch: record.epoch + 1, owner, attempt, released: false, ..record.clone() };
        let expect = record.expect();
        state.apply(Sender::STRANGER, namespace, machine, &expect, &new, self);
        true
    }

    /// Forgets the changes of the last so many nanoseconds.
    pub(crate) fn roll_back(&self, namespace: &str, nanos: u64) -> usize {
        let mut state = self.state.lock();
        let since = self.time.now().saturating_sub(nanos);
        let Some(space) = state.spaces.get_mut(namespace) else { return 0 };
        let mut undone = 0;
        while space.changes.last().is_some_and(|change| change.at >= since) {
            let Some(Change { machine, before, .. }) = space.changes.pop() else { break };
            match before {
                Some(record) => space.records.insert(machine, record),
                None => space.records.remove(&machine),
            };
            undone += 1;
        }
        space.settled = space.changes.len();
        undone
    }

    /// Forgets everything.
    pub(crate) fn wipe(&self, namespace: &str) -> bool {
        let mut state = self.state.lock();
        let uuid = u128::from(state.rng.bits()) << 1 | 1;
        let Some(space) = state.spaces.get_mut(namespace) else { return false };
        space.meta.uuid = uuid;
        space.meta.floor = 0;
        space.wiped = true;
        space.records.clear();
        space.changes.clear();
        space.settled = 0;
        true
    }

    pub(crate) fn raise_floor(&self, namespace: &str, floor: u64) {
        let mut state = self.state.lock();
        if let Some(space) = state.spaces.get_mut(namespace) {
            space.meta.floor = space.meta.floor.max(floor);
            space.settled = space.changes.len();
        }
    }
}

impl State {
    fn deliver(&mut self, now: u64, shared: &Shared) {
        while let Some(next) = self.late.iter().position(|late| late.due <= now) {
            let Late { by, namespace, machine, expect, new, .. } = self.late.remove(next);
            shared
                .time
                .note(|| format!("        a late request about machine ID {machine} arrives"));
            self.apply(by, &namespace, machine, &expect, &new, shared);
        }
    }

    fn apply(
        &mut self,
        by: Sender,
        namespace: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
        shared: &Shared,
    ) -> Cas {
        let Some(space) = self.spaces.get_mut(namespace) else {
            return Cas::Conflict(Record::default());
        };
        let before = space.records.get(&machine).cloned();
        let current = before.clone().unwrap_or_else(|| Record::unclaimed(space.meta.floor));
        if !current.meets(expect) && shared.planted != Some(Planted::IgnoresExpectations) {
            shared.time.note(|| format!("        machine ID {machine}: not as expected"));
            return Cas::Conflict(current);
        }
        let planted = shared.planted;
        let checked = planted.is_none_or(|planted| !planted.shows_by_repetition_alone());
        if checked && self.flaw.is_none() {
            self.flaw = flaw(&current, new).map(|flaw| format!("machine ID {machine}: {flaw}"));
        }
        shared.time.note(|| {
            let Record { epoch, owner, bound, .. } = new;
            let owner = if *owner == 0 { "released" } else { "held" };
            format!("        machine ID {machine}: epoch {epoch}, {owner}, bound {bound:#x}")
        });
        if new.epoch != current.epoch {
            self.counts.add(if current.epoch == 0 { "first claims" } else { "handovers" }, 1);
        }
        space.windows.note(by, machine, &current, new);
        let kept = match planted {
            Some(planted) => planted.kept(before.as_ref(), new, &mut self.rng),
            None => Some(new.clone()),
        };
        if kept == before {
            self.counts.add("changes acknowledged and forgotten", 1);
        } else if let Some(kept) = kept {
            if new.released {
                space.released.push((machine, kept.bound));
            }
            space.changes.push(Change { at: shared.time.now(), by, machine, before });
            space.records.insert(machine, kept);
        }
        Cas::Done
    }
}

/// The rule that a change of a record breaks, if it breaks one.
fn flaw(old: &Record, new: &Record) -> Option<String> {
    let claimed = new.epoch == old.epoch + 1 && new.owner != 0;
    let extended = new.epoch == old.epoch && new.owner == old.owner && new.bound > old.bound;
    let released = new.epoch == old.epoch && new.owner == 0 && new.released;
    let fits = claimed && new.bound >= old.bound || extended || released && new.bound <= old.bound;
    (!fits).then(|| format!("{old:?} became {new:?}"))
}
