//! Claims of a process: one attempt after another, each decided by the product.

use super::fault::Fault;
use super::process::{births, marks, now, rec, understood};
use super::state::{Answer, Claiming, Holding, NAMESPACE, Process, Sent, State};
use super::{Protocol, small};
use crate::lease::area::outcome;
use crate::lease::state::{Attempt, Ground, Step, Verdict, Write};
use crate::lease::{Marks, Namespace};

impl Protocol {
    /// Chooses a machine ID and begins an attempt.
    pub(super) fn claim(&self, state: &mut State, process: usize, machine: usize) -> Option<()> {
        let Process::Idle { last } = state.processes[process] else {
            return None;
        };
        let claiming = Claiming {
            machine: small(machine),
            number: state.draw(process),
            floor: state.floor,
            record: state.records[machine],
            births: state.births,
            from: None,
            mine: None,
            sent: None,
            arrived: false,
            reply: None,
            last,
        };
        state.processes[process] = Process::Claiming(claiming);
        self.hurry(state, process);
        Some(())
    }

    pub(super) fn is_sent_once(&self, c: &Claiming) -> bool {
        c.is_sent_once() && self.fault != Some(Fault::CreationSentAgain)
    }

    /// True if the attempt's next step depends on the clock.
    fn needs_clock(&self, state: &State, process: usize, c: &Claiming) -> bool {
        let attempt = self.attempt(state, process, c);
        let step = self.misled(attempt).next(&self.plan(), &now(0, c.number));
        matches!(step, Step::Send(Write::Record { old: Some(_), .. }))
    }

    /// Takes steps as long as no clock is needed: a pause there would be the same as a slower
    /// request.
    fn hurry(&self, state: &mut State, process: usize) {
        while let Process::Claiming(c) = state.processes[process]
            && c.sent.is_none()
            && !self.needs_clock(state, process, &c)
        {
            self.go_on(state, process, 0);
        }
    }

    /// The attempt in the product's form.
    fn attempt(&self, state: &State, process: usize, c: &Claiming) -> Attempt {
        let sent = c.sent.map(|sent| match sent {
            Sent::Record(new) => Write::Record {
                old: c.record.record(),
                new: new.into(),
            },
            Sent::Marks(new) => Write::Marks {
                old: marks(c.births),
                new: marks(new).unwrap_or_default(),
            },
        });
        Attempt {
            machine: c.machine.into(),
            ground: self.ground(state, process, c.machine),
            floor: c.floor.into(),
            record: c.record.record(),
            marks: marks(c.births),
            from: c.from.map(u64::from),
            mine: c.mine.map(u64::from),
            sent,
            ends: None,
        }
    }

    fn ground(&self, state: &State, process: usize, machine: u8) -> Ground {
        let remembered = state.remembered[process][usize::from(machine)];
        let remembered = remembered.filter(|_| self.fault != Some(Fault::OwnForgotten));
        let remembered = remembered.map_or(0, |rec| rec.bound.into());
        Ground {
            namespace: NAMESPACE,
            remembered,
            ..Ground::default()
        }
    }

    /// Falsifies the attempt's knowledge according to the fault.
    fn misled(&self, mut attempt: Attempt) -> Attempt {
        let machine = attempt.machine;
        let births = |marks: &mut Option<Marks>, birth: Option<u64>| {
            let mut all = marks.take().unwrap_or_default();
            all.namespace = NAMESPACE;
            match birth {
                Some(birth) => all.births.insert(machine, birth),
                None => all.births.remove(&machine),
            };
            *marks = Some(all);
        };
        let is_marked = attempt
            .marks
            .as_ref()
            .is_some_and(|marks| marks.births.contains_key(&machine));
        match (self.fault, &mut attempt.record) {
            (Some(Fault::ClaimAtTheClock), Some(record)) => record.bound = 0,
            (Some(Fault::ClaimBelowTheBound), Some(record)) => {
                record.bound = record.bound.saturating_sub(1);
            }
            (Some(Fault::MarkAfterClaim), Some(record)) if !is_marked => {
                births(&mut attempt.marks, Some(record.birth));
            }
            (Some(Fault::MarkWithoutBirth), Some(record)) if is_marked => {
                births(&mut attempt.marks, Some(record.birth));
            }
            (Some(Fault::MarkWithoutBirth | Fault::AbsentTakenAlthoughMarked), None) => {}
            _ => {}
        }
        if self.fault == Some(Fault::AbsentTakenAlthoughMarked) && is_marked {
            let birth = attempt.record.as_ref().map(|record| record.birth);
            births(&mut attempt.marks, birth);
        }
        attempt
    }

    /// Takes the attempt's next step. The clock shows this tick.
    pub(super) fn go_on(&self, state: &mut State, process: usize, tick: u64) -> Option<()> {
        let Process::Claiming(mut c) = state.processes[process] else {
            return None;
        };
        let mut attempt = self.misled(self.attempt(state, process, &c));
        let verdict = match attempt.next(&self.plan(), &now(tick, c.number)) {
            Step::Send(write) => {
                c.sent = Some(match write {
                    Write::Record { new, .. } => Sent::Record(rec(Some(&new))),
                    Write::Marks { new, .. } => Sent::Marks(births(Some(&new))),
                });
                c.from = attempt.from.map(small);
                state.processes[process] = Process::Claiming(c);
                return Some(());
            }
            Step::Floor => {
                let floor = match self.fault {
                    Some(Fault::FloorReadOnce) => c.floor,
                    _ => state.floor,
                };
                let (uuid, at) = (NAMESPACE, floor.into());
                let namespace = Namespace {
                    uuid,
                    floor: at,
                    ..Namespace::default()
                };
                let verdict = attempt.on_floor(&namespace, &self.plan(), &now(tick, c.number));
                c.floor = floor;
                state.processes[process] = Process::Claiming(c);
                verdict
            }
            Step::Look => {
                let current = state.records[usize::from(c.machine)];
                Some(attempt.on_look(current.record()))
            }
            Step::Over(verdict) => Some(verdict),
        };
        if let Some(verdict) = verdict {
            self.over(state, process, &c, verdict);
        }
        Some(())
    }

    /// Ends the attempt.
    fn over(&self, state: &mut State, process: usize, c: &Claiming, verdict: Verdict) {
        let machine = c.machine;
        state.processes[process] = match verdict {
            Verdict::Claimed { next, .. } => {
                state.remembered[process][usize::from(machine)] = None; // the lease replaces it from now on
                let next = match c.last {
                    Some((sealed, next)) if sealed == machine => next,
                    _ => small(next),
                };
                let (record, bound) = (c.record, c.record.bound);
                let (pending, sealed, reply) = (None, None, None);
                let (raising, forked) = (false, false);
                Process::Holding(Holding {
                    machine,
                    record,
                    pending,
                    sealed,
                    raising,
                    forked,
                    reply,
                    next,
                    bound,
                })
            }
            _ => Process::Idle { last: c.last },
        };
    }

    pub(super) fn take_in_claim(
        &self,
        state: &mut State,
        process: usize,
        mut c: Claiming,
        answer: Answer,
    ) {
        let Some(request) = c.request() else { return };
        let mut attempt = self.attempt(state, process, &c);
        let verdict = match (c.sent, answer) {
            (Some(Sent::Record(new)), answer) => {
                attempt.on_record(understood(self.understood(answer, new), new))
            }
            (Some(Sent::Marks(new)), answer) => {
                let current = match answer {
                    Answer::Marks(current) => current,
                    _ => new,
                };
                let new = marks(new).unwrap_or_default();
                let done = outcome(answer == Answer::Done, &new, || Ok(marks(current)));
                attempt.on_marks(done.expect("nothing is asked"))
            }
            (None, _) => return,
        };
        let leaves = !self.is_sent_once(&c) || !c.arrived;
        (c.sent, c.arrived) = (None, false);
        c.record = rec(attempt.record.as_ref());
        c.births = births(attempt.marks.as_ref());
        c.from = attempt.from.map(small);
        c.mine = attempt.mine.map(small);
        state.processes[process] = Process::Claiming(c);
        if let Some(verdict) = verdict {
            self.over(state, process, &c, verdict);
        }
        if leaves {
            self.leave(state, request);
        }
        self.hurry(state, process);
    }
}
