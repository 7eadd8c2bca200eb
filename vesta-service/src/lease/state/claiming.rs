//! Search for a machine ID: survey, choose, attempt, wait, survey again. Pure.
//!
//! A survey reads one part of the range. While nothing can be claimed, the search goes on to the next part.
//! Only once it has been through all of them, it waits and goes through them again: records that have not changed
//! since then belong to expired owners.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::plain;

use super::attempt::ROLLBACK_LEAD;
use super::candidates::Survey;
use super::round::{Left, Round};
use super::{Action, Answer, Ask, CLAIM_AGAIN, Event, Findings, MAX_SKEW, Now, Plan};
use crate::clock::ClockPair;
use crate::lease::{Amendment, BuildError, Choice, Doubt, Local, Namespace, StoreError, block_of};

/// Time for which a start retries a store that does not answer, unless it waits for the store.
pub(crate) const CLAIM_TIMEOUT: Duration = Duration::from_secs(30);

/// State of a search between two answers.
#[derive(Debug, Clone)]
pub(in crate::lease) struct Claiming {
    /// The candidates of the last survey, unless another one is due.
    pub(super) round: Option<Box<Round>>,
    /// End of the search, on the monotonic clock.
    pub(super) deadline: Duration,
    /// Nothing is done before this moment of the monotonic clock.
    pub(super) wait_until: Duration,
    /// Deadline for a store that does not answer, and the number of failures so far.
    outage: Option<(Duration, u32)>,
    /// True once something was asked.
    pub(in crate::lease) begun: bool,
    /// Doubt about the store, as the namespace records it.
    pub(in crate::lease) doubt: Option<Doubt>,
    /// True once the store's clock was read for the next survey. The store may have no clock.
    compared: bool,
    clock: Option<ClockPair>,
    /// Survey whose namespace lacks facts, and the facts, which are written first.
    unwritten: Option<Box<(Arc<Findings>, Amendment)>>,
    /// The part to survey, unless this is the first survey.
    pub(super) part: Option<u64>,
    /// Number of parts without a candidate that could be claimed, since the search last went through all.
    pub(super) passed: u64,
    /// Reasons of those parts to go on, or to end.
    pub(super) left: Left,
    /// Surveys that the records are compared with, by part, each with a moment of the monotonic clock after it.
    /// While the process stands by, the record of its machine ID is kept current, and the moment is that at which
    /// it was first seen as it is.
    pub(super) earlier: BTreeMap<u64, (Arc<Findings>, Duration)>,
    /// True while owners within their grace may be replaced, if the range has several parts: once none of
    /// these had any other candidate.
    pub(super) grace: bool,
    /// True while another process holds the machine ID, and its record is read periodically.
    pub(in crate::lease) stands_by: bool,
    pub(super) glances: u32,
    /// Index at which the search among unused machine IDs begins; a random one after a lost race.
    pub(super) start_at: u64,
}

impl Claiming {
    pub(in crate::lease) fn new(plan: &Plan, from: Duration, now: &Now) -> Self {
        Self {
            round: None,
            deadline: now.monotonic.max(from).saturating_add(CLAIM_TIMEOUT),
            wait_until: from,
            outage: None,
            begun: false,
            doubt: None,
            compared: false,
            clock: None,
            unwritten: None,
            part: None,
            passed: 0,
            left: Left::default(),
            earlier: BTreeMap::new(),
            grace: false,
            stands_by: false,
            glances: 0,
            start_at: plan.start_at,
        }
    }

    /// True from the choice of a machine ID to the end of the attempt on it.
    pub(in crate::lease) fn is_attempting(&self) -> bool {
        self.round
            .as_ref()
            .is_some_and(|round| round.attempt.is_some())
    }

    /// Returns the next action.
    pub(in crate::lease) fn next(&mut self, plan: &Plan, now: &Now) -> Action {
        if now.monotonic < self.wait_until {
            return Action::Wait(self.wait_until);
        }
        self.begun = true;
        if now.suspect {
            return Action::Ask(Ask::Clock); // nothing is claimed while the clock is suspect
        }
        if let Some(unwritten) = &self.unwritten {
            return Action::Ask(Ask::Amend(unwritten.1.clone()));
        }
        if let Some(machine) = plan.stands_by_for().filter(|_| self.stands_by) {
            return Action::Ask(Ask::Record(machine));
        }
        let Some(round) = &mut self.round else {
            return match plan.meta.tick_at(now.wall) {
                Ok(_) if !self.compared => Action::Ask(Ask::Clock),
                Ok(_) => Action::Ask(Ask::Survey(self.part)),
                Err(error) => Action::Refused(BuildError::Time(error)),
            };
        };
        match round.next(plan, now) {
            Some(Ok(ask)) => Action::Ask(ask),
            Some(Err(error)) => Action::Refused(error),
            None => self.after_round(plan, now),
        }
    }

    /// The process that holds the machine ID, for people.
    pub(in crate::lease) fn holder(&self, plan: &Plan) -> String {
        let range = plan.choice.range();
        let earlier = self.earlier.get(&plan.part_of(*range.start()));
        let record = earlier.and_then(|(earlier, _)| earlier.snapshot.records.get(range.start()));
        record.filter(|record| record.owner != 0).map_or_else(
            || "another process on this host".into(),
            |record| format!("{} (pid {})", plain(&record.host), record.pid),
        )
    }

    pub(super) fn wait(&mut self, pause: Duration, now: &Now) -> Action {
        self.wait_until = now.monotonic.saturating_add(pause);
        Action::Wait(self.wait_until)
    }

    /// Handles an answer.
    pub(in crate::lease) fn on_answer(&mut self, plan: &Plan, answer: Answer, now: &Now) -> Event {
        if !matches!(answer, Answer::Failed(_)) {
            self.outage = None;
        }
        let taken_in = match (&mut self.round, answer) {
            (_, Answer::Failed(error)) => self.on_failure(plan, error, now),
            (_, Answer::Clock(clock)) => self.on_clock(clock, now),
            (Some(round), answer) => {
                return round
                    .on_answer(plan, answer, now)
                    .map_or(Event::None, Event::Claimed);
            }
            (None, Answer::Survey(findings)) => {
                let namespace = findings.snapshot.namespace.clone();
                self.survey(plan, findings, namespace, now)
            }
            (None, Answer::Found(found)) if self.stands_by => {
                self.on_watched(plan, found, now);
                Ok(())
            }
            (None, Answer::Forgotten(local)) => Err(forgotten(plan, &local)),
            (None, Answer::Namespace(namespace)) => match self.unwritten.take() {
                // Once a doubt is written, another survey shows whether it reaches anything.
                Some(it) if it.1.doubt.is_none() => self.survey(plan, it.0, namespace, now),
                _ => Ok(()),
            },
            (None, _) => Ok(()), // not the answer to what was asked
        };
        taken_in.map_or_else(Event::Refused, |()| Event::None)
    }

    /// Retries until the claim times out.
    fn on_failure(&mut self, plan: &Plan, source: StoreError, now: &Now) -> Result<(), BuildError> {
        let store = plan.store.clone();
        let fresh = (now.monotonic.saturating_add(plan.claim_timeout), 0);
        let (deadline, failures) = self.outage.unwrap_or(fresh);
        if source.is_permanent() || now.monotonic >= deadline {
            return Err(BuildError::Store { store, source });
        }
        if let Some(round) = &mut self.round {
            round.on_failure();
        }
        self.outage = Some((deadline, failures.saturating_add(1)));
        self.wait(plan.retry_pause(failures, now), now);
        Ok(())
    }

    fn on_clock(&mut self, clock: Option<ClockPair>, now: &Now) -> Result<(), BuildError> {
        (self.compared, self.clock) = (true, clock);
        match clock.filter(|pair| !pair.agree()) {
            None if !now.suspect => return Ok(()),
            // A change may be in flight: the attempt continues once the clock is believed.
            _ if self.round.is_some() => self.wait(CLAIM_AGAIN, now),
            Some(pair) => return Err(clocks_differ(&pair)),
            None => return Err(BuildError::ClockSuspect),
        };
        Ok(())
    }

    fn survey(
        &mut self,
        plan: &Plan,
        findings: Arc<Findings>,
        namespace: Namespace,
        now: &Now,
    ) -> Result<(), BuildError> {
        plan.check(&namespace)?;
        plan.check_order(&findings.snapshot.records)?;
        let seen = findings.doubt.as_ref();
        let missing = plan.missing_from(&namespace, seen, findings.server.as_ref(), now.wall);
        let facts = Amendment {
            namespace: namespace.uuid,
            reaches_nothing: findings.reaches_nothing.clone(),
            ..Amendment::default()
        };
        let missing = missing.or_else(|| (facts.of(&namespace) != namespace).then_some(facts));
        // Checked before a doubt is written, because its reach counts from this clock.
        let new = missing.as_ref().and_then(|facts| facts.doubt.as_ref());
        let doubted = new.or(namespace.doubt.as_ref()).is_some();
        if let Some(pair) = self
            .clock
            .filter(|pair| doubted && pair.apart() > MAX_SKEW / 2)
        {
            return Err(clocks_differ(&pair));
        }
        if let Some(facts) = missing {
            self.unwritten = Some(Box::new((findings, facts)));
            return Ok(());
        }
        self.compared = false;
        let Findings {
            snapshot,
            locals,
            own,
            ..
        } = &*findings;
        self.doubt.clone_from(&namespace.doubt);
        let doubt = self.doubt.as_ref();
        // Positions below this one may have been forgotten: a claim keeps its distance from them.
        let allowed = doubt.map_or(0, |_| {
            plan.rules
                .position(now.wall_tick + plan.ticks(Plan::distance(doubt, now.wall)))
        });
        let machines = plan.machines_of(findings.part);
        let remembered = locals.values().chain(own);
        let block = block_of(*machines.start());
        let mut inside = remembered.filter(|local| block_of(local.machine) == block);
        let unknown = inside.find(|local| !local.is_known_to(snapshot, allowed));
        if let Some(local) = unknown {
            return Err(forgotten(plan, local));
        }
        // Otherwise each machine ID would be tried, and said to be in use.
        let floor = plan.used_until(namespace.floor);
        let lead = Duration::from_millis(floor.since(now.wall).unwrap_or(0));
        let distance = Plan::distance(namespace.doubt.as_ref(), now.wall);
        if lead > CLAIM_TIMEOUT + ROLLBACK_LEAD + distance {
            return Err(BuildError::FloorAhead {
                namespace: plan.namespace.clone(),
                floor,
                now: now.wall,
            });
        }
        // A pool server judges by its own clock whether a bound has passed.
        let theirs = self.clock.filter(|_| plan.keeps_owners);
        let wall = theirs.map_or(now.wall, |pair| now.wall.min(pair.latest(now.monotonic)));
        let tick = plan.meta.tick_at(wall).map_err(BuildError::Time)?;
        let survey = Survey {
            records: &snapshot.records,
            block: machines,
            earlier: self
                .earlier
                .get(&findings.part)
                .map(|(earlier, _)| &earlier.snapshot.records),
            watched: self
                .earlier
                .get(&findings.part)
                .map_or(Duration::ZERO, |(_, since)| {
                    now.monotonic.saturating_sub(*since)
                }),
            watch: plan.watch_in_survey(),
            locals,
            choice: &plan.choice,
            order: plan.order,
            now: plan.rules.position(tick),
            grace_ticks: match plan.choice {
                Choice::Any(_) => plan.ticks(plan.timing.takeover_grace).max(1),
                // A start that names a machine ID wants that one: its window is grace enough.
                Choice::Only { .. } => 0,
            },
            rules: &plan.rules,
            start_at: self.start_at,
            random: now.number(),
            count: plan.count,
        };
        let with_grace = self.grace || plan.parts().1 == 1;
        let candidates = survey.candidates().into_iter();
        let queue = candidates
            .filter(|candidate| with_grace || !candidate.in_grace)
            .collect();
        let may_end = survey.may_end_within(plan.ticks(CLAIM_TIMEOUT).max(1));
        let free_from = survey.next_free().map(|bound| plan.used_until(bound));
        self.round = Some(Box::new(Round {
            findings,
            namespace,
            clock: self.clock,
            queue,
            attempt: None,
            in_grace: false,
            contested: false,
            in_use_here: false,
            left: Left {
                may_end,
                free_from,
                ..Left::default()
            },
            began: now.monotonic,
        }));
        Ok(())
    }
}

fn forgotten(plan: &Plan, local: &Local) -> BuildError {
    BuildError::StoreRegressed {
        store: plan.store.clone(),
        namespace: plan.namespace.clone(),
        machine: local.machine,
        used_until: plan.used_until(local.record.bound),
    }
}

fn clocks_differ(pair: &ClockPair) -> BuildError {
    BuildError::ClocksDiffer {
        ours: pair.ours(),
        theirs: pair.theirs,
    }
}
