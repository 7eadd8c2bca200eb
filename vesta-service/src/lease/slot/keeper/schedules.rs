//! The keeper under random schedules: with callers, a failing store, a takeover and the end.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use shuttle::rand::{Rng as _, thread_rng};
use shuttle::thread::{JoinHandle, spawn, yield_now};
use vesta_intf::{IdError, IdMeta, UnixMillis};

use super::*;
use crate::clock::{AnyClock, ClockKind};
use crate::lease::codec::Entry as _;
use crate::lease::{
    Cas, Choice, ClaimOrder, HeldLeaseFactory, HostState, KvStore, Leases, Own, Plan, Record,
    Slots, StoreError, Timing,
};
use crate::populator::PopulatorKind;
use crate::races::{Ends, ModelClock, NEVER, after_a_while, at_random, unique_and_growing};
use crate::sequence::{Claim, Rules};
use crate::testing::MemoryStore;

const META: IdMeta = IdMeta::MIN_GRANULARITY;
const NAMESPACE: &str = "default";

/// Faults of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// Some requests and some replies are lost.
    Lossy,
    /// As [`Lossy`](Self::Lossy); in addition, an extend or release may fail for good.
    Fatal,
    /// Changes that the store acknowledged are lost.
    Forgetful,
}

#[derive(Debug)]
struct Store {
    entries: Arc<MemoryStore>,
    trouble: Trouble,
}

impl Store {
    /// Machine IDs in the store, read past its faults.
    fn leases(&self) -> Leases {
        Leases::new(self.entries.clone(), NAMESPACE)
    }

    fn record(&self, machine: u64) -> Record {
        self.leases()
            .record(machine)
            .ok()
            .flatten()
            .expect("it was claimed")
    }
}

fn lost() -> StoreError {
    StoreError::unavailable("lost", std::io::Error::other("on the way"))
}

/// True for a change by which an owner extends or releases its own record.
fn same_epoch(old: Option<&str>, new: &str) -> bool {
    let epoch = |text| Record::decode(text).ok().map(|record| record.epoch);
    let epochs = (old.and_then(epoch), epoch(new));
    matches!(epochs, (Some(old), Some(new)) if old == new)
}

impl KvStore for Store {
    fn describe(&self) -> String {
        "a model".into()
    }

    fn timing(&self) -> Timing {
        self.entries.timing()
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        yield_now();
        self.entries.list(area)
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        self.entries.get(area, key)
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        yield_now();
        let fate = if self.trouble == Trouble::None {
            9
        } else {
            thread_rng().gen_range(0..8)
        };
        match (self.trouble, fate) {
            (_, 0) => return Err(lost()),
            (Trouble::Fatal, 1) if same_epoch(old, new) => {
                return Err(StoreError::permanent("it is damaged"));
            }
            (Trouble::Forgetful, 2 | 3) if same_epoch(old, new) => return Ok(true),
            _ => {}
        }
        let reply = self.entries.put_if(area, key, old, new);
        yield_now();
        if fate == 4 { Err(lost()) } else { reply }
    }
}

/// Positions that one thread was given, by machine ID.
type Taken = BTreeMap<u64, Vec<Range<u64>>>;

#[derive(Clone)]
struct Model {
    store: Arc<Store>,
    clock: Arc<ModelClock>,
    slots: Arc<Slots>,
    closed: Arc<AtomicBool>,
    /// Renewal interval.
    unit: Duration,
}

impl Model {
    fn new(kind: PopulatorKind, trouble: Trouble, unit: Duration) -> Self {
        let store = Arc::new(Store {
            entries: Arc::default(),
            trouble,
        });
        let start = UnixMillis(META.spec().epoch.0 + 1_000_000);
        let clock = Arc::new(ModelClock::at(start, unit / 20));
        let rules = Rules::new(40, 10, 0);
        let plan = Plan {
            store: store.describe(),
            namespace: NAMESPACE.into(),
            meta: META,
            rules,
            timing: Timing {
                window: unit * 3,
                renew_every: unit,
                request_timeout: unit,
                takeover_grace: unit * 9,
            },
            choice: Choice::Any(0..=3),
            order: ClaimOrder::Stable,
            count: 1,
            claim_timeout: Duration::MAX,
            host: "here".into(),
            pid: 1,
            start_at: 0,
            is_damaged: false,
            keeps_owners: false,
            doubted: None,
            usual_window: unit * 3,
            doubtful_window: crate::lease::USUAL_DOUBTFUL_WINDOW,
            standby: None,
        };
        let leases = Leases::new(store.clone(), NAMESPACE);
        let host = HostState::new(None, Own::default());
        let factory = HeldLeaseFactory {
            meta: META,
            rules,
            clock: AnyClock::Other(clock.clone()),
            populator: kind,
            version: 0,
            clock_kind: ClockKind::Precise,
        };
        let drivers = Rounds::start(plan, leases, host, factory).expect("there are enough");
        let keeper = Keeper::start(drivers, Drive::Thread).expect("threads of a model start");
        let (slots, closed) = (Arc::new(Slots::kept(keeper)), Arc::default());
        Self {
            store,
            clock,
            slots,
            closed,
            unit,
        }
    }

    /// Caller that asks `calls` times.
    fn caller(&self, calls: u32) -> JoinHandle<Taken> {
        let this = self.clone();
        spawn(move || {
            let mut taken = Taken::new();
            for want in 1..=calls {
                let closed = this.closed.load(std::sync::atomic::Ordering::SeqCst);
                match this.slots.claim(want) {
                    Ok((held, Claim { start, end })) => {
                        assert!(!closed, "given out after the end: {start}..{end}");
                        let bound = this.store.record(held.machine).bound;
                        assert!(end <= bound, "{end} lies beyond the record's {bound}");
                        taken.entry(held.machine).or_default().push(start..end);
                    }
                    Err(IdError::NotReady(_) | IdError::Sealed { .. }) => after_a_while(9),
                    Err(error) => panic!("{error}"),
                }
            }
            taken
        })
    }

    /// Advances the clock by more than a renewal interval each time.
    fn time(&self, renewals: u32) -> JoinHandle<Taken> {
        let this = self.clone();
        spawn(move || {
            for _ in 0..renewals {
                after_a_while(20);
                this.clock.time.advance(this.unit * 6 / 5);
                this.slots.first().wake_keeper();
            }
            Taken::new()
        })
    }

    /// Another process that takes the record over, as if its owner were dead, and uses it.
    fn thief(&self) -> JoinHandle<Taken> {
        let this = self.clone();
        spawn(move || {
            after_a_while(30);
            let machine = this.slots.first().leases.current().machine;
            let record = this.store.record(machine);
            let (start, end) = (record.bound, record.bound + 10);
            let epoch = record.epoch + 1;
            let new = Record {
                epoch,
                owner: 1,
                from: start,
                attempt: 1,
                bound: end,
                ..record.clone()
            };
            match this.store.leases().change(machine, Some(&record), &new) {
                Ok(Cas::Done) => Taken::from([(machine, vec![Range { start, end }])]),
                _ => Taken::new(),
            }
        })
    }

    /// Ends the service in the calling thread.
    fn close(&self) {
        self.slots.close();
        self.closed.store(true, std::sync::atomic::Ordering::SeqCst);
    }

    /// Waits for all threads and checks what must hold.
    fn check(self, threads: Vec<JoinHandle<Taken>>) -> End {
        let mut machines: BTreeMap<u64, Vec<Vec<Range<u64>>>> = BTreeMap::new();
        for thread in threads {
            for (machine, taken) in thread.join().expect("no panic") {
                machines.entry(machine).or_default().push(taken);
            }
        }
        // Waits without a timeout: if the keeper's end is not announced, this is a deadlock.
        let slot = self.slots.first();
        let keeper = self.slots.end.keeper.as_ref().expect("it has leases");
        assert!(keeper.wait_until_over(Duration::MAX));
        assert!(matches!(self.slots.claim(1), Err(IdError::Sealed { .. })));
        for (machine, threads) in &machines {
            let all = unique_and_growing(threads);
            let (bound, end) = (
                self.store.record(*machine).bound,
                all.last().map_or(0, |l| l.end),
            );
            assert!(end <= bound, "{end} lies beyond the record's {bound}");
        }
        let held = slot.leases.current();
        let record = self.store.record(held.machine);
        let released = record.released && record.epoch == held.epoch;
        if released {
            assert_eq!(
                record.bound,
                held.seal("again"),
                "released where it was sealed"
            );
        }
        let state = slot.state.lock();
        (
            state.renewals_ok > 0,
            state.fenced > 0,
            state.rehomed > 0,
            released,
        )
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// Outcome for the lease: renewed, taken over, succeeded by another, released.
type End = (bool, bool, bool, bool);

/// Runs four callers, the clock, the end and, if `theft`, a takeover.
fn run_all(kind: PopulatorKind, trouble: Trouble, unit: Duration, theft: bool) -> End {
    let model = Model::new(kind, trouble, unit);
    let mut threads: Vec<_> = (0..4).map(|_| model.caller(2)).collect();
    threads.push(model.time(2));
    if theft {
        threads.push(model.thief());
    }
    // The search for another machine ID takes time.
    after_a_while(if theft { 400 } else { 100 });
    model.close();
    model.check(threads)
}

#[test]
fn a_store_that_loses_requests_and_replies() {
    for kind in PopulatorKind::ALL {
        let ends = Ends::new();
        let note = ends.clone();
        at_random(kind.name(), 25_000, move || {
            note.note(run_all(kind, Trouble::Lossy, SECOND, false));
        });
        let ends = ends.get();
        assert!(
            ends.iter().all(|(_, fenced, ..)| !fenced),
            "no process took it over: {ends:?}"
        );
        assert!(
            ends.iter().any(|(renewed, ..)| *renewed),
            "some renewals came: {ends:?}"
        );
    }
}

#[test]
fn record_taken_over_by_another_process() {
    for trouble in [Trouble::None, Trouble::Lossy] {
        let ends = Ends::new();
        let note = ends.clone();
        at_random(&format!("{trouble:?}"), 25_000, move || {
            note.note(run_all(PopulatorKind::Atomic, trouble, SECOND, true));
        });
        let ends = ends.get();
        let rehomed = ends
            .iter()
            .any(|(_, fenced, rehomed, _)| *fenced && *rehomed);
        assert!(
            rehomed,
            "sometimes there was time for another machine ID: {ends:?}"
        );
    }
}

#[test]
fn a_store_that_fails_for_good() {
    let ends = Ends::new();
    let note = ends.clone();
    at_random("atomic", 25_000, move || {
        note.note(run_all(PopulatorKind::Atomic, Trouble::Fatal, SECOND, true));
    });
    assert!(
        ends.get().contains(&(false, false, false, false)),
        "it failed at once, sometimes"
    );
}

/// No wait times out: a thread that is not woken would stop the model.
#[test]
fn every_waiting_thread_is_woken() {
    for kind in PopulatorKind::ALL {
        at_random(kind.name(), 25_000, move || {
            let (.., released) = run_all(kind, Trouble::None, NEVER, false);
            assert!(released, "the end waits for the release");
        });
    }
}

#[test]
#[should_panic(expected = "lies beyond the record's")]
fn planted_store_that_forgets_what_it_acknowledged() {
    at_random("planted fault", 100_000, || {
        let model = Model::new(PopulatorKind::Atomic, Trouble::Forgetful, SECOND);
        let threads = vec![model.time(3), model.caller(9), model.caller(9)];
        after_a_while(100);
        model.close();
        model.check(threads);
    });
}

#[test]
#[should_panic(expected = "given out after the end")]
fn planted_end_without_a_seal() {
    at_random("planted fault", 100_000, || {
        let model = Model::new(PopulatorKind::Atomic, Trouble::None, SECOND);
        let threads = vec![model.caller(2), model.caller(2)];
        model.slots.first().request_stop();
        model
            .closed
            .store(true, std::sync::atomic::Ordering::SeqCst);
        model.check(threads);
    });
}
