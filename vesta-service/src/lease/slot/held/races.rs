//! Held lease in every interleaving of callers, keeper and closer.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::UnixMillis;

use super::*;
use crate::clock::Clock;
use crate::id::populator::subject::IdPopulator as _;
use crate::races::{Ends, Thread, at_once, bounded, exhaustively, unique_and_growing};

const META: IdMeta = IdMeta::MIN_GRANULARITY;
const TICK: u64 = 1_000_000;
/// First position of two that are left for a batch in the tick that the clock shows.
const FIRST: u64 = (TICK << 10) + 958;
/// Last position of that tick: a single call gets it, a batch gets none.
const LAST: u64 = (TICK << 10) + 1023;

/// Milliseconds since [`FIRST`], written by one thread and possibly seen late by another.
#[derive(Debug)]
struct Millis(AtomicU64);

impl Clock for Millis {
    fn wall(&self) -> UnixMillis {
        UnixMillis(META.spec().epoch.0 + TICK + self.0.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn park(&self, _: Duration) {}
}

/// Lease from a given position on, the bound in its record, and its clock.
struct Model {
    lease: HeldLease,
    /// Bound in the store. Relaxed, so that only the lease itself makes a caller see it.
    durable: AtomicU64,
    clock: Arc<Millis>,
}

impl Model {
    fn new(kind: PopulatorKind, bound: u64) -> Arc<Self> {
        Self::beginning_with(FIRST, kind, bound)
    }

    fn beginning_with(first: u64, kind: PopulatorKind, bound: u64) -> Arc<Self> {
        let clock = Arc::new(Millis(AtomicU64::new(0)));
        let factory = HeldLeaseFactory {
            meta: META,
            rules: Rules::new(40, 10, 0),
            clock: AnyClock::Other(clock.clone()),
            populator: kind,
            version: 0,
            clock_kind: ClockKind::Precise,
        };
        let lease = factory
            .make(7, 1, first, bound, None)
            .expect("all fields fit");
        // Forces lazy initialization.
        lease.bound();
        lease.left();
        lease.populator.position();
        lease.gate.open(0, 0, 0);
        lease.ticks.read();
        lease.lost();
        let durable = AtomicU64::new(bound);
        durable.load(Ordering::Relaxed);
        Arc::new(Self {
            lease,
            durable,
            clock,
        })
    }

    /// Makes `calls` calls for `want` positions each; a call for one tries the fast path first.
    fn issue(self: &Arc<Self>, calls: u32, want: u32) -> Thread<Vec<Range<u64>>> {
        let this = self.clone();
        Box::new(move || {
            let mut taken = Vec::new();
            for _ in 0..calls {
                let one = |start| Claim {
                    start,
                    end: start + 1,
                };
                let quick = if want == 1 {
                    this.lease.one(|position| position).map(one)
                } else {
                    None
                };
                if let Ok(Claim { start, end }) = quick.map_or_else(|| this.lease.claim(want), Ok) {
                    let durable = this.durable.load(Ordering::Relaxed);
                    assert!(
                        end <= durable,
                        "{start}..{end} lies beyond the record's {durable}"
                    );
                    taken.push(start..end);
                }
            }
            taken
        })
    }

    /// Reserves a position and keeps it, perhaps after one that it gives up.
    fn reserve(self: &Arc<Self>, gives_up: bool) -> Thread<Vec<Range<u64>>> {
        let this = self.clone();
        Box::new(move || {
            let reserve = || {
                let ahead = Duration::from_millis(4);
                this.lease.reserve(ahead, ahead).ok()
            };
            if gives_up {
                drop(reserve());
            }
            let kept = reserve().map(|reserved| {
                let kept = reserved.position..reserved.position + 1;
                std::mem::forget(reserved);
                kept
            });
            kept.into_iter().collect()
        })
    }

    /// The keeper's part: first the store, then the lease.
    fn extend(self: &Arc<Self>, bound: u64) -> Thread<Vec<Range<u64>>> {
        let this = self.clone();
        Box::new(move || {
            this.durable.store(bound, Ordering::Relaxed);
            this.lease.raise(bound);
            Vec::new()
        })
    }

    fn seal(self: &Arc<Self>, reason: &'static str) -> Thread<Vec<Range<u64>>> {
        let this = self.clone();
        Box::new(move || {
            let sealed_at = this.lease.seal(reason);
            assert_eq!(this.lease.seal("it was sealed before"), sealed_at);
            assert_eq!(this.lease.one(|position| position), None, "never again");
            assert!(
                matches!(this.lease.claim(1), Err(IdError::Sealed { .. })),
                "never again"
            );
            Vec::new()
        })
    }
}

#[test]
fn the_bound_is_raised_while_callers_wait_for_it() {
    for kind in PopulatorKind::ALL {
        let ends = Ends::new();
        let note = ends.clone();
        exhaustively(kind.name(), move || {
            let model = Model::new(kind, FIRST + 1);
            let taken = at_once(vec![model.issue(2, 2), model.extend(FIRST + 2)]);
            note.note(
                unique_and_growing(&taken)
                    .last()
                    .map_or(0, |last| last.end - FIRST),
            );
        });
        assert!(
            ends.get().iter().eq(&[1, 2]),
            "the new bound came too late, and in time"
        );
    }
}

#[test]
fn the_bound_is_raised_under_two_callers() {
    for kind in PopulatorKind::ALL {
        bounded(kind.name(), move || {
            let model = Model::new(kind, FIRST + 1);
            let threads = vec![
                model.issue(1, 2),
                model.issue(1, 1),
                model.extend(FIRST + 2),
            ];
            unique_and_growing(&at_once(threads));
        });
    }
}

/// A caller that finds the tick used up reads the precise clock, under a lock.
#[test]
fn clock_moves_on_when_the_tick_is_used_up() {
    // Number of calls of each caller, and positions per call: single IDs, batches, and both.
    type Callers = &'static [(u32, u32)];
    let histories: [(u64, Callers); 5] = [
        (LAST, &[(2, 1)]),
        (FIRST, &[(2, 2)]),
        (FIRST, &[(1, 2), (1, 2)]),
        (FIRST, &[(1, 1), (1, 2)]),
        (LAST, &[(1, 1), (1, 1)]),
    ];
    for (first, callers) in histories {
        for kind in PopulatorKind::ALL {
            let ends = Ends::new();
            let note = ends.clone();
            bounded(kind.name(), move || {
                let model = Model::beginning_with(first, kind, u64::MAX);
                let clock = model.clock.clone();
                let tick: Thread<_> = Box::new(move || {
                    clock.0.store(1, Ordering::Relaxed);
                    Vec::new()
                });
                let issue = |&(calls, want)| model.issue(calls, want);
                let threads = callers.iter().map(issue).chain([tick]).collect();
                let all = unique_and_growing(&at_once(threads));
                assert!(
                    all.iter()
                        .all(|taken| taken.start >> 10 == (taken.end - 1) >> 10)
                );
                note.note(all.last().is_some_and(|last| last.start >> 10 > TICK));
            });
            assert_eq!(
                ends.get().len(),
                2,
                "some call came in the next tick, and none did"
            );
        }
    }
}

/// A lease is sealed one past its last position.
fn sealed_past(sealed_at: u64, all: &[Range<u64>]) {
    let end = all.last().map_or(FIRST, |last| last.end);
    assert_eq!(sealed_at, end, "sealed one past the last position");
}

#[test]
fn lease_is_fenced_while_it_is_closed_and_used() {
    for kind in PopulatorKind::ALL {
        bounded(kind.name(), move || {
            let model = Model::new(kind, u64::MAX);
            let (closer, keeper) = (model.seal("it was shut down"), model.seal("it was fenced"));
            let all = unique_and_growing(&at_once(vec![model.issue(2, 1), closer, keeper]));
            sealed_past(model.lease.seal("again"), &all);
            let reason = model.lease.sealed_reason().expect("it is sealed");
            assert!(
                ["it was shut down", "it was fenced"].contains(&reason),
                "{reason}"
            );
        });
    }
}

/// Each position is kept by one caller, free again, or counted as lost.
#[test]
fn reserved_position_is_given_up_while_another_caller_reserves_and_the_lease_is_sealed() {
    for kind in PopulatorKind::ALL {
        let ends = Ends::new();
        let note = ends.clone();
        bounded(kind.name(), move || {
            let model = Model::beginning_with(LAST + 1, kind, u64::MAX);
            let threads = vec![
                model.reserve(true),
                model.reserve(false),
                model.seal("it was shut down"),
            ];
            let kept = unique_and_growing(&at_once(threads)).len() as u64;
            let taken = model.lease.seal("again") - (LAST + 1);
            assert_eq!(taken, kept + model.lease.lost());
            note.note(model.lease.lost());
        });
        assert!(ends.get().len() > 1, "some were given back, and some lost");
    }
}

#[test]
fn a_late_renewal_reopens_nothing() {
    for kind in PopulatorKind::ALL {
        bounded(kind.name(), move || {
            let model = Model::new(kind, FIRST + 1);
            let threads = vec![
                model.issue(1, 2),
                model.seal("fenced"),
                model.extend(FIRST + 2),
            ];
            let all = unique_and_growing(&at_once(threads));
            sealed_past(model.lease.seal("again"), &all);
        });
    }
}

#[test]
#[should_panic(expected = "lies beyond the record's")]
fn planted_bound_raised_before_the_reply() {
    exhaustively("planted fault", || {
        let model = Model::new(PopulatorKind::Atomic, FIRST + 1);
        let this = model.clone();
        let hasty: Thread<_> = Box::new(move || {
            this.lease.raise(FIRST + 2);
            this.durable.store(FIRST + 2, Ordering::Relaxed);
            Vec::new()
        });
        at_once(vec![model.issue(1, 2), hasty]);
    });
}

/// The fault is in the memory order alone: under sequential consistency every interleaving is
/// correct.
#[test]
#[should_panic(expected = "lies beyond the record's")]
fn planted_bound_raised_without_ordering() {
    exhaustively("planted fault", || {
        let model = Model::new(PopulatorKind::Atomic, FIRST + 1);
        let this = model.clone();
        let careless: Thread<_> = Box::new(move || {
            this.durable.store(FIRST + 2, Ordering::Relaxed);
            this.lease.bound.fetch_max(FIRST + 2, Ordering::Relaxed);
            Vec::new()
        });
        at_once(vec![model.issue(1, 2), careless]);
    });
}
