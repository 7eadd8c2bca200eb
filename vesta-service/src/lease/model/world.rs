//! The store and the network.

use super::Protocol;
use super::fault::Fault;
use super::state::{Answer, Mark, Process, Rec, Request, State};
use crate::lease::Record;

impl Protocol {
    /// What the process waits for reaches the store, and the reply sets out.
    pub(super) fn deliver(&self, state: &mut State, process: usize) {
        let request = match &state.processes[process] {
            Process::Idle { .. } => None,
            Process::Claiming(claiming) => Some(claiming.request),
            Process::Holding(holding) => holding.request(),
        };
        let Some(request) = request else { return };
        let answer = self.apply(state, &request);
        match &mut state.processes[process] {
            Process::Idle { .. } => {}
            Process::Claiming(claiming) => claiming.reply = Some(answer),
            Process::Holding(holding) => holding.reply = Some(answer),
        }
    }

    /// The store handles a request: one atomic step.
    pub(super) fn apply(&self, state: &mut State, request: &Request) -> Answer {
        let record = &mut state.records[usize::from(request.machine)];
        let (old, new) = (*record, request.new);
        if !self.accepts(old, request) {
            return Answer::Conflict(old);
        }
        *record = new;
        if new.bound < old.bound && !new.released {
            state.mark(Mark::LOWERED);
        }
        // First come claims, then extends, last the release.
        let progress = |rec: &Rec| (rec.epoch, rec.epoch > 0 && rec.owner == 0);
        let grew = progress(&new) > progress(&old)
            || progress(&new) == progress(&old) && new.bound > old.bound;
        if !grew || new.epoch > old.epoch + 1 {
            state.mark(Mark::RETURNED);
        }
        self.forget_the_dead(state);
        Answer::Done
    }

    fn accepts(&self, current: Rec, request: &Request) -> bool {
        let extends = request.new.epoch == request.expected.epoch && !request.new.released;
        match self.fault {
            Some(Fault::ExtendWithoutPrecondition) if extends => true,
            Some(Fault::ExtendWithoutBound) if extends => {
                (current.epoch, current.owner) == (request.expected.epoch, request.expected.owner)
            }
            _ => Record::from(current).meets(&request.expect()),
        }
    }

    /// Nobody waits for this request any more; it may still arrive.
    pub(super) fn leave(&self, state: &mut State, request: Request) {
        if let Err(place) = state.late.binary_search(&request) {
            state.late.insert(place, request);
        }
        self.forget_the_dead(state);
    }

    /// A request that does not fit the record now never will: a record does not return to an
    /// earlier state, which is checked. Where a fault lets one return, the model merely loses a
    /// request, as a network may.
    fn forget_the_dead(&self, state: &mut State) {
        let records = state.records;
        state.late.retain(|late| self.accepts(records[usize::from(late.machine)], late));
    }
}
