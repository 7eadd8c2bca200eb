//! A pool server with members that keep the rules, and a stranger with a token who sends any change of the record. Before
//! its bound has passed by the pool server's clock, only its owner changes it; nothing is reserved far ahead of that clock.
//! One machine ID, one position in a tick. That the product's check lets no more through is shown for each change in
//! `lease/pool_server/strangers.rs`.

use stateright::{Checker, HasDiscoveries, Model, Property};

const WINDOW: u8 = 2;
/// How far ahead of the pool server's clock a bound may lie.
const AHEAD: u8 = 3;
/// Last tick of the pool server's clock, and end of all positions.
const LAST: u8 = 4;
const END: u8 = 9;
const MEMBERS: u8 = 2;
const STRANGER: u8 = MEMBERS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Whoever has a token changes a record that is held.
    AnybodyWrites,
    /// A record whose bound has passed is claimed below it.
    ClaimsBelow,
    /// A bound may lie anywhere.
    Anywhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Rec {
    epoch: u8,
    owner: Option<u8>,
    from: u8,
    bound: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Lease {
    record: Rec,
    next: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct State {
    now: u8,
    record: Rec,
    leases: [Option<Lease>; MEMBERS as usize],
    issued: u16,
    repeated: bool,
    ended_early: bool,
    blocked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Wait,
    /// The member's clock shows this tick.
    Claim {
        member: u8,
        tick: u8,
    },
    Extend {
        member: u8,
        tick: u8,
    },
    Issue {
        member: u8,
        tick: u8,
    },
    Release {
        member: u8,
    },
    Forge(Rec),
}

#[derive(Debug, Clone)]
struct Strangers {
    fault: Option<Fault>,
}

impl Strangers {
    /// True if the pool server accepts the change. `by` has the secret of its own records only.
    fn accepts(&self, state: &State, by: u8, new: &Rec) -> bool {
        let old = &state.record;
        let is_owner = old.owner == Some(by);
        let is_free = old.owner.is_none() || old.bound <= state.now;
        let is_claim = new.epoch == old.epoch + 1 && new.owner == Some(by);
        let is_above = new.from >= old.bound || self.fault == Some(Fault::ClaimsBelow);
        let extends = new.owner == old.owner && new.bound >= old.bound;
        let releases = new.owner.is_none() && (old.from..=old.bound).contains(&new.bound);
        let of_owner = (new.epoch, new.from) == (old.epoch, old.from) && (extends || releases);
        let of_other = is_claim && is_above && new.bound >= new.from;
        let anyhow = self.fault == Some(Fault::AnybodyWrites);
        let is_near = new.bound <= state.now + AHEAD || self.fault == Some(Fault::Anywhere);
        (is_owner && of_owner || is_free && of_other || anyhow) && is_near
    }
}

/// Every record that a stranger may send.
fn forged(old: Rec) -> impl Iterator<Item = Rec> {
    let owners = [None, Some(STRANGER), old.owner];
    (old.epoch..=old.epoch + 1).flat_map(move |epoch| {
        owners.into_iter().flat_map(move |owner| {
            [0, old.from, old.bound].into_iter().flat_map(move |from| {
                (0..=END).map(move |bound| Rec {
                    epoch,
                    owner,
                    from,
                    bound,
                })
            })
        })
    })
}

impl Model for Strangers {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.now < LAST {
            steps.push(Step::Wait);
        }
        for member in 0..MEMBERS {
            let ticks = 0..=LAST;
            match state.leases[usize::from(member)] {
                None => steps.extend(ticks.map(|tick| Step::Claim { member, tick })),
                Some(_) => {
                    for tick in ticks {
                        steps.extend([Step::Extend { member, tick }, Step::Issue { member, tick }]);
                    }
                    steps.push(Step::Release { member });
                }
            }
        }
        // A few epochs suffice.
        if state.record.epoch < 3 {
            let sent = forged(state.record).filter(|new| self.accepts(state, STRANGER, new));
            steps.extend(sent.map(Step::Forge));
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut next = last.clone();
        let old = last.record;
        match step {
            Step::Wait => next.now += 1,
            Step::Claim { member, tick } => {
                let from = old.bound.max(tick);
                let new = Rec {
                    epoch: old.epoch + 1,
                    owner: Some(member),
                    from,
                    bound: from + WINDOW,
                };
                if old.epoch == 3 || !self.accepts(last, member, &new) {
                    return None;
                }
                next.record = new;
                next.leases[usize::from(member)] = Some(Lease {
                    record: new,
                    next: from,
                });
            }
            Step::Extend { member, tick } => {
                let lease = next.leases[usize::from(member)].as_mut()?;
                if lease.record != old {
                    next.ended_early = last.now < lease.record.bound;
                    next.leases[usize::from(member)] = None;
                    return Some(next);
                }
                let bound = old.bound.max(tick + WINDOW);
                let new = Rec { bound, ..old };
                if !self.accepts(last, member, &new) {
                    return None; // as if it was not answered
                }
                (lease.record, next.record) = (new, new);
            }
            Step::Issue { member, tick } => {
                let lease = next.leases[usize::from(member)].as_mut()?;
                let at = lease.next.max(tick);
                if at >= lease.record.bound {
                    return None;
                }
                lease.next = at + 1;
                next.repeated |= last.issued & (1 << at) != 0;
                next.issued |= 1 << at;
            }
            Step::Release { member } => {
                let lease = next.leases[usize::from(member)].take()?;
                if lease.record == old {
                    next.record = Rec {
                        owner: None,
                        bound: lease.next,
                        ..old
                    };
                }
            }
            Step::Forge(new) => next.record = new,
        }
        next.blocked = next.record.bound > next.now + AHEAD;
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |_, state: &State| !state.repeated),
            Property::always(KEEPS, |_, state: &State| !state.ended_early),
            Property::always(SOON, |_, state: &State| !state.blocked),
        ]
    }
}

const ONCE: &str = "no position is issued twice";
const KEEPS: &str = "a member keeps its machine ID until its bound";
const SOON: &str = "the record is free soon";

/// The properties that do not hold, until all of these are found.
fn found(fault: Option<Fault>, wanted: &[&'static str]) -> Vec<&'static str> {
    let search = Strangers { fault }
        .checker()
        .finish_when(HasDiscoveries::AllOf(wanted.iter().copied().collect()))
        .spawn_bfs()
        .join();
    println!(
        "strangers, {fault:?}: {} states",
        search.unique_state_count()
    );
    let mut found: Vec<_> = search.discoveries().into_keys().collect();
    found.sort_unstable();
    found
}

#[test]
fn a_stranger_harms_no_member_of_a_pool_server() {
    assert_eq!(found(None, &[ONCE, KEEPS, SOON]), [] as [&str; 0]);
}

#[test]
fn each_part_of_what_a_pool_server_refuses_is_needed() {
    for (fault, ends) in [
        (Fault::AnybodyWrites, &[KEEPS, ONCE][..]),
        (Fault::ClaimsBelow, &[ONCE]),
        (Fault::Anywhere, &[SOON]),
    ] {
        let found = found(Some(fault), ends);
        assert!(
            ends.iter().all(|end| found.contains(end)),
            "{fault:?}: {found:?}"
        );
    }
}
