//! The keeper at work: callers, a store in trouble, a thief and the end, in many random schedules.

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

/// The ways of a store that is not quite itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// Some requests are lost, and so are some replies.
    Lossy,
    /// As lossy, and in the end it fails for good.
    Fatal,
    /// A fault of the store: changes that it acknowledged are lost.
    Forgetful,
}

#[derive(Debug)]
struct Store {
    entries: Arc<MemoryStore>,
    trouble: Trouble,
}

impl Store {
    /// Its machine IDs, as they stand whatever the trouble.
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

/// True for an owner's own record: one that is extended or given back.
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

/// The positions that one thread was given, for each machine ID.
type Taken = BTreeMap<u64, Vec<Range<u64>>>;

#[derive(Clone)]
struct Model {
    store: Arc<Store>,
    clock: Arc<ModelClock>,
    slots: Arc<Slots>,
    closed: Arc<AtomicBool>,
    /// The number of renewals.
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
            guard: false,
            may_forget: None,
            usual_window: unit * 3,
            doubtful_window: crate::lease::USUAL_DOUBTFUL_WINDOW,
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
            lost: Arc::default(),
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

    /// A caller that asks so many times.
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

    /// The time passes: so much that a renewal is due each time.
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

    /// Another process takes the record over, as if its owner were dead, and uses it.
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

    /// Waits for everybody and checks what must hold.
    fn check(self, threads: Vec<JoinHandle<Taken>>) -> End {
        let mut machines: BTreeMap<u64, Vec<Vec<Range<u64>>>> = BTreeMap::new();
        for thread in threads {
            for (machine, taken) in thread.join().expect("no panic") {
                machines.entry(machine).or_default().push(taken);
            }
        }
        // As long as the keeper needs: if nobody hears of its end, this is a deadlock.
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
                "given back where it was sealed"
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

/// The fate of the lease: renewed, taken over, followed by another, given back.
type End = (bool, bool, bool, bool);

/// Four callers, the time, the end, and perhaps a thief.
fn everybody(kind: PopulatorKind, trouble: Trouble, unit: Duration, theft: bool) -> End {
    let model = Model::new(kind, trouble, unit);
    let mut threads: Vec<_> = (0..4).map(|_| model.caller(2)).collect();
    threads.push(model.time(2));
    if theft {
        threads.push(model.thief());
    }
    // The search for another machine ID takes its time.
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
            note.note(everybody(kind, Trouble::Lossy, SECOND, false));
        });
        let ends = ends.get();
        assert!(
            ends.iter().all(|(_, fenced, ..)| !fenced),
            "nobody took it over: {ends:?}"
        );
        assert!(
            ends.iter().any(|(renewed, ..)| *renewed),
            "some renewals came: {ends:?}"
        );
    }
}

#[test]
fn a_thief() {
    for trouble in [Trouble::None, Trouble::Lossy] {
        let ends = Ends::new();
        let note = ends.clone();
        at_random(&format!("{trouble:?}"), 25_000, move || {
            note.note(everybody(PopulatorKind::Atomic, trouble, SECOND, true));
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
        note.note(everybody(
            PopulatorKind::Atomic,
            Trouble::Fatal,
            SECOND,
            true,
        ));
    });
    assert!(
        ends.get().contains(&(false, false, false, false)),
        "it failed at once, sometimes"
    );
}

/// No wait ends by itself: whoever is not woken would hold up the model.
#[test]
fn everybody_is_woken_in_time() {
    for kind in PopulatorKind::ALL {
        at_random(kind.name(), 25_000, move || {
            let (.., released) = everybody(kind, Trouble::None, NEVER, false);
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
