//! Members of two stores behind one URL. This breaks the assumption of one store, so that IDs can repeat; the model shows
//! where the guard ends that. One machine ID, and a window of two positions; the second store is the younger one.

use std::time::Duration;

use stateright::{Checker, HasDiscoveries, Model, Property};

use super::process::now;
use crate::lease::state::{Answer, Event, Holding as Lease, Plan};
use crate::lease::{Record, StoreError};
use crate::sequence::Rules;

const YOUNGER: usize = 1;
const WINDOW: u8 = 2;
/// Positions in all.
const END: u8 = 6;
/// The last member knows the younger server only.
const MEMBERS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A member takes what it met for any other refusal.
    GoesOn,
    /// The younger server serves its members although it was told.
    Serves,
}

#[derive(Debug, Clone)]
struct TwoStores {
    /// True if each start has an answer from both servers, or a member is refused.
    starts_meet_both: bool,
    fault: Option<Fault>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct State {
    /// Bound and owner of the record, in each store.
    records: [(u8, Option<usize>); 2],
    members: [Member; MEMBERS],
    /// True if the younger server knows of the older store.
    told: bool,
    issued: u8,
    repeated: bool,
    issued_late: bool,
    served_late: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Member {
    #[default]
    Idle,
    Holding {
        store: usize,
        next: u8,
        bound: u8,
        met: bool,
    },
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Start { member: usize, store: usize },
    Extend { member: usize },
    Issue { member: usize },
    Meet { member: usize },
}

/// True if the product ends a lease after this error.
fn ends(error: StoreError) -> bool {
    let plan = Plan::sample(Rules::new(2, 1, 0), Duration::from_secs(1), 1);
    let mut lease = Lease::new(&plan, 0, None, Record::default(), &now(0, 0));
    matches!(
        lease.on_answer(&plan, Answer::Failed(error), &now(0, 0)),
        Event::Broken(_)
    )
}

impl TwoStores {
    fn met_two(&self) -> bool {
        ends(match self.fault {
            Some(Fault::GoesOn) => StoreError::permanent("two stores"),
            _ => StoreError::two_stores("two stores"),
        })
    }

    fn serves(&self, state: &State, store: usize) -> bool {
        store != YOUNGER || !state.told || self.fault == Some(Fault::Serves)
    }
}

impl Model for TwoStores {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (member, it) in state.members.iter().enumerate() {
            let sees_both = member + 1 < MEMBERS;
            match it {
                Member::Idle if !sees_both => steps.push(Step::Start {
                    member,
                    store: YOUNGER,
                }),
                Member::Idle => steps.extend([0, 1].map(|store| Step::Start { member, store })),
                Member::Holding { .. } => {
                    steps.extend([Step::Extend { member }, Step::Issue { member }]);
                    steps.extend(sees_both.then_some(Step::Meet { member }));
                }
                Member::Over => {}
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut next = last.clone();
        match step {
            Step::Start { member, store } => {
                if !self.serves(last, store) || self.starts_meet_both && store == YOUNGER {
                    next.members[member] = Member::Over;
                    return Some(next);
                }
                let (old, _) = last.records[store];
                let bound = (old + WINDOW).min(END);
                next.served_late |= store == YOUNGER && last.told;
                next.records[store] = (bound, Some(member));
                next.members[member] = Member::Holding {
                    store,
                    next: old,
                    bound,
                    met: false,
                };
            }
            Step::Extend { member } => {
                let Member::Holding { store, bound, .. } = &mut next.members[member] else {
                    return None;
                };
                let owns = last.records[*store].1 == Some(member);
                if !owns || !self.serves(last, *store) && self.met_two() {
                    next.members[member] = Member::Over;
                    return Some(next);
                }
                if !self.serves(last, *store) {
                    return None;
                }
                next.served_late |= *store == YOUNGER && last.told;
                *bound = (*bound + WINDOW).min(END);
                next.records[*store].0 = *bound;
            }
            Step::Issue { member } => {
                let Member::Holding {
                    next: at,
                    bound,
                    met,
                    store,
                } = &mut next.members[member]
                else {
                    return None;
                };
                if at >= bound {
                    return None;
                }
                next.issued_late |= *met && *store == YOUNGER;
                next.repeated |= last.issued & (1 << *at) != 0;
                next.issued |= 1 << *at;
                *at += 1;
            }
            Step::Meet { member } => {
                let Member::Holding { store, met, .. } = &mut next.members[member] else {
                    return None;
                };
                (*met, next.told) = (true, true);
                if *store == YOUNGER && self.met_two() {
                    next.members[member] = Member::Over;
                }
            }
        }
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(STOPS, |_, state: &State| !state.issued_late),
            Property::always(REFUSES, |_, state: &State| !state.served_late),
            Property::always(ONCE, |this: &Self, state: &State| {
                !this.starts_meet_both || !state.repeated
            }),
            Property::sometimes(REPEATS, |_, state: &State| state.repeated),
        ]
    }
}

const STOPS: &str = "a member of the younger store that met both issues nothing";
const REFUSES: &str = "the younger server that was told gives no window";
const ONCE: &str = "nothing repeats if each start meets both";
const REPEATS: &str = "until they meet, members of two stores repeat";

fn found(starts_meet_both: bool, fault: Option<Fault>) -> Vec<&'static str> {
    let model = TwoStores {
        starts_meet_both,
        fault,
    };
    let search = model
        .checker()
        .finish_when(HasDiscoveries::All)
        .spawn_bfs()
        .join();
    println!(
        "two stores, {fault:?}: {} states",
        search.unique_state_count()
    );
    let mut found: Vec<_> = search.discoveries().into_keys().collect();
    found.sort_unstable();
    found
}

#[test]
fn members_of_two_stores_repeat_nothing_once_they_met_both() {
    assert_eq!(found(false, None), [REPEATS]);
    assert_eq!(found(true, None), [] as [&str; 0]);
}

#[test]
fn each_part_of_the_guard_is_needed() {
    assert!(found(false, Some(Fault::GoesOn)).contains(&STOPS));
    assert!(found(false, Some(Fault::Serves)).contains(&REFUSES));
}
