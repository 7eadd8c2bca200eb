//! The store and the network.

use super::Protocol;
use super::fault::Fault;
use super::state::{Answer, Mark, Process, Rec, Request, State};

impl Protocol {
    /// The request that the process waits for reaches the store, and the reply is on its way.
    pub(super) fn deliver(&self, state: &mut State, process: usize) {
        let request = match &state.processes[process] {
            Process::Idle { .. } => None,
            Process::Claiming(claiming) => claiming.request(),
            Process::Holding(holding) => holding.request(),
        };
        let Some(request) = request else { return };
        let answer = self.apply(state, &request);
        match &mut state.processes[process] {
            Process::Idle { .. } => {}
            Process::Claiming(claiming) => {
                claiming.arrived = self.is_sent_once(claiming);
                claiming.reply = Some(answer);
            }
            Process::Holding(holding) => holding.reply = Some(answer),
        }
    }

    /// The store handles a request, in one atomic step.
    pub(super) fn apply(&self, state: &mut State, request: &Request) -> Answer {
        let accepted = self.accepts(state, request);
        match *request {
            Request::Marks { new, .. } => {
                if !accepted {
                    return Answer::Marks(state.births);
                }
                state.births = new;
            }
            Request::Record { machine, new, .. } => {
                let place = usize::from(machine);
                let old = state.records[place];
                if !accepted {
                    return Answer::Conflict(old);
                }
                state.records[place] = new;
                if new.epoch > old.epoch {
                    state.claimed_above[place] = state.floor;
                }
                if new.bound < old.bound && !new.released && !state.went_back {
                    state.mark(Mark::LOWERED);
                }
                // First claims, then extends, finally the release.
                let progress =
                    |rec: &Rec| (rec.birth > 0, rec.epoch, rec.epoch > 0 && rec.owner == 0);
                let grew = progress(&new) > progress(&old)
                    || progress(&new) == progress(&old) && new.bound > old.bound;
                if (!grew || new.epoch > old.epoch + 1) && !state.went_back {
                    state.mark(Mark::RETURNED);
                }
            }
        }
        self.forget_the_dead(state);
        Answer::Done
    }

    fn accepts(&self, state: &State, request: &Request) -> bool {
        match *request {
            Request::Marks { old, .. } => state.births == old,
            Request::Record { machine, old, new } => {
                let current = state.records[usize::from(machine)];
                let extends = new.epoch == old.epoch && old.epoch > 0 && !new.released;
                match self.fault {
                    Some(Fault::ExtendWithoutPrecondition) if extends => true,
                    Some(Fault::ExtendWithoutBound) if extends => {
                        (current.epoch, current.owner) == (old.epoch, old.owner)
                    }
                    _ => current == old,
                }
            }
        }
    }

    /// No process waits for this request any more, but it may still arrive.
    pub(super) fn leave(&self, state: &mut State, request: Request) {
        if let Err(place) = state.late.binary_search(&request) {
            state.late.insert(place, request);
        }
        self.forget_the_dead(state);
    }

    /// Drops requests that can no longer take effect. A request that does not fit the record now
    /// never will, unless the record is deleted: a record does not return to an earlier state,
    /// which is checked. If a fault lets one return, the model merely loses a request, as a network
    /// may.
    fn forget_the_dead(&self, state: &mut State) {
        let late = std::mem::take(&mut state.late);
        let deletable = state.deleted < self.deletions;
        // A store that may still go back may return to the state that a request expects.
        let returns = self.goes_back && !state.went_back;
        let lives =
            |late: &Request| returns || deletable && late.creates() || self.accepts(state, late);
        state.late = late.into_iter().filter(lives).collect();
    }
}
