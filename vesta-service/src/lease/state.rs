//! State machine of a process and its machine ID: survey, claim, hold, extend, release, lost. Pure: time,
//! random numbers and the store's answers come in as values, requests go out as values.
//!
//! ```text
//!  state.rs       the state machine of both phases
//!  plan.rs        target and process of a claim
//!  ask.rs         questions, answers, outcomes
//!  claiming.rs    the search: surveys, candidates, waits
//!  candidates.rs  machine IDs to try, in order
//!  waiting.rs     once none could be claimed: the next part, a wait, or the end
//!  round.rs       tries those of one survey
//!  attempt.rs     one attempt: create, mark, claim, read the floor again
//!  extending.rs   the lease after its claim: extend, release, fenced
//!  doubt.rs       windows and distances while the store may forget
//!  standby.rs     one process waits while another holds its machine ID
//! ```

mod ask;
mod attempt;
mod candidates;
mod claiming;
#[cfg(all(test, not(any(loom, shuttle))))]
mod crash_loop;
mod doubt;
mod extending;
mod now;
mod plan;
mod round;
mod standby;
mod waiting;

use std::time::Duration;

use super::Doubt;
pub(crate) use ask::{Action, Answer, Ask, Claimed, Event, Findings, Write};
#[cfg(all(test, not(any(loom, shuttle))))]
pub(in crate::lease) use attempt::{Attempt, Ground, Step, Verdict};
#[cfg(all(test, not(any(loom, shuttle))))]
pub(in crate::lease) use candidates::Survey;
pub(crate) use claiming::CLAIM_TIMEOUT;
use claiming::Claiming;
pub(crate) use doubt::USUAL_DOUBTFUL_WINDOW;
use doubt::WIDE_AFTER;
pub(in crate::lease) use doubt::{DOUBT_CHECK, MAX_SKEW};
pub(in crate::lease) use extending::Holding;
pub(crate) use now::Now;
pub(crate) use plan::Plan;

/// Pause after a failed search while running.
pub(crate) const CLAIM_AGAIN: Duration = Duration::from_secs(1);

/// State machine of one machine slot: first it searches, then it holds a machine ID.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) plan: Plan,
    /// Doubt about the store, as the namespace records it.
    pub(crate) doubt: Option<Doubt>,
    phase: Phase,
}

#[derive(Debug, Clone)]
enum Phase {
    Claiming(Box<Claiming>),
    Holding(Box<Holding>),
    Over,
}

impl Machine {
    /// Starts a search for a machine ID.
    pub(crate) fn new(plan: Plan, now: &Now) -> Self {
        let phase = Phase::Claiming(Box::new(Claiming::new(&plan, Duration::ZERO, now)));
        Self {
            plan,
            doubt: None,
            phase,
        }
    }

    pub(crate) const fn is_holding(&self) -> bool {
        matches!(self.phase, Phase::Holding(_))
    }

    /// True if a search is under way, and not only due.
    pub(crate) fn is_searching(&self) -> bool {
        matches!(&self.phase, Phase::Claiming(claiming) if claiming.begun && !claiming.stands_by)
    }

    /// True while an attempt is under way: the record may already belong to this process.
    pub(crate) fn is_attempting(&self) -> bool {
        matches!(&self.phase, Phase::Claiming(claiming) if claiming.is_attempting())
    }

    /// Brings forward a renewal that is due soon, because other slots of this process renew now.
    pub(crate) fn hurry(&mut self, now: &Now) {
        if let Phase::Holding(holding) = &mut self.phase {
            holding.hurry(&self.plan, now);
        }
    }

    /// True if the lease is to be given up, because a successor may have been forgotten.
    pub(crate) fn is_overdue(&self) -> bool {
        matches!(&self.phase, Phase::Holding(holding) if holding.is_overdue())
    }

    /// Releases the record, after sealing at this position.
    pub(crate) fn release(&mut self, sealed_at: u64) {
        if let Phase::Holding(holding) = &mut self.phase {
            holding.release(sealed_at);
        }
    }

    /// Ends the search. A held lease ends by its release.
    pub(crate) fn stop(&mut self) {
        if let Phase::Claiming(_) = self.phase {
            self.phase = Phase::Over;
        }
    }

    /// Returns the next action.
    pub(crate) fn next(&mut self, now: &Now) -> Action {
        match &mut self.phase {
            Phase::Over => Action::Stop,
            Phase::Holding(holding) => holding.next(&self.plan, now),
            Phase::Claiming(claiming) => {
                let action = claiming.next(&self.plan, now);
                if let Action::Refused(_) = action {
                    self.search_again(now, CLAIM_AGAIN);
                }
                action
            }
        }
    }

    /// Handles an answer.
    pub(crate) fn on_answer(&mut self, answer: Answer, now: &Now) -> Event {
        let event = match &mut self.phase {
            Phase::Over => Event::None,
            Phase::Claiming(claiming) => {
                let event = claiming.on_answer(&self.plan, answer, now);
                self.doubt.clone_from(&claiming.doubt);
                event
            }
            Phase::Holding(holding) => {
                let event = holding.on_answer(&self.plan, answer, now);
                self.doubt.clone_from(&holding.doubt);
                event
            }
        };
        match &event {
            Event::Claimed(Claimed {
                machine,
                record,
                before,
                ..
            }) => {
                let doubt = self.doubt.clone();
                let mut holding = Holding::new(&self.plan, *machine, doubt, record.clone(), now);
                if self.plan.standby.is_some() {
                    holding.made_before(&self.plan, *before, now);
                }
                self.phase = Phase::Holding(Box::new(holding));
            }
            Event::Refused(_) => self.search_again(now, CLAIM_AGAIN),
            Event::Released(_) | Event::Fenced(_) | Event::GivenUp(_) => {
                self.search_again(now, Duration::ZERO);
            }
            Event::Broken(_) => self.phase = Phase::Over,
            Event::None | Event::Raised(_) | Event::Unsure(_) | Event::WentBack(_) => {}
        }
        event
    }

    fn search_again(&mut self, now: &Now, pause: Duration) {
        let from = now.monotonic.saturating_add(pause);
        self.phase = Phase::Claiming(Box::new(Claiming::new(&self.plan, from, now)));
    }
}
