//! The store that all hosts share: its records, what it forgets, and late changes.

mod records;
mod windows;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use vesta_service::lease::{KvStore as _, Leases, Namespace, Record};
use vesta_service::testing::MemoryStore;
use vesta_testkit::Rng;

use super::counts::Counts;
use super::planted::Planted;
use super::time::Time;
use records::{Decoded, flaw, text_of};
pub(crate) use windows::Window;
pub(crate) use wire::{Sender, Wire};

/// Store and network conditions: for each kind of failure, the percentage of requests that fail this way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Weather {
    pub(crate) down_until: u64,
    pub(crate) refused: u64,
    pub(crate) reply_lost: u64,
    /// Reported as failed, executed later: after seconds or hours.
    pub(crate) late: u64,
    /// Executed, and executed again later.
    pub(crate) twice: u64,
    pub(crate) slow: u64,
    /// A read returns the state before the latest changes of others.
    pub(crate) stale: u64,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) time: Arc<Time>,
    pub(crate) doubted: bool,
    pub(crate) planted: Option<Planted>,
    processes: AtomicU64,
    /// The history of claims, which affects no decision.
    past: MemoryStore,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rng: Rng,
    decoded: Decoded,
    spaces: BTreeMap<String, Space>,
    weather: Weather,
    late: Vec<Late>,
    counts: Counts,
    /// The first change that violated a rule for records.
    flaw: Option<String>,
}

#[derive(Debug, Default)]
struct Space {
    /// Every entry, as it is written.
    entries: BTreeMap<String, String>,
    /// Those entries that are records, as parsed by the product.
    records: BTreeMap<u64, Record>,
    /// Other queried values, cached until the next change.
    known: Option<Known>,
    changes: Vec<Change>,
    /// Changes before this index cannot be undone, nor appear as not yet done.
    settled: usize,
    windows: windows::Windows,
    /// It was wiped once: late changes may be below what was granted.
    wiped: bool,
    /// Machine IDs released, with their sender and position.
    released: Vec<(Sender, u64, u64)>,
}

/// The floor of a namespace, and the machine IDs whose record was forgotten while its mark was not,
/// or the other way round.
#[derive(Debug, Clone, Default)]
struct Known {
    floor: u64,
    lost: Vec<u64>,
}

#[derive(Debug)]
struct Change {
    at: u64,
    by: Sender,
    key: String,
    before: Option<String>,
}

#[derive(Debug)]
struct Late {
    due: u64,
    by: Sender,
    namespace: String,
    key: String,
    old: Option<String>,
    new: String,
}

impl Shared {
    pub(crate) fn new(
        time: Arc<Time>,
        rng: Rng,
        doubted: bool,
        planted: Option<Planted>,
    ) -> Arc<Self> {
        let state = State {
            rng,
            decoded: Decoded::default(),
            spaces: BTreeMap::new(),
            weather: Weather::default(),
            late: Vec::new(),
            counts: Counts::default(),
            flaw: None,
        };
        let processes = AtomicU64::new(0);
        let (past, state) = (MemoryStore::new(), Mutex::new(state));
        Arc::new(Self {
            time,
            doubted,
            planted,
            processes,
            past,
            state,
        })
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

    /// The window of this process that contains a position of a machine ID, as far as the process
    /// knows of it; the latest one if no window contains it.
    pub(crate) fn window(&self, by: Sender, namespace: &str, machine: u64, at: u64) -> Window {
        let state = self.state.lock();
        let Some(space) = state.spaces.get(namespace) else {
            return Window::default();
        };
        let mut window = space.windows.find(by, machine, at);
        let current = space
            .records
            .get(&machine)
            .filter(|record| record.owner == window.owner);
        if let (Some(record), false) = (current, self.doubted || space.wiped) {
            window.told = window.told.min(record.bound);
        }
        window
    }

    /// True if the record of a machine ID is still as this process claimed it.
    pub(crate) fn holds(&self, by: Sender, namespace: &str, machine: u64) -> bool {
        let state = self.state.lock();
        let Some(space) = state.spaces.get(namespace) else {
            return false;
        };
        let owner = space.windows.find(by, machine, u64::MAX).owner;
        owner != 0
            && space
                .records
                .get(&machine)
                .is_some_and(|record| record.owner == owner)
    }

    /// The highest position ever granted.
    pub(crate) fn highest_grant(&self, namespace: &str) -> u64 {
        let state = self.state.lock();
        state
            .spaces
            .get(namespace)
            .map_or(0, |space| space.windows.highest_grant())
    }

    pub(crate) fn record(&self, namespace: &str, machine: u64) -> Option<Record> {
        self.state
            .lock()
            .spaces
            .get(namespace)?
            .records
            .get(&machine)
            .cloned()
    }

    pub(crate) fn floor(&self, namespace: &str) -> u64 {
        self.known(namespace).floor
    }

    /// The machine IDs whose record was forgotten while its mark was not, or the other way round.
    pub(crate) fn lost(&self, namespace: &str) -> Vec<u64> {
        self.known(namespace).lost
    }

    /// True if a namespace was forgotten, but some of its entries remain.
    pub(crate) fn lost_its_namespace(&self, namespace: &str) -> bool {
        let state = self.state.lock();
        let entries = state.spaces.get(namespace).map(|space| &space.entries);
        entries.is_some_and(|all| !all.is_empty() && !all.contains_key("namespace"))
    }

    fn known(&self, namespace: &str) -> Known {
        if let Some(space) = self.state.lock().spaces.get(namespace)
            && let Some(known) = &space.known
        {
            return known.clone();
        }
        let known = self.leases(namespace, |leases| {
            let Some(Namespace { floor, .. }) = leases.find().expect("memory") else {
                return Known::default();
            };
            let lost = leases
                .snapshot()
                .expect("memory")
                .lost()
                .into_iter()
                .collect();
            Known { floor, lost }
        });
        let mut state = self.state.lock();
        let space = state.spaces.entry(namespace.into()).or_default();
        space.known.insert(known).clone()
    }

    /// An operator recreates these records, above everything that was granted.
    pub(crate) fn repair(&self, namespace: &str, machines: &[u64], bound: u64) {
        self.leases(namespace, |leases| {
            let Some(Namespace { uuid, .. }) = leases.find().expect("memory") else {
                return;
            };
            for machine in machines {
                let birth = machine + bound;
                let new = Record {
                    namespace: uuid,
                    birth,
                    bound,
                    ..Record::default()
                };
                let seen = leases.snapshot().expect("memory");
                leases
                    .change(*machine, seen.records.get(machine), &new)
                    .expect("memory");
                assert!(leases.mark_birth(&seen, *machine, &new).expect("memory"));
            }
        });
    }

    /// Runs the product's code on the entries of a namespace, without simulated failures.
    fn leases<T>(&self, namespace: &str, act: impl FnOnce(&Leases) -> T) -> T {
        let mut state = self.state.lock();
        let state = &mut *state;
        let space = state.spaces.entry(namespace.into()).or_default();
        let store = Arc::new(MemoryStore::new());
        for (key, value) in &space.entries {
            store.put_if("lease/x", key, None, value).expect("memory");
        }
        let done = act(&Leases::new(store.clone(), "x"));
        let entries: BTreeMap<_, _> = store.list("lease/x").expect("memory").into_iter().collect();
        if entries != space.entries {
            space.settled = space.changes.len();
            space.entries = entries;
            space.read_records(&mut state.decoded);
        }
        done
    }

    /// Takes the releases since the last call: sender, machine ID and position.
    pub(crate) fn released(&self, namespace: &str) -> Vec<(Sender, u64, u64)> {
        let mut state = self.state.lock();
        let space = state.spaces.get_mut(namespace);
        space
            .map(|space| std::mem::take(&mut space.released))
            .unwrap_or_default()
    }

    /// Executes late changes that are due; with `all`, also those due later.
    pub(crate) fn deliver(&self, all: bool) {
        let mut state = self.state.lock();
        let now = if all { u64::MAX } else { self.time.now() };
        state.deliver(now, self);
    }

    /// An owner outside the simulation takes a record over, and issues nothing.
    pub(crate) fn steal(&self, namespace: &str, machine: u64) -> bool {
        let mut state = self.state.lock();
        let owner = u128::from(state.rng.bits()) << 1 | 1;
        let attempt = state.rng.bits() >> 1;
        let Some(record) = state
            .spaces
            .get(namespace)
            .and_then(|s| s.records.get(&machine))
        else {
            return false;
        };
        let (epoch, from) = (record.epoch + 1, record.bound);
        let new = Record {
            epoch,
            owner,
            from,
            attempt,
            released: false,
            ..record.clone()
        };
        let (old, new) = (text_of(record), text_of(&new));
        let key = machine.to_string();
        state.apply(Sender::STRANGER, namespace, &key, Some(&old), &new, self);
        true
    }

    /// Forgets the changes of the last `nanos` nanoseconds.
    pub(crate) fn roll_back(&self, namespace: &str, nanos: u64) -> usize {
        let mut state = self.state.lock();
        let state = &mut *state;
        let since = self.time.now().saturating_sub(nanos);
        let Some(space) = state.spaces.get_mut(namespace) else {
            return 0;
        };
        let mut undone = 0;
        while space
            .changes
            .last()
            .is_some_and(|change| change.at >= since)
        {
            let Some(Change { key, before, .. }) = space.changes.pop() else {
                break;
            };
            match before {
                Some(text) => space.entries.insert(key, text),
                None => space.entries.remove(&key),
            };
            undone += 1;
        }
        space.read_records(&mut state.decoded);
        space.settled = space.changes.len();
        undone
    }

    /// Forgets everything, including changes on their way to it: the store is a different one.
    pub(crate) fn wipe(&self, namespace: &str) -> bool {
        let Some(meta) = self.leases(namespace, |leases| leases.find().expect("memory")) else {
            return false;
        };
        let mut state = self.state.lock();
        state.late.retain(|late| late.namespace != namespace);
        let Some(space) = state.spaces.get_mut(namespace) else {
            return false;
        };
        space.wiped = true;
        space.entries.clear();
        space.records.clear();
        space.known = None;
        space.changes.clear();
        space.settled = 0;
        drop(state);
        self.leases(namespace, |leases| {
            leases.open(&meta.fingerprint).expect("memory")
        });
        true
    }

    /// Like `store raise-floor`: a namespace that is gone is created.
    pub(crate) fn raise_floor(&self, namespace: &str, fingerprint: &str, floor: u64) {
        self.leases(namespace, |leases| {
            leases.open(fingerprint).expect("memory");
            leases.raise_floor(floor).expect("memory");
        });
    }
}

impl Space {
    fn read_records(&mut self, decoded: &mut Decoded) {
        let machines = self
            .entries
            .iter()
            .filter_map(|(key, text)| Some((key.parse().ok()?, text)));
        self.records = machines
            .map(|(machine, text)| (machine, decoded.record(text)))
            .collect();
        self.known = None;
    }

    /// Puts an entry; the texts of records are parsed.
    fn put(&mut self, key: &str, text: String, decoded: &mut Decoded) {
        if let Ok(machine) = key.parse() {
            self.records.insert(machine, decoded.record(&text));
        }
        self.entries.insert(key.into(), text);
        self.known = None;
    }
}

impl State {
    fn deliver(&mut self, now: u64, shared: &Shared) {
        while let Some(next) = self.late.iter().position(|late| late.due <= now) {
            let Late {
                by,
                namespace,
                key,
                old,
                new,
                ..
            } = self.late.remove(next);
            shared
                .time
                .note(|| format!("        a late request about `{key}` arrives"));
            self.apply(by, &namespace, &key, old.as_deref(), &new, shared);
        }
    }

    fn apply(
        &mut self,
        by: Sender,
        namespace: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
        shared: &Shared,
    ) -> bool {
        let space = self.spaces.entry(namespace.into()).or_default();
        let before = space.entries.get(key).cloned();
        let machine: Option<u64> = key.parse().ok();
        let careless = machine.is_some() && shared.planted == Some(Planted::IgnoresExpectations);
        if before.as_deref() != old && !careless {
            shared
                .time
                .note(|| format!("        `{key}`: not as expected"));
            return false;
        }
        let mut kept = Some(new.to_owned());
        if let Some(machine) = machine {
            let (current, record) = (
                space.records.get(&machine).cloned(),
                self.decoded.record(new),
            );
            let planted = shared.planted;
            let checked = planted.is_none_or(|planted| !planted.shows_by_repetition_alone());
            if checked && self.flaw.is_none() {
                let flaw = flaw(current.as_ref(), &record);
                self.flaw = flaw.map(|flaw| format!("machine ID {machine}: {flaw}"));
            }
            shared.time.note(|| {
                let Record {
                    epoch,
                    owner,
                    bound,
                    ..
                } = record;
                let owner = if owner == 0 { "free" } else { "held" };
                format!("        machine ID {machine}: epoch {epoch}, {owner}, bound {bound:#x}")
            });
            let was = current.clone().unwrap_or_default();
            if record.epoch != was.epoch {
                self.counts.add(
                    if was.epoch == 0 {
                        "first claims"
                    } else {
                        "handovers"
                    },
                    1,
                );
            }
            if record.epoch > 0 {
                space.windows.note(by, machine, &was, &record);
            }
            let keeps = match planted {
                Some(planted) => planted.kept(current.as_ref(), &record, &mut self.rng),
                None => Some(record.clone()),
            };
            if record.released
                && keeps != current
                && let Some(keeps) = &keeps
            {
                space.released.push((by, machine, keeps.bound));
            }
            kept = if keeps.as_ref() == Some(&record) {
                kept
            } else {
                keeps.as_ref().map(text_of)
            };
        }
        if kept == before {
            self.counts.add("changes acknowledged and forgotten", 1);
        } else if let Some(kept) = kept {
            space.changes.push(Change {
                at: shared.time.now(),
                by,
                key: key.into(),
                before,
            });
            space.put(key, kept, &mut self.decoded);
        }
        true
    }
}
