//! A store under a doubt that forgets its latest changes, while owners run: one machine ID, one loss.
//!
//! A claim starts a window and the skew ahead, and an extend buys a window. The clock of the server that takes over is
//! up to the skew behind; that of a claimant is up to half of it ahead. Requests arrive at any time. Within what it
//! bought a holder issues any position at any time, so two windows that overlap are IDs that repeat.

use stateright::{Checker, HasDiscoveries, Model, Property};
use vesta_testkit::is_full_run;

const CLAIMS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A holder extends whatever the store's clock shows.
    GoesOn,
    /// It extends until the bound itself.
    IgnoresTheSkew,
    /// Each acknowledged extend moves the time until which it may extend.
    TrustsALateAnswer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Rec {
    /// Number of the claim, or of one that gave the record back.
    owner: usize,
    held: bool,
    bound: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Holder {
    start: u8,
    bound: u8,
    alone_below: u8,
    sent: Option<Extend>,
    over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Extend {
    /// The moment at which the store's clock was read, and what it showed.
    asked: u8,
    theirs: u8,
    /// True once it arrived.
    done: bool,
}

/// Set of records: by owner, the bounds of those that were held and of those that were given back, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Past([[u64; 2]; CLAIMS]);

impl Past {
    const fn insert(&mut self, record: Rec) {
        self.0[record.owner][record.held as usize] |= 1 << record.bound;
    }

    const fn contains(&self, record: Rec) -> bool {
        self.0[record.owner][record.held as usize] >> record.bound & 1 == 1
    }

    fn iter(self) -> impl Iterator<Item = Rec> {
        let all = (0..CLAIMS).flat_map(|owner| [(owner, false), (owner, true)]);
        all.flat_map(move |(owner, held)| {
            let bounds = self.0[owner][usize::from(held)];
            let is_there = move |bound: &u8| bounds >> bound & 1 == 1;
            (0..64)
                .filter(is_there)
                .map(move |bound| Rec { owner, held, bound })
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    moment: u8,
    /// How much the store's clock is behind.
    behind: u8,
    record: Rec,
    /// Earlier records, as the store may go back to each.
    past: Past,
    lost: bool,
    holders: [Option<Holder>; CLAIMS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Wait,
    Claim { holder: usize },
    Ask { holder: usize },
    Arrive { holder: usize },
    Answer { holder: usize },
    Lose { to: Rec, behind: u8 },
}

#[derive(Debug, Clone)]
struct Forgotten {
    skew: u8,
    window: u8,
    end: u8,
    claims: usize,
    fault: Option<Fault>,
}

impl Holder {
    /// The record as it knows it.
    const fn record(&self, owner: usize) -> Rec {
        Rec {
            owner,
            held: true,
            bound: self.bound,
        }
    }
}

impl State {
    const fn theirs(&self) -> u8 {
        self.moment - self.behind
    }

    fn put(&mut self, record: Rec) {
        let before = std::mem::replace(&mut self.record, record);
        if !self.lost {
            self.past.insert(before);
        }
    }

    /// Stops the holders whose extend can no longer be done, because the record is another one, and so is each that the
    /// store may go back to. All that is left to such a holder is the refusal: it changes nothing but this holder, so
    /// it makes no difference when it arrives. Until when a holder was alone counts no more once it stopped.
    fn stop_the_refused(&mut self) {
        let (record, past) = (self.record, self.past);
        for (owner, it) in self.holders.iter_mut().enumerate() {
            let Some(it) = it else { continue };
            let expected = it.record(owner);
            let waits = it.sent.is_some_and(|extend| !extend.done);
            if waits && record != expected && !past.contains(expected) {
                (it.sent, it.over) = (None, true);
            }
            if it.over {
                it.alone_below = 0;
            }
        }
    }

    fn repeats(&self) -> bool {
        let holders: Vec<_> = self.holders.iter().flatten().collect();
        let overlap = |(at, one): (usize, &&Holder)| {
            let meets = |other: &&Holder| one.start.max(other.start) < one.bound.min(other.bound);
            holders[at + 1..].iter().any(meets)
        };
        holders.iter().enumerate().any(overlap)
    }
}

impl Forgotten {
    /// True if another process may have had the record at this time of the store.
    fn is_over(&self, holder: &Holder, theirs: u8) -> bool {
        match self.fault {
            Some(Fault::GoesOn) => false,
            Some(Fault::IgnoresTheSkew) => theirs >= holder.alone_below,
            _ => theirs + self.skew >= holder.alone_below,
        }
    }
}

impl Model for Forgotten {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let first = Holder {
            start: self.skew,
            bound: self.skew,
            alone_below: self.window + self.skew,
            sent: None,
            over: false,
        };
        // It has its first window.
        let bound = self.window + self.skew;
        let mut holders = [None; CLAIMS];
        holders[0] = Some(Holder { bound, ..first });
        vec![State {
            moment: self.skew,
            behind: 0,
            record: Rec {
                owner: 0,
                held: true,
                bound,
            },
            past: Past::default(),
            lost: false,
            holders,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.repeats() {
            return;
        }
        if state.moment < self.end {
            steps.push(Step::Wait);
        }
        for (holder, it) in state.holders[..self.claims].iter().enumerate() {
            match it {
                None if holder == 0 || state.holders[holder - 1].is_some() => {
                    steps.push(Step::Claim { holder });
                }
                None => {}
                Some(it) if it.over => {}
                Some(it) => match it.sent {
                    None => steps.push(Step::Ask { holder }),
                    Some(Extend { done: false, .. }) => steps.push(Step::Arrive { holder }),
                    Some(_) => steps.push(Step::Answer { holder }),
                },
            }
        }
        if !state.lost {
            let behind = |to| (0..=self.skew).map(move |behind| Step::Lose { to, behind });
            steps.extend(state.past.iter().flat_map(behind));
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut next = *last;
        let theirs = last.theirs();
        match step {
            Step::Wait => next.moment += 1,
            Step::Claim { holder } => {
                let is_free = !last.record.held || last.record.bound <= theirs + self.skew / 2;
                let start = last.record.bound.max(theirs + self.window + self.skew);
                next.put(Rec {
                    owner: holder,
                    held: true,
                    bound: start,
                });
                next.holders[holder] = is_free.then_some(Holder {
                    start,
                    bound: start,
                    alone_below: start,
                    sent: None,
                    over: false,
                });
                next.holders[holder]?;
            }
            Step::Ask { holder } => {
                let it = next.holders[holder].as_mut()?;
                if self.is_over(it, theirs) {
                    it.over = true;
                    if last.record.owner == holder && last.record.bound == it.bound {
                        next.put(Rec {
                            held: false,
                            ..last.record
                        });
                    }
                    next.stop_the_refused();
                    return Some(next);
                }
                if theirs + self.window <= it.bound {
                    return None;
                }
                it.alone_below = it.bound;
                it.sent = Some(Extend {
                    asked: last.moment,
                    theirs,
                    done: false,
                });
            }
            Step::Arrive { holder } => {
                let it = next.holders[holder].as_mut()?;
                let expected = it.record(holder);
                if last.record == expected {
                    let extend = it.sent.as_mut()?;
                    extend.done = true;
                    let bound = extend.theirs + self.window;
                    next.put(Rec { bound, ..expected });
                } else {
                    (it.sent, it.over) = (None, true);
                }
            }
            Step::Answer { holder } => {
                let it = next.holders[holder].as_mut()?;
                let Extend { asked, theirs, .. } = it.sent.take()?;
                let late = self.is_over(it, theirs + (last.moment - asked));
                it.bound = theirs + self.window;
                if !late || self.fault == Some(Fault::TrustsALateAnswer) {
                    it.alone_below = it.bound;
                }
            }
            Step::Lose { to, behind } => {
                next.record = to;
                (next.past, next.lost) = (Past::default(), true);
                next.behind = behind;
            }
        }
        next.stop_the_refused();
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let forgotten = |_: &Self, state: &State| {
            state.lost
                && state.record.owner == 0
                && state.holders[1].is_some_and(|it| it.bound > it.start)
        };
        vec![
            Property::always(ONCE, |_, state: &State| !state.repeats()),
            Property::sometimes(FORGOTTEN, forgotten),
        ]
    }
}

/// Skew, window and end.
const SECONDS: [u8; 3] = [2, 4, 16];
const LONGER: [u8; 3] = [2, 6, 20];
const HALVES: [u8; 3] = [4, 8, 22];

const ONCE: &str = "no two holders have one position";
const FORGOTTEN: &str = "a successor that had a window is forgotten";

fn found(claims: usize, [skew, window, end]: [u8; 3], fault: Option<Fault>) -> Vec<&'static str> {
    let model = Forgotten {
        skew,
        window,
        end,
        claims,
        fault,
    };
    let search = model
        .checker()
        .finish_when(match fault {
            None => HasDiscoveries::AnyFailures,
            Some(_) => HasDiscoveries::All,
        })
        .spawn_bfs()
        .join();
    println!(
        "a forgotten successor, {claims} claims, {fault:?}: {} states",
        search.unique_state_count()
    );
    let mut found: Vec<_> = search.discoveries().into_keys().collect();
    found.sort_unstable();
    found
}

/// In seconds and in half seconds; in the full run with a longer window, and with a third claim.
#[test]
fn nothing_repeats_when_a_successor_is_forgotten() {
    for size in [SECONDS, HALVES] {
        assert_eq!(found(2, size, None), [FORGOTTEN]);
    }
    if is_full_run() {
        assert_eq!(found(2, LONGER, None), [FORGOTTEN]);
        assert_eq!(found(3, SECONDS, None), [FORGOTTEN]);
    }
}

#[test]
fn each_part_of_the_rule_about_forgotten_successors_is_needed() {
    for (fault, size) in [
        (Fault::GoesOn, SECONDS),
        (Fault::IgnoresTheSkew, [4, 8, 28]),
        (Fault::TrustsALateAnswer, LONGER),
    ] {
        assert!(found(2, size, Some(fault)).contains(&ONCE), "{fault:?}");
    }
}
