//! Successive leases of a slot, in every interleaving of callers, keeper and closer.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use vesta_intf::{IdError, IdMeta, UnixMillis};

use super::*;
use crate::clock::{AnyClock, ClockKind};
use crate::lease::HeldLeaseFactory;
use crate::populator::PopulatorKind;
use crate::races::{Ends, Thread, at_once, bounded, exhaustively};
use crate::sequence::Rules;
use crate::testing::ManualClock;

const META: IdMeta = IdMeta::MIN_GRANULARITY;
const FIRST: u64 = 1_000_000 << 10;

/// Held lease with its lazy initialization done.
fn held(machine: u64) -> HeldLease {
    let clock = ManualClock::at(UnixMillis(META.spec().epoch.0 + 1_000_000));
    let factory = HeldLeaseFactory {
        meta: META,
        rules: Rules::new(40, 10, 0),
        clock: AnyClock::Other(Arc::new(clock)),
        populator: PopulatorKind::Atomic,
        version: 0,
        clock_kind: ClockKind::Precise,
    };
    let held = factory
        .make(machine, 1, FIRST, u64::MAX, None)
        .expect("all fields fit");
    held.ticks.read();
    assert_eq!(held.claim(1).expect("it is new").start, FIRST);
    held
}

struct Model {
    slot: MachineSlot,
    closed: AtomicBool,
}

/// Machine IDs and positions that one thread was given.
type Taken = Vec<(u64, Range<u64>)>;

impl Model {
    fn new() -> Arc<Self> {
        let slot = MachineSlot::new(held(1), std::time::Duration::ZERO, Arc::default());
        slot.leases.current();
        assert!(slot.will_follow());
        Arc::new(Self {
            slot,
            closed: AtomicBool::new(false),
        })
    }

    fn caller(self: &Arc<Self>, calls: u32) -> Thread<Taken> {
        let this = self.clone();
        Box::new(move || {
            let mut taken = Vec::new();
            for _ in 0..calls {
                let closed = this.closed.load(std::sync::atomic::Ordering::SeqCst);
                let held = this.slot.leases.current();
                match held.claim(1) {
                    Ok(claim) => {
                        assert!(!closed, "given out after the end");
                        taken.push((held.machine, claim.start..claim.end));
                    }
                    Err(IdError::Sealed { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            taken
        })
    }

    /// Takeover of the slot's machine ID, and a claim of another one.
    fn rehome(self: &Arc<Self>) -> Thread<Taken> {
        let this = self.clone();
        Box::new(move || {
            this.slot
                .leases
                .current()
                .seal("another process took its machine ID over");
            this.slot.follow(held(2));
            Vec::new()
        })
    }

    /// Ends like [`Keeper::close`](crate::lease::Keeper::close) when the keeper takes longer than it waits.
    fn close(self: &Arc<Self>) -> Thread<Taken> {
        let this = self.clone();
        Box::new(move || {
            this.slot.request_stop();
            this.slot.leases.current().seal("it was shut down");
            this.closed.store(true, std::sync::atomic::Ordering::SeqCst);
            Vec::new()
        })
    }
}

#[test]
fn caller_moves_on_to_the_next_lease() {
    let ends = Ends::new();
    let note = ends.clone();
    exhaustively("slot", move || {
        let model = Model::new();
        let taken = at_once(vec![model.caller(2), model.rehome()]).swap_remove(0);
        assert!(
            taken.is_sorted_by_key(|(machine, _)| *machine),
            "back to a lost one: {taken:?}"
        );
        note.note(taken.iter().map(|(machine, _)| *machine).collect());
    });
    let ends: &Vec<Vec<_>> = &ends.get().iter().cloned().collect();
    let all = [vec![1, 1], vec![1, 2], vec![2, 2]];
    assert!(
        all.iter().all(|end| ends.contains(end)),
        "the change of leases came at every moment: {ends:?}"
    );
}

#[test]
fn lease_that_follows_the_end_issues_nothing() {
    bounded("slot", || {
        let model = Model::new();
        at_once(vec![model.caller(2), model.rehome(), model.close()]);
    });
}

/// As [`MachineSlot::follow`], but checks for a stop before the lease is in force.
#[test]
#[should_panic(expected = "given out after the end")]
fn planted_stop_checked_too_early() {
    bounded("planted fault", || {
        let model = Model::new();
        let this = model.clone();
        let careless: Thread<_> = Box::new(move || {
            let slot = &this.slot;
            slot.leases
                .current()
                .seal("another process took its machine ID over");
            let next = held(2);
            if slot.stopping() {
                next.seal("it was shut down");
            }
            slot.leases.follow(next);
            Vec::new()
        });
        at_once(vec![model.caller(2), careless, model.close()]);
    });
}
