//! Stand-by: processes share one machine ID, and their IDs keep one order (SAFETY.md, rule 11). Pure.
//!
//! One of them holds the machine ID. It issues nothing later than a window after it made its last acknowledged change,
//! so it changes its record even if its bound needs no change. The others read the record periodically, and take it
//! over once it has no owner, or has stayed unchanged for as long as it asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::IdError;

use super::claiming::Claiming;
use super::extending::Holding;
use super::{Action, CLAIM_TIMEOUT, Findings, Machine, Now, Phase, Plan};
use crate::clock::MAX_LEAD;
use crate::lease::{BuildError, Choice, Record};
use crate::wait::retry_pause;

impl Plan {
    /// The machine ID that the process stands by for while another one holds it.
    pub(super) const fn stands_by_for(&self) -> Option<u64> {
        match (&self.standby, &self.choice) {
            (Some(_), Choice::Only { machine, .. }) => Some(*machine),
            _ => None,
        }
    }

    /// True if rule 11 of SAFETY.md alone decides about a takeover, and no lock of this host: a holder that is paused
    /// keeps its locks.
    pub(crate) const fn goes_by_record(&self) -> bool {
        self.standby.is_some()
    }

    /// Refuses an order that another process's IDs would break: their fixed fields differ, and genMethod, version and
    /// type are above the time.
    pub(super) fn check_order(&self, records: &BTreeMap<u64, Record>) -> Result<(), BuildError> {
        let record = records.get(self.choice.range().start());
        let theirs = record.filter(|record| record.owner != 0);
        match (&self.standby, theirs.and_then(|it| it.standby.as_ref())) {
            (Some(own), Some(theirs)) if own.base != theirs.base => Err(IdError::invalid(
                "standby",
                "the process that holds the machine ID makes IDs with another genMethod or version, which are not in \
                 one order with those of this one; give both the same",
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// Pause after a failed request. Callers wait for a takeover, so a stall of the store must not be prolonged.
    pub(super) fn retry_pause(&self, failures: u32, now: &Now) -> Duration {
        let pause = retry_pause(failures);
        match self.standby {
            None => pause,
            Some(_) => pause.min(poll(now)),
        }
    }

    /// Time for which a survey must have watched the record of an expired owner. A process that stands by has read it
    /// for as long as the record asks.
    pub(super) fn watch_in_survey(&self) -> Duration {
        match self.standby {
            None => self.watch(),
            Some(_) => Duration::ZERO,
        }
    }

    /// True if a holder changes its record although its bound stays: others stand by until the record stays unchanged,
    /// also within a tick. Not while the clock is too far behind for IDs, because another host may do better.
    pub(super) fn shows_life(&self, now: &Now) -> bool {
        let lead = now.tick.saturating_sub(now.wall_tick);
        self.standby.is_some() && lead <= self.ticks(MAX_LEAD)
    }

    /// True if a process that stands by may have taken the record over, although its bound has not passed: the last
    /// acknowledged change was made at this moment.
    pub(super) fn may_be_replaced(&self, shown: Duration, now: &Now) -> bool {
        let window = self.standby.as_ref().map(|standby| standby.window);
        window.is_some_and(|window| now.monotonic >= shown + window)
    }
}

impl Machine {
    /// The process that holds the machine ID, for people, while this one stands by.
    pub(crate) fn stands_by_for(&self) -> Option<String> {
        match &self.phase {
            Phase::Claiming(claiming) if claiming.stands_by => Some(claiming.holder(&self.plan)),
            _ => None,
        }
    }

    /// End of the right to issue by the last acknowledged change, on the monotonic clock (SAFETY.md, rule 11).
    /// Called when that change is acknowledged, before the next one is made.
    pub(crate) fn ends_at(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Holding(holding) => Some(holding.made + self.plan.standby.as_ref()?.window),
            _ => None,
        }
    }
}

impl Claiming {
    /// Reads the record of the machine ID periodically, from this survey on.
    pub(super) fn stand_by(&mut self, machine: u64, findings: Arc<Findings>, now: &Now) -> Action {
        let record_of = |findings: &Findings| findings.snapshot.records.get(&machine).cloned();
        let known = self.earlier.get(&findings.part);
        if known.map(|(earlier, _)| record_of(earlier)) != Some(record_of(&findings)) {
            let seen = (findings.clone(), now.monotonic);
            self.earlier.insert(findings.part, seen);
        }
        self.stands_by = true;
        self.deadline = now.monotonic.saturating_add(CLAIM_TIMEOUT);
        self.wait(poll(now), now)
    }

    /// Handles the record of the machine ID while the process stands by. Surveys again once it has no owner, or
    /// an owner that was silent for long enough.
    pub(super) fn on_watched(&mut self, plan: &Plan, found: Option<Record>, now: &Now) {
        let Some(machine) = plan.stands_by_for() else {
            return;
        };
        let Some((earlier, since)) = self.earlier.get_mut(&plan.part_of(machine)) else {
            return;
        };
        if earlier.snapshot.records.get(&machine) != found.as_ref() {
            let records = &mut Arc::make_mut(earlier).snapshot.records;
            match &found {
                Some(record) => records.insert(machine, record.clone()),
                None => records.remove(&machine),
            };
            *since = now.monotonic;
        }
        let watched = now.monotonic.saturating_sub(*since);
        self.stands_by = match found.filter(|record| record.owner != 0) {
            None => false,
            Some(record) if record.standby.is_some() => watched < record.silence(),
            Some(record) => {
                let is_over = plan.rules.tick(record.bound) <= now.wall_tick;
                !is_over || watched < plan.watch()
            }
        };
        if self.stands_by {
            self.wait(poll(now), now);
        }
    }
}

impl Holding {
    /// Counts the claim's window, and the time to its first renewal, from before the claim was made.
    pub(in crate::lease) fn made_before(&mut self, plan: &Plan, moment: Duration, now: &Now) {
        (self.made, self.shown) = (moment, moment);
        self.due = moment + self.pause(plan, now);
    }
}

/// Pause between two looks at one record while standing by: 0.1 to 0.2 s, so that a release is noticed soon, and
/// processes that stand by together do not look together.
fn poll(now: &Now) -> Duration {
    Duration::from_millis(100 + now.number() % 101)
}
