//! A process, driven as slot/driver.rs drives it. All its decisions are made by the product.

use std::collections::BTreeMap;
use std::time::Duration;

use vesta_intf::IdMeta;

use super::fault::Fault;
use super::state::{Answer, Births, Holding, Mark, NAMESPACE, Process, Rec, Sent, State};
use super::{Copies, Protocol, small};
use crate::lease::area::outcome;
use crate::lease::state::Answer as Told;
use crate::lease::state::{Action, Ask, Event, Holding as Lease, Now, Plan, Write};
use crate::lease::{Cas, Marks, Namespace, Record, StoreError};
use crate::sequence::advance;

/// Any time is right for a request: chance decides when something is due.
pub(super) fn now(tick: u64, number: u8) -> Now {
    Now {
        monotonic: Duration::ZERO,
        // No claim is too far ahead of this clock.
        wall: IdMeta::MAX_PEAK.end(),
        wall_tick: tick,
        tick,
        suspect: false,
        random: number.into(),
        jitter: number.into(),
    }
}

pub(super) fn marks(births: Births) -> Option<Marks> {
    let births: BTreeMap<u64, u64> = (0..)
        .zip(births)
        .filter(|(_, birth)| *birth > 0)
        .map(|(m, b)| (m, b.into()))
        .collect();
    (!births.is_empty()).then_some(Marks {
        namespace: NAMESPACE,
        births,
    })
}

pub(super) fn births(marks: Option<&Marks>) -> Births {
    let birth = |machine: u64| marks.and_then(|marks| marks.births.get(&machine)).copied();
    [0, 1].map(|machine| small(birth(machine).unwrap_or(0)))
}

pub(super) fn rec(record: Option<&Record>) -> Rec {
    record.map_or(Rec::default(), Rec::from)
}

impl Protocol {
    pub(super) fn plan(&self) -> Plan {
        let window = Duration::from_secs(self.window_ticks);
        let mut plan = Plan::sample(self.rules, window, small(self.machines).into());
        plan.timing.renew_every = Duration::ZERO;
        plan
    }

    pub(super) fn issue(&self, state: &mut State, process: usize, tick: u64) -> Option<()> {
        let Process::Holding(holding) = &mut state.processes[process] else {
            return None;
        };
        if holding.sealed.is_some() && self.fault != Some(Fault::ReleaseWithoutSeal) {
            return None;
        }
        if holding.forked && self.fault != Some(Fault::ChildIssues) {
            return None;
        }
        let bound = match self.fault {
            Some(Fault::BoundAfterUse) => u64::MAX,
            Some(Fault::UseBeforeReply) => holding
                .pending
                .map_or(holding.bound, |new| new.bound.max(holding.bound))
                .into(),
            _ => holding.bound.into(),
        };
        let claim = advance(holding.next.into(), tick, 1, &self.rules, bound).ok()?;
        holding.next = small(claim.end);
        let (machine, acknowledged) = (usize::from(holding.machine), holding.record.bound);
        let epoch = holding.record.epoch;
        for position in small(claim.start)..small(claim.end) {
            let copied = position < state.exposed[machine];
            // After the store went back, other processes may repeat until a holder notices.
            if state.issued[machine] & (1 << position) != 0 && !state.went_back {
                state.mark(if copied {
                    Mark::COPY_REPEATED
                } else {
                    Mark::REPEATED
                });
            }
            if self.goes_back {
                if state.own[process][machine] & (1 << position) != 0 {
                    state.mark(Mark::OWN_REPEATED);
                }
                state.own[process][machine] |= 1 << position;
            }
            let durable = state.records[machine].bound;
            if position >= acknowledged || (position >= durable && !copied && !state.forgot()) {
                state.mark(Mark::UNCOVERED);
            }
            let in_force = epoch == state.records[machine].epoch;
            if in_force && position < state.claimed_above[machine] && !state.forgot() {
                state.mark(Mark::BELOW_FLOOR);
            }
            state.issued[machine] |= 1 << position;
        }
        Some(())
    }

    pub(super) fn extend(&self, state: &mut State, process: usize, tick: u64) -> Option<()> {
        let attempt = state.draw(process);
        let Process::Holding(holding) = &mut state.processes[process] else {
            return None;
        };
        holding.pending = Some(change(
            self.lease(holding).next(&self.plan(), &now(tick, attempt)),
        )?);
        Some(())
    }

    pub(super) fn release(&self, state: &mut State, process: usize) -> Option<()> {
        let Process::Holding(holding) = &mut state.processes[process] else {
            return None;
        };
        if self.fault == Some(Fault::ExtendMayLower) {
            return None; // not needed: this fault concerns extends only
        }
        holding.sealed = Some(match self.fault {
            Some(Fault::ReleaseOneTooFar) => holding.next.saturating_sub(1),
            _ => holding.next,
        });
        self.send_release(state, process);
        Some(())
    }

    /// Sends the release of a sealed lease, unless the outcome of another change is still open.
    fn send_release(&self, state: &mut State, process: usize) {
        let Process::Holding(holding) = state.processes[process] else {
            return;
        };
        if holding.pending.is_none() && !holding.raising && state.may_send(self.requests) {
            let attempt = state.draw(process);
            let pending = change(self.lease(&holding).next(&self.plan(), &now(0, attempt)));
            assert!(pending.is_some(), "a release is due");
            state.processes[process] = Process::Holding(Holding { pending, ..holding });
        }
    }

    /// The lease in the product's form, made by the product from what the state keeps.
    fn lease(&self, holding: &Holding) -> Lease {
        let mut record = Record::from(holding.record);
        if self.fault == Some(Fault::ExtendMayLower) {
            record.bound = 0; // so that any bound looks higher
        }
        let machine = holding.machine.into();
        let mut lease = Lease::new(&self.plan(), machine, None, record, &now(0, 0));
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

    /// The store refuses a holder's request. Nothing else changes. The state is stuck if the store
    /// answers from then on and the holder does not issue again.
    pub(super) fn refuse(&self, state: &mut State, process: usize) -> Option<()> {
        let Process::Holding(holding) = state.processes[process] else {
            return None;
        };
        let mut lease = self.lease(&holding);
        let refusal = match self.fault {
            Some(Fault::SealedByRefusal) => StoreError::replaced(""),
            _ => StoreError::permanent(""),
        };
        let event = lease.on_answer(&self.plan(), Told::Failed(refusal), &now(0, 0));
        if !matches!(event, Event::Unsure(_)) || !self.goes_on(state.clone(), process) {
            state.mark(Mark::STUCK);
        }
        Some(())
    }

    /// True if a holder issues again, or gives its machine ID up, once every request is answered.
    fn goes_on(&self, mut state: State, process: usize) -> bool {
        let tick = self.last_tick;
        for _ in 0..3 {
            let Process::Holding(holding) = state.processes[process] else {
                return true;
            };
            let is_over = u64::from(holding.next) >= self.rules.position(tick + 1);
            if is_over
                || holding.sealed.is_some()
                || self.issue(&mut state, process, tick).is_some()
            {
                return true;
            }
            if holding.pending.is_none() {
                self.extend(&mut state, process, tick);
            }
            self.deliver(&mut state, process);
            self.receive(&mut state, process);
        }
        false
    }

    /// A holder that saw the store go back raises the floor above what it issued, and gives up.
    pub(super) fn raise_floor(&self, state: &mut State, process: usize) -> Option<()> {
        let Process::Holding(holding) = state.processes[process] else {
            return None;
        };
        let mut lease = self.lease(&Holding {
            pending: None,
            ..holding
        });
        // Brings the lease to where it met the earlier record.
        let _ = lease.on_answer(&self.plan(), Told::NoNamespace, &now(0, 0));
        let Action::Ask(Ask::Amend(facts)) = lease.next(&self.plan(), &now(0, 0)) else {
            unreachable!("it raises the floor first")
        };
        if self.fault != Some(Fault::FloorNotRaised) {
            state.floor = state.floor.max(small(facts.floor));
        }
        let namespace = Namespace {
            uuid: NAMESPACE,
            floor: state.floor.into(),
            ..Namespace::default()
        };
        let event = lease.on_answer(&self.plan(), Told::Namespace(namespace), &now(0, 0));
        assert!(matches!(event, Event::GivenUp(true)), "{event:?}");
        self.give_up(state, process, &holding);
        Some(())
    }

    fn give_up(&self, state: &mut State, process: usize, holding: &Holding) {
        if state.floor < holding.next {
            state.mark(Mark::UNPROTECTED);
        }
        let sealed = Rec {
            bound: holding.next.min(holding.record.bound),
            ..holding.record
        };
        self.end(state, process, holding, sealed);
    }

    fn send_again(&self, lease: &mut Lease, tick: u64, pending: Rec) {
        let again = change(lease.next(&self.plan(), &now(tick, pending.attempt)));
        assert_eq!(again, Some(pending), "it was sent before");
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
        let answer = if self.fault == Some(Fault::TimeOutIsSuccess) {
            Some(Answer::Done)
        } else {
            None
        };
        self.take_in(state, process, answer)
    }

    /// Passes a reply to the product, or a failure if there is none yet, and applies the outcome.
    fn take_in(&self, state: &mut State, process: usize, answer: Option<Answer>) -> Option<()> {
        match state.processes[process] {
            Process::Idle { .. } => None,
            Process::Claiming(claiming) if answer.is_none() && self.is_sent_once(&claiming) => {
                self.lose(state, process);
                Some(())
            }
            Process::Claiming(claiming) => {
                // Without an answer the same request is sent again: nothing has changed.
                self.take_in_claim(state, process, claiming, answer?);
                Some(())
            }
            Process::Holding(holding) => {
                let answer = answer.map(|a| holding.pending.map_or(a, |p| self.understood(a, p)));
                self.take_in_change(state, process, holding, answer);
                Some(())
            }
        }
    }

    pub(super) fn understood(&self, answer: Answer, wanted: Rec) -> Answer {
        match answer {
            Answer::Conflict(current)
                if self.fault == Some(Fault::EpochDecides) && current.epoch == wanted.epoch =>
            {
                Answer::Done
            }
            other => other,
        }
    }

    fn take_in_change(
        &self,
        state: &mut State,
        process: usize,
        mut holding: Holding,
        answer: Option<Answer>,
    ) {
        let (Some(request), Some(pending)) = (holding.request(), holding.pending) else {
            return;
        };
        let told = match answer {
            None => Told::Failed(StoreError::unavailable("", std::io::Error::other(""))),
            Some(answer) => Told::Record(understood(answer, pending)),
        };
        let mut lease = self.lease(&holding);
        let event = lease.on_answer(&self.plan(), told, &now(0, 0));
        match event {
            Event::Unsure(_) => {
                // Whatever the clock shows by now, and with another random number.
                for tick in 0..=self.last_tick {
                    let again = change(lease.next(&self.plan(), &now(tick, u8::MAX)));
                    assert_eq!(again, Some(pending), "an unanswered request is sent again");
                }
                return;
            }
            Event::Raised(record) => {
                let record = Rec::from(&record);
                holding.bound = holding.bound.max(record.bound);
                holding = Holding {
                    record,
                    pending: None,
                    ..holding
                };
                state.processes[process] = Process::Holding(holding);
                if holding.sealed.is_some() {
                    self.send_release(state, process);
                }
            }
            Event::Released(record) => self.end(state, process, &holding, (&record).into()),
            Event::Fenced(_) => {
                // Only a successor that began at or above the bound fences.
                self.end(state, process, &holding, holding.record);
            }
            Event::WentBack(_) if self.fault == Some(Fault::FloorRaisedAfterwards) => {
                self.give_up(state, process, &holding);
            }
            Event::WentBack(_) => {
                let sealed = holding.sealed.or(Some(holding.next));
                holding = Holding {
                    pending: None,
                    reply: None,
                    sealed,
                    raising: true,
                    ..holding
                };
                state.processes[process] = Process::Holding(holding);
            }
            other => unreachable!("{other:?}"),
        }
        self.leave(state, request);
    }

    /// Ends the lease; its state file shows what was last acknowledged.
    fn end(&self, state: &mut State, process: usize, holding: &Holding, record: Rec) {
        // If the store may go back, the process itself remembers; otherwise its state file does.
        if self.remembering || self.goes_back {
            state.remembered[process][usize::from(holding.machine)] = Some(record);
        }
        let revived = self.fault == Some(Fault::SealedIsRevived);
        let last = revived.then_some((holding.machine, holding.next));
        state.processes[process] = Process::Idle { last };
    }

    /// Makes the process forget what it waits for.
    pub(super) fn lose(&self, state: &mut State, process: usize) {
        let request = match state.processes[process] {
            Process::Idle { .. } => None,
            Process::Claiming(claiming) if self.is_sent_once(&claiming) && claiming.arrived => None,
            Process::Claiming(claiming) => claiming.request(),
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
            state.own[process] = Default::default();
        } else if let Process::Holding(holding) = state.processes[process] {
            state.remembered[process][usize::from(holding.machine)] = Some(holding.record);
        }
        self.lose(state, process);
    }

    /// Forks a process: its child has the lease, but no thread that renews it.
    pub(super) fn fork(&self, state: &mut State, from: usize, into: usize) {
        if let Process::Holding(parent) = state.processes[from] {
            let (pending, reply) = (None, None);
            state.processes[into] = Process::Holding(Holding {
                pending,
                reply,
                forked: true,
                ..parent
            });
            state.copied = true;
        }
    }

    /// Copies a process. Original and copy may both issue from the windows reserved or requested at
    /// this moment.
    pub(super) fn copy(&self, state: &mut State, from: usize, into: usize) {
        let original = state.processes[from];
        let (machine, exposed) = match original {
            Process::Idle { .. } => return,
            Process::Claiming(claiming) => {
                let asked = match claiming.sent {
                    Some(Sent::Record(new)) => new.bound,
                    _ => 0,
                };
                (claiming.machine, asked.max(claiming.record.bound))
            }
            Process::Holding(holding) => {
                let asked = holding.pending.map_or(0, |new| new.bound);
                (holding.machine, holding.bound.max(asked))
            }
        };
        state.exposed[usize::from(machine)] = exposed;
        state.processes[into] = original;
        state.copied = true;
        if self.copies == Copies::Differing {
            let number = state.draw(into);
            if let Process::Claiming(copy) = &mut state.processes[into] {
                copy.number = number; // used by its further requests
            }
        }
        if self.copies == Copies::Alike {
            state.seeds[into] = state.seeds[from];
            state.sent[into] = state.sent[from];
        }
    }
}

/// Change that the product sends; `None` if it waits.
fn change(action: Action) -> Option<Rec> {
    match action {
        Action::Ask(Ask::Write(_, write)) => match *write {
            Write::Record { new, .. } => Some((&new).into()),
            Write::Marks { .. } => unreachable!("a lease changes its record only"),
        },
        Action::Wait(_) => None, // the bound is far enough ahead
        other => unreachable!("{other:?}"),
    }
}

/// Meaning of the store's answer to a change of a record, by the product's rule.
pub(super) fn understood(answer: Answer, new: Rec) -> Cas<Record> {
    let current = match answer {
        Answer::Conflict(current) => current,
        _ => new,
    };
    let done = answer == Answer::Done;
    outcome(done, &Record::from(new), || Ok(current.record())).expect("nothing is asked")
}
