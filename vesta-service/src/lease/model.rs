//! Model of the reservation protocol, explored state by state.
//!
//! It runs the product's own state machine: the candidates (`state::candidates`), the attempt on one of them
//! (`state::attempt`), the lease after it (`state::extending`), the meaning of a reply (`area::outcome`), and
//! the positions that are issued (`sequence::advance`). The model is the world around them, as hostile as
//! docs/inside/safety.md allows:
//!
//! * a request reaches the store at any time after it was sent, never, or several times if the product sends
//!   it again;
//! * a reply reaches its process at any time or never, but only while the process waits for this very request:
//!   the client of a store ensures that no reply is taken for another's;
//! * the store refuses any request of a holder;
//! * an operator raises the floor, or deletes a record, between any two steps;
//! * the store goes back to any earlier state, once;
//! * a process crashes at any time and remembers the contents of its state file, or nothing;
//! * each reading of a clock shows any time, and any process that wants a record may consider its owner long
//!   expired;
//! * with [`Copies`], the memory of a process is copied once, or the process is forked.
//!
//! ```text
//!  model.rs            what is explored, and what must hold
//!  model/state.rs      one state, small: a search holds millions
//!  model/world.rs      the store and the network
//!  model/process.rs    a process, driven as slot/driver.rs drives it
//!  model/fault.rs      one broken rule at a time, to check that the model notices it
//!  model/symmetry.rs   states that differ only in numbering
//!  model/forgotten.rs  a store under a doubt that forgets a takeover (abstract: clocks and windows only)
//!  model/strangers.rs  members of a pool server, and a stranger with a token
//!  model/two_stores.rs members of two stores
//!  model/tests.rs      the searches
//! ```

mod claiming;
mod fault;
mod forgotten;
mod process;
mod state;
mod strangers;
mod symmetry;
mod tests;
mod two_stores;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use stateright::{Model, Property};

use crate::lease::state::Survey;
use crate::lease::{Choice, ClaimOrder, Local, Record};
use crate::sequence::Rules;
use fault::Fault;
use state::{Backup, Mark, Process, State};

/// One step of one participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Surveys the records and chooses one.
    Claim { process: usize, machine: usize },
    /// Takes the attempt's next step. The clock shows this tick.
    GoOn { process: usize, tick: u64 },
    /// Stops waiting for the reply. The request may still arrive.
    GiveUp { process: usize },
    /// Issues a position. The clock shows this tick.
    Issue { process: usize, tick: u64 },
    /// Makes the lease send what is due. The clock shows this tick.
    Extend { process: usize, tick: u64 },
    /// Seals the lease and begins to release it.
    Release { process: usize },
    /// The request that the process waits for reaches the store. The reply is on its way, in place of an
    /// earlier one.
    Deliver { process: usize },
    /// A request that no process waits for any more reaches the store.
    DeliverLate { request: usize },
    /// The reply reaches the process.
    Receive { process: usize },
    /// No reply reaches the process in time.
    TimeOut { process: usize },
    /// The process is gone, and another one starts in its place.
    Crash { process: usize, remembers: bool },
    /// The memory of one process is copied into another.
    Copy { from: usize, into: usize },
    /// One process is forked, and its child takes the place of another.
    Fork { from: usize, into: usize },
    /// The store refuses what a holder asked for.
    Refuse { process: usize },
    /// A holder that saw the store go back raises the floor and gives up.
    RaiseOwnFloor { process: usize },
    /// The state of the store is saved.
    BackUp,
    /// The store goes back to the saved state.
    GoBack,
    /// An operator raises the floor.
    RaiseFloor,
    /// An operator deletes the record; with the fault [`RecordVanishes`](Fault::RecordVanishes), the mark
    /// too.
    Vanish { machine: usize },
}

/// Copies of the memory of a process, at most one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copies {
    Never,
    /// Original and copy draw different random numbers from then on.
    Differing,
    /// Both draw the same numbers from then on, as if the system's generator had been copied too.
    Alike,
    /// Fork: the copy is a child without the threads of its parent.
    Forked,
}

/// Size of an exploration.
#[derive(Debug, Clone)]
struct Protocol {
    rules: Rules,
    window_ticks: u64,
    /// Last tick that a clock shows.
    last_tick: u64,
    processes: usize,
    machines: usize,
    /// Total number of different requests.
    requests: u8,
    /// True if a process may remember, after a crash, what the store acknowledged to it.
    remembering: bool,
    /// Position to which an operator may raise the floor; 0 for never.
    floor: u8,
    /// Number of records that may be deleted.
    deletions: u8,
    /// True if the store goes back once, to an earlier state.
    goes_back: bool,
    copies: Copies,
    fault: Option<Fault>,
    /// True if states that differ only in the numbers of processes and machine IDs count once.
    symmetric: bool,
    /// True to look for examples too: they show what the search has covered.
    examples: bool,
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let end = match self.fault {
            Some(Fault::FloorReadOnce) => Mark::BELOW_FLOOR,
            Some(Fault::SealedByRefusal) => Mark::STUCK,
            Some(Fault::OwnForgotten) => Mark::OWN_REPEATED,
            Some(Fault::FloorNotRaised | Fault::FloorRaisedAfterwards) => Mark::UNPROTECTED,
            Some(_) => Mark::REPEATED,
            None => Mark::VIOLATIONS,
        };
        if state.has_any(end) {
            return;
        }
        let ticks = 0..=self.last_tick;
        for process in 0..self.processes {
            match &state.processes[process] {
                Process::Idle { .. } => {
                    if state.may_send(self.requests) {
                        let machines = self.choices(state, process).into_iter();
                        steps.extend(machines.map(|machine| Step::Claim { process, machine }));
                    }
                    if state.remembered[process].iter().any(Option::is_some) {
                        steps.push(Step::Crash {
                            process,
                            remembers: false,
                        });
                    }
                    self.push_copies(state, process, steps);
                }
                Process::Claiming(claiming) if claiming.sent.is_none() => {
                    steps.push(Step::GiveUp { process });
                    steps.extend(ticks.clone().map(|tick| Step::GoOn { process, tick }));
                }
                Process::Claiming(claiming) => {
                    // An unanswered creation is given up, too, instead of being sent again.
                    steps.push(Step::GiveUp { process });
                    if !claiming.arrived {
                        steps.push(Step::Deliver { process });
                    }
                    steps.push(Step::TimeOut { process });
                    if claiming.reply.is_some() {
                        steps.push(Step::Receive { process });
                    }
                }
                Process::Holding(holding) if holding.forked => {
                    steps.extend(ticks.clone().map(|tick| Step::Issue { process, tick }));
                    // The child ends, or builds another service.
                    steps.push(Step::Crash {
                        process,
                        remembers: false,
                    });
                }
                Process::Holding(holding) if holding.raising => {
                    steps.push(Step::RaiseOwnFloor { process });
                    steps.push(Step::Crash {
                        process,
                        remembers: false,
                    });
                }
                Process::Holding(holding) => {
                    steps.extend(ticks.clone().map(|tick| Step::Issue { process, tick }));
                    if holding.pending.is_some() {
                        steps.push(Step::Deliver { process });
                        steps.push(Step::TimeOut { process });
                        steps.push(Step::Refuse { process });
                    } else if state.may_send(self.requests) && holding.sealed.is_none() {
                        steps.extend(ticks.clone().map(|tick| Step::Extend { process, tick }));
                    }
                    if holding.sealed.is_none() && state.may_send(self.requests) {
                        steps.push(Step::Release { process });
                    }
                    if holding.reply.is_some() {
                        steps.push(Step::Receive { process });
                    }
                    steps.push(Step::Crash {
                        process,
                        remembers: false,
                    });
                    if self.remembering {
                        steps.push(Step::Crash {
                            process,
                            remembers: true,
                        });
                    }
                }
            }
        }
        steps.extend((0..state.late.len()).map(|request| Step::DeliverLate { request }));
        if state.floor < self.floor {
            steps.push(Step::RaiseFloor);
        }
        if self.goes_back && !state.went_back {
            steps.push(if state.backup.is_none() {
                Step::BackUp
            } else {
                Step::GoBack
            });
        }
        if state.deleted < self.deletions || self.fault == Some(Fault::RecordVanishes) {
            steps.extend((0..self.machines).map(|machine| Step::Vanish { machine }));
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut next = last.clone();
        match step {
            Step::Claim { process, machine } => self.claim(&mut next, process, machine)?,
            Step::GoOn { process, tick } => self.go_on(&mut next, process, tick)?,
            Step::GiveUp { process } => self.lose(&mut next, process),
            Step::Issue { process, tick } => self.issue(&mut next, process, tick)?,
            Step::Extend { process, tick } => self.extend(&mut next, process, tick)?,
            Step::Release { process } => self.release(&mut next, process)?,
            Step::Deliver { process } => self.deliver(&mut next, process),
            Step::DeliverLate { request } => {
                let arrives = next.late[request];
                if arrives.creates() {
                    next.late.remove(request);
                }
                self.apply(&mut next, &arrives);
            }
            Step::Receive { process } => self.receive(&mut next, process)?,
            Step::TimeOut { process } => self.time_out(&mut next, process)?,
            Step::Crash { process, remembers } => self.crash(&mut next, process, remembers),
            Step::Copy { from, into } => self.copy(&mut next, from, into),
            Step::Fork { from, into } => self.fork(&mut next, from, into),
            Step::Refuse { process } => self.refuse(&mut next, process)?,
            Step::RaiseOwnFloor { process } => self.raise_floor(&mut next, process)?,
            Step::BackUp => {
                let State {
                    records,
                    births,
                    floor,
                    ..
                } = *last;
                next.backup = Some(Backup {
                    records,
                    births,
                    floor,
                });
            }
            Step::GoBack => {
                let Backup {
                    records,
                    births,
                    floor,
                } = next.backup.take()?;
                (next.records, next.births, next.floor) = (records, births, floor);
                next.went_back = true;
            }
            Step::RaiseFloor => next.floor = self.floor,
            Step::Vanish { machine } => {
                if next.records[machine].birth == 0 {
                    return None;
                }
                next.records[machine] = state::Rec::default();
                next.deleted = (next.deleted + 1).min(self.deletions);
                if self.fault == Some(Fault::RecordVanishes) {
                    next.births[machine] = 0;
                }
            }
        }
        if next == *last {
            return None;
        }
        if self.symmetric {
            symmetry::sort(&mut next);
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = state::rules().into_iter();
        let mut properties: Vec<_> = always
            .map(|(name, condition)| Property::always(name, condition))
            .collect();
        if self.examples {
            let sometimes = state::examples().into_iter();
            properties
                .extend(sometimes.map(|(name, condition)| Property::sometimes(name, condition)));
        }
        if matches!(self.copies, Copies::Differing | Copies::Alike) {
            properties.push(Property::sometimes(COPY_REPEATS, |_, state: &State| {
                state.has_any(Mark::COPY_REPEATED)
            }));
        }
        properties
    }
}

/// Harm that no rule can prevent.
const COPY_REPEATS: &str = "a copy issues what was issued";

impl Protocol {
    /// Machine IDs that a process may try to claim. Its clock shows the end of time, and it has watched for
    /// long enough, so a takeover is possible at any time.
    fn choices(&self, state: &State, process: usize) -> Vec<usize> {
        let records: BTreeMap<u64, Record> = (0..)
            .zip(&state.records[..self.machines])
            .filter_map(|(machine, rec)| Some((machine, rec.record()?)))
            .collect();
        let local = |(machine, rec): (u64, Option<state::Rec>)| {
            Some((
                machine,
                Local {
                    machine,
                    record: rec?.into(),
                    is_damaged: false,
                    elsewhere: Vec::new(),
                },
            ))
        };
        let locals: BTreeMap<_, _> = (0..)
            .zip(state.remembered[process])
            .filter_map(local)
            .collect();
        let choice = Choice::Any(0..=u64::from(small(self.machines)) - 1);
        let survey = Survey {
            block: choice.range(),
            records: &records,
            earlier: Some(&records),
            watched: Duration::ZERO,
            watch: Duration::ZERO,
            locals: &locals,
            count: 1,
            choice: &choice,
            order: ClaimOrder::Lowest,
            now: self.rules.position(self.rules.max_tick() + 1),
            grace_ticks: 0,
            rules: &self.rules,
            start_at: 0,
            random: 0,
        };
        let candidates = survey.candidates().into_iter();
        candidates
            .map(|candidate| usize::from(small(candidate.machine)))
            .collect()
    }

    fn push_copies(&self, state: &State, into: usize, steps: &mut Vec<Step>) {
        if self.copies != Copies::Never && !state.copied {
            let others = (0..self.processes).filter(|from| *from != into);
            let running =
                others.filter(|from| !matches!(state.processes[*from], Process::Idle { .. }));
            steps.extend(running.map(|from| match self.copies {
                Copies::Forked => Step::Fork { from, into },
                _ => Step::Copy { from, into },
            }));
        }
    }
}

/// Converts a number of the product to one of the model.
fn small(number: impl TryInto<u8>) -> u8 {
    number
        .try_into()
        .unwrap_or_else(|_| panic!("the model's numbers have 8 bits"))
}
