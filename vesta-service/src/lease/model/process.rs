//! A process, driven as keeper.rs and claim.rs drive it. What it decides is decided by the product.

use std::time::Duration;

use vesta_intf::UnixMillis;

use super::fault::Fault;
use super::state::{Answer, Claiming, Holding, Mark, Process, Rec, Request, State};
use super::{Copies, Protocol, small};
use crate::lease::claim::terms::{Terms, took_effect};
use crate::lease::state::{Action, Event, Lease, Now, Reply};
use crate::lease::{Cas, Record};
use crate::sequence::advance;

/// Every time is right for a request: what is due, when, is left to chance.
fn now(tick: u64, attempt: u8) -> Now {
    Now { monotonic: Duration::ZERO, tick, wall: UnixMillis(0), random: attempt.into() }
}

impl Protocol {
    pub(super) fn claim(
        &self,
        state: &mut State,
        process: usize,
        machine: usize,
        tick: u64,
    ) -> Option<()> {
        let Process::Idle { last } = state.processes[process] else { return None };
        let old = state.records[machine];
        let record = Record::from(old);
        let terms = Terms {
            rules: &self.rules,
            window_ticks: self.window_ticks,
            floor: 0,
            remembered: state.remembered[process][machine].map_or(0, |rec| rec.bound.into()),
            guard: false,
            from_tick: tick,
        };
        let start = match self.fault {
            Some(Fault::ClaimAtTheClock) => self.rules.position(tick),
            Some(Fault::ClaimBelowTheBound) => terms.start(&record).saturating_sub(1),
            _ => terms.start(&record),
        };
        if self.rules.tick(start) > self.rules.max_tick() {
            return None; // the layout's end: nothing is claimed
        }
        let number = state.draw(process);
        let new = Rec::from(&terms.claimed(&record, start, number.into(), number.into()));
        let request = Request { machine: small(machine), expected: old, new };
        let claiming = Claiming { request, next: small(start), reply: None, last };
        state.processes[process] = Process::Claiming(claiming);
        Some(())
    }

    pub(super) fn issue(&self, state: &mut State, process: usize, tick: u64) -> Option<()> {
        let Process::Holding(holding) = &mut state.processes[process] else { return None };
        if holding.sealed.is_some() && self.fault != Some(Fault::ReleaseWithoutSeal) {
            return None;
        }
        let limit = match self.fault {
            Some(Fault::BoundAfterUse) => u64::MAX,
            Some(Fault::UseBeforeReply) => {
                holding.pending.map_or(holding.limit, |new| new.bound.max(holding.limit)).into()
            }
            _ => holding.limit.into(),
        };
        let claim = advance(holding.next.into(), tick, 1, &self.rules, limit).ok()?;
        holding.next = small(claim.end);
        let (machine, acknowledged) = (usize::from(holding.machine), holding.record.bound);
        for position in small(claim.start)..small(claim.end) {
            let copied = position < state.exposed[machine];
            if state.issued[machine] & (1 << position) != 0 {
                state.mark(if copied { Mark::COPY_REPEATED } else { Mark::REPEATED });
            }
            let durable = state.records[machine].bound;
            if position >= acknowledged || (position >= durable && !copied) {
                state.mark(Mark::UNCOVERED);
            }
            state.issued[machine] |= 1 << position;
        }
        Some(())
    }

    pub(super) fn extend(&self, state: &mut State, process: usize, tick: u64) -> Option<()> {
        let attempt = state.draw(process);
        let Process::Holding(holding) = &mut state.processes[process] else { return None };
        match self.lease(holding).next(now(tick, attempt)) {
            Action::Write(expect, new) => {
                if self.fault != Some(Fault::ExtendMayLower) {
                    assert_eq!(expect, Record::from(holding.record).expect());
                }
                holding.pending = Some(Rec::from(&new));
                Some(())
            }
            Action::Wait(_) => None, // the bound is far enough ahead
            Action::Stop => unreachable!("the lease is held"),
        }
    }

    pub(super) fn release(&self, state: &mut State, process: usize) -> Option<()> {
        let Process::Holding(holding) = &mut state.processes[process] else { return None };
        if self.fault == Some(Fault::ExtendMayLower) {
            return None; // not needed, and not what is asked of the lease then
        }
        holding.sealed = Some(match self.fault {
            Some(Fault::ReleaseOneTooFar) => holding.next.saturating_sub(1),
            _ => holding.next,
        });
        self.send_release(state, process);
        Some(())
    }

    /// Sends the release of a sealed line, unless the fate of another change is still open.
    fn send_release(&self, state: &mut State, process: usize) {
        let Process::Holding(holding) = state.processes[process] else { return };
        if holding.pending.is_none() && state.may_send(self.requests) {
            let attempt = state.draw(process);
            match self.lease(&holding).next(now(0, attempt)) {
                Action::Write(expect, new) => {
                    assert_eq!(expect, Record::from(holding.record).expect());
                    let pending = Some(Rec::from(&new));
                    state.processes[process] = Process::Holding(Holding { pending, ..holding });
                }
                other => unreachable!("a release is due: {other:?}"),
            }
        }
    }

    /// The lease as the product has it, made by the product from what the state keeps.
    fn lease(&self, holding: &Holding) -> Lease {
        let mut record = Record::from(holding.record);
        if self.fault == Some(Fault::ExtendMayLower) {
            record.bound = 0; // so any bound looks higher
        }
        let mut lease =
            Lease::new(self.rules, self.window_ticks, Duration::ZERO, record, now(0, 0));
        if let Some(pending) = holding.pending.filter(|pending| !pending.released) {
            let tick = self.rules.tick(pending.bound.into()) - self.window_ticks;
            self.send_again(&mut lease, tick, pending);
        }
        if let Some(sealed_at) = holding.sealed {
            lease.release(sealed_at.into());
        }
        if let Some(pending) = holding.pending.filter(|pending| pending.released) {
            self.send_again(&mut lease, 0, pending);
        }
        lease
    }

    fn send_again(&self, lease: &mut Lease, tick: u64, pending: Rec) {
        let action = lease.next(now(tick, pending.attempt));
        let Action::Write(_, new) = action else { panic!("it was sent before: {action:?}") };
        assert_eq!(Rec::from(&new), pending);
    }

    pub(super) fn receive(&self, state: &mut State, process: usize) -> Option<()> {
        let answer = match &mut state.processes[process] {
            Process::Idle { .. } => None,
            Process::Claiming(claiming) => claiming.reply.take(),
            Process::Holding(holding) => holding.reply.take(),
        };
        self.take_in(state, process, answer)
    }

    pub(super) fn time_out(&self, state: &mut State, process: usize) -> Option<()> {
        let answer =
            if self.fault == Some(Fault::TimeOutIsSuccess) { Some(Answer::Done) } else { None };
        self.take_in(state, process, answer)
    }

    /// Hands a reply to the product, or that there is none yet, and does what it says.
    fn take_in(&self, state: &mut State, process: usize, answer: Option<Answer>) -> Option<()> {
        match state.processes[process] {
            Process::Idle { .. } => None,
            Process::Claiming(claiming) => {
                // Without an answer the very same request is sent again: nothing has changed.
                let answer = self.understood(answer?, claiming.request.new);
                self.take_in_claim(state, process, claiming, answer);
                Some(())
            }
            Process::Holding(holding) => {
                let answer = answer.map(|a| holding.pending.map_or(a, |p| self.understood(a, p)));
                self.take_in_change(state, process, holding, answer);
                Some(())
            }
        }
    }

    fn understood(&self, answer: Answer, wanted: Rec) -> Answer {
        match answer {
            Answer::Conflict(current)
                if self.fault == Some(Fault::EpochDecides) && current.epoch == wanted.epoch =>
            {
                Answer::Done
            }
            other => other,
        }
    }

    fn take_in_claim(&self, state: &mut State, process: usize, c: Claiming, answer: Answer) {
        let Request { machine, new: record, .. } = c.request;
        let outcome = match answer {
            Answer::Done => Cas::Done,
            Answer::Conflict(current) => Cas::Conflict(current.into()),
        };
        state.processes[process] = if took_effect(&outcome, &record.into()) {
            state.remembered[process][usize::from(machine)] = None; // follows the lease from now on
            let next = match c.last {
                Some((sealed, next)) if sealed == machine => next,
                _ => c.next,
            };
            let limit = record.bound;
            let (pending, sealed, reply) = (None, None, None);
            Process::Holding(Holding { machine, record, pending, sealed, reply, next, limit })
        } else {
            Process::Idle { last: c.last }
        };
        self.leave(state, c.request);
    }

    fn take_in_change(
        &self,
        state: &mut State,
        process: usize,
        mut holding: Holding,
        answer: Option<Answer>,
    ) {
        let reply = match answer {
            None => Reply::Unknown,
            Some(Answer::Done) => Reply::Done,
            Some(Answer::Conflict(current)) => Reply::Conflict(current.into()),
        };
        let Some(request) = holding.request() else { return };
        let mut lease = self.lease(&holding);
        let event = lease.on_reply(reply, now(0, 0));
        let record = Rec::from(lease.record());
        match event {
            Event::Unsure => {
                // Whatever the clock says by now, and with another random number at hand.
                for tick in 0..=self.last_tick {
                    self.send_again_unchanged(&mut lease, tick, request.new);
                }
                return;
            }
            Event::Raised(bound) => {
                holding.limit = holding.limit.max(small(bound));
                holding = Holding { record, pending: None, ..holding };
                state.processes[process] = Process::Holding(holding);
                if holding.sealed.is_some() {
                    self.send_release(state, process);
                }
            }
            Event::Released | Event::Fenced(_) => self.end(state, process, &holding, record),
        }
        self.leave(state, request);
    }

    fn send_again_unchanged(&self, lease: &mut Lease, tick: u64, pending: Rec) {
        match lease.next(now(tick, u8::MAX)) {
            Action::Write(_, new) => assert_eq!(Rec::from(&new), pending),
            other => panic!("an unanswered request is sent again: {other:?}"),
        }
    }

    /// The lease is over; its state file shows what was acknowledged last.
    fn end(&self, state: &mut State, process: usize, holding: &Holding, record: Rec) {
        if self.remembering {
            state.remembered[process][usize::from(holding.machine)] = Some(record);
        }
        let revived = self.fault == Some(Fault::SealedIsRevived);
        let last = revived.then_some((holding.machine, holding.next));
        state.processes[process] = Process::Idle { last };
    }

    /// Forgets what it waits for.
    pub(super) fn lose(&self, state: &mut State, process: usize) {
        let request = match state.processes[process] {
            Process::Idle { .. } => None,
            Process::Claiming(claiming) => Some(claiming.request),
            Process::Holding(holding) => holding.request(),
        };
        state.processes[process] = Process::Idle { last: None };
        if let Some(request) = request {
            self.leave(state, request);
        }
    }

    pub(super) fn crash(&self, state: &mut State, process: usize, remembers: bool) {
        if !remembers {
            state.remembered[process] = Default::default();
        } else if let Process::Holding(holding) = state.processes[process] {
            state.remembered[process][usize::from(holding.machine)] = Some(holding.record);
        }
        self.lose(state, process);
    }

    /// What was granted, or asked for, at this moment is what original and copy may both issue.
    pub(super) fn copy(&self, state: &mut State, from: usize, into: usize) {
        let original = state.processes[from];
        let (machine, exposed) = match original {
            Process::Idle { .. } => return,
            Process::Claiming(claiming) => (claiming.request.machine, claiming.request.new.bound),
            Process::Holding(holding) => {
                let asked = holding.pending.map_or(0, |new| new.bound);
                (holding.machine, holding.limit.max(asked))
            }
        };
        state.exposed[usize::from(machine)] = exposed;
        state.processes[into] = original;
        if self.copies == Copies::Alike {
            state.seeds[into] = state.seeds[from];
            state.sent[into] = state.sent[from];
        }
    }
}
