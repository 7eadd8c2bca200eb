//! Candidates of one survey, tried one after the other. Pure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{IdError, UnixMillis};

use super::attempt::{Attempt, Ground, Step, Verdict};
use super::candidates::Candidate;
use super::{Answer, Ask, Claimed, Findings, Now, Plan};
use crate::clock::ClockPair;
use crate::lease::{BuildError, Choice, Local, Namespace};

/// Candidates of one survey.
#[derive(Debug, Clone)]
pub(super) struct Round {
    pub(super) findings: Arc<Findings>,
    /// The namespace as it was found, or with the doubt that was then written.
    pub(super) namespace: Namespace,
    /// The store's clock, as read before the survey.
    pub(super) clock: Option<ClockPair>,
    pub(super) queue: VecDeque<Candidate>,
    pub(super) attempt: Option<Attempt>,
    /// The current attempt is on a machine ID whose owner is within its grace.
    pub(super) in_grace: bool,
    pub(super) contested: bool,
    pub(super) in_use_here: bool,
    pub(super) left: Left,
    /// The time of the survey, on the monotonic clock.
    pub(super) began: Duration,
}

impl Round {
    /// The next question, or an error that ends the search; `None` once no candidate is left.
    pub(super) fn next(&mut self, plan: &Plan, now: &Now) -> Option<Result<Ask, BuildError>> {
        if let Some(attempt) = &mut self.attempt {
            let machine = attempt.machine;
            if let Some(Verdict::Claimed { .. }) = attempt.ends {
                return Some(Ok(Ask::Keep(machine)));
            }
            match attempt.next(plan, now) {
                Step::Send(write) => return Some(Ok(Ask::Write(machine, Box::new(write)))),
                Step::Look => return Some(Ok(Ask::Record(machine))),
                Step::Floor => return Some(Ok(Ask::Namespace)),
                Step::Over(verdict) => {
                    self.attempt = None;
                    match verdict {
                        Verdict::Taken => {
                            self.contested = true;
                            // Better candidates than those within their grace may still exist:
                            // another survey shows them.
                            self.queue
                                .retain(|candidate| candidate.in_grace <= self.in_grace);
                        }
                        Verdict::TooFarAhead(until) => {
                            let ahead = &mut self.left.ahead;
                            *ahead = Some(ahead.map_or(until, |ahead| ahead.min(until)));
                        }
                        Verdict::Spent if matches!(plan.choice, Choice::Only { .. }) => {
                            return Some(Err(BuildError::Time(IdError::TimeExhausted)));
                        }
                        Verdict::Claimed { .. } | Verdict::Spent | Verdict::Elsewhere => {}
                        Verdict::Lost => {
                            let namespace = &plan.namespace;
                            tracing::error!(
                                machine,
                                namespace,
                                "machine ID skipped: its record was deleted or replaced"
                            );
                            self.left.lost = Some(machine);
                        }
                    }
                }
            }
        }
        let candidate = self.queue.front()?;
        Some(Ok(Ask::IsFree(candidate.machine)))
    }

    pub(super) fn on_answer(&mut self, plan: &Plan, answer: Answer, now: &Now) -> Option<Claimed> {
        let Some(attempt) = &mut self.attempt else {
            if let Answer::Taken = answer {
                self.queue.pop_front();
            } else if let Answer::Free(free) = answer {
                let Candidate { machine, in_grace } = self.queue.pop_front()?;
                self.in_grace = in_grace;
                self.in_use_here |= !free;
                let Findings {
                    snapshot,
                    locals,
                    own,
                    ..
                } = &*self.findings;
                let (local, namespace) = (locals.get(&machine), &self.namespace);
                let own = own.iter().filter(|own| own.machine == machine);
                let mut record = snapshot.records.get(&machine).cloned();
                let bound = |own: &Local| own.bound_beside(record.as_ref());
                let remembered = own.chain(local).map(bound).max();
                let ground = Ground {
                    namespace: namespace.uuid,
                    doubt: namespace.doubt.clone(),
                    clock: self.clock,
                    remembered: remembered.unwrap_or(0),
                    is_damaged: plan.is_damaged || local.is_some_and(|local| local.is_damaged),
                };
                let floor = namespace.floor;
                // A predecessor on this host left the proof that its record may be replaced.
                if let (Some(record), Some(local)) = (&mut record, local)
                    && record.owner == local.record.owner
                {
                    record.secret = local.record.secret;
                }
                let marks = snapshot.marks_of(machine).cloned();
                let attempt = Attempt {
                    machine,
                    ground,
                    floor,
                    record,
                    marks,
                    ..Attempt::default()
                };
                self.attempt = free.then_some(attempt);
            }
            return None;
        };
        let machine = attempt.machine;
        let verdict = match answer {
            Answer::Record(answer) => attempt.on_record(answer),
            Answer::Marks(answer) => attempt.on_marks(answer),
            Answer::Found(current) => Some(attempt.on_look(current)),
            Answer::Namespace(namespace) => attempt.on_floor(&namespace, plan, now),
            Answer::Kept(kept) => {
                let Some(Verdict::Claimed { record, next }) = attempt.ends.take() else {
                    return None;
                };
                if kept {
                    return Some(Claimed {
                        machine,
                        record,
                        next,
                        before: self.began,
                    });
                }
                self.in_use_here = true;
                attempt.give_back(record, next, now);
                None
            }
            _ => None,
        };
        attempt.ends = verdict.or(attempt.ends.take());
        None
    }

    pub(super) fn on_failure(&mut self) {
        if self
            .attempt
            .take_if(|attempt| attempt.ends_unanswered())
            .is_some()
        {
            self.contested = true;
        }
    }
}

/// Reasons why a search may go on, or ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Left {
    /// Earliest bound of a machine ID that is too far ahead of the clock.
    pub(super) ahead: Option<UnixMillis>,
    /// A machine ID whose record was deleted or replaced.
    pub(super) lost: Option<u64>,
    /// Earliest moment at which a machine ID that was given back is free.
    pub(super) free_from: Option<UnixMillis>,
    /// A record may become free in time.
    pub(super) may_end: bool,
}

impl Left {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            ahead: self.ahead.into_iter().chain(other.ahead).min(),
            lost: self.lost.or(other.lost),
            free_from: self.free_from.into_iter().chain(other.free_from).min(),
            may_end: self.may_end || other.may_end,
        }
    }
}
