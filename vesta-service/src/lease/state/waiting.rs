//! A round in which no candidate could be claimed: the next part, a wait, or the end of the search. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use vesta_intf::{UnixMillis, plain};

use super::attempt::ROLLBACK_LEAD;
use super::claiming::{CLAIM_TIMEOUT, Claiming};
use super::round::Left;
use super::{Action, Findings, Now, Plan};
use crate::lease::{BuildError, Choice, Record};

/// Number and interval of retries while another process has state files locked.
const GLANCES: u32 = 5;
const GLANCE: Duration = Duration::from_millis(100);

impl Claiming {
    /// No candidate could be claimed.
    pub(super) fn after_round(&mut self, plan: &Plan, now: &Now) -> Action {
        let Some(round) = self.round.take() else {
            return Action::Wait(self.wait_until);
        };
        let timed_out = now.monotonic >= self.deadline;
        if round.contested && !timed_out {
            self.start_at = now.number(); // other processes were faster; survey again
            return self.next(plan, now);
        }
        if let Some(machine) = plan.stands_by_for()
            && round.left.lost.is_none()
            && round.left.ahead.is_none()
        {
            return self.stand_by(machine, round.findings, now);
        }
        // A starting process on this host locks all free files for a moment; a living owner keeps
        // its own locked.
        if round.in_use_here && self.glances < GLANCES {
            self.glances += 1;
            return self.wait(GLANCE, now);
        }
        let in_use_here = round.in_use_here;
        let findings = round.findings;
        self.left = self.left.and(round.left);
        let parts = plan.parts().1;
        // An expired owner counts as gone only if its record also stays unchanged while it is
        // watched, measured by this process's own clock.
        let watch = watch_of(plan, &findings.snapshot.records);
        let earlier = self.earlier.get(&findings.part);
        let since = earlier.map(|(_, since)| *since);
        let left_of = |since: Duration| watch.saturating_sub(now.monotonic.saturating_sub(since));
        let watched = since.is_some_and(|since| left_of(since).is_zero());
        let record_of = |findings: &Findings| {
            let machine = *plan.choice.range().start();
            findings.snapshot.records.get(&machine).cloned()
        };
        let earlier = earlier.filter(|_| watched);
        let unchanged = earlier.map(|(earlier, _)| record_of(earlier) == record_of(&findings));
        if since.is_none() || watched && (self.grace || parts == 1) {
            let seen = (findings.clone(), now.monotonic);
            self.earlier.insert(findings.part, seen);
        }
        self.passed += 1;
        self.part = Some(plan.part_after(findings.part));
        if !timed_out && self.passed < parts {
            return self.next(plan, now);
        }
        self.passed = 0;
        if !timed_out && watched && !self.grace && parts > 1 {
            self.grace = true;
            return self.next(plan, now);
        }
        self.grace = false;
        let left = std::mem::take(&mut self.left);
        if let Some(used_until) = left.ahead {
            let ahead = Duration::from_millis(used_until.since(now.wall).unwrap_or(0));
            let wait = ahead.saturating_sub(ROLLBACK_LEAD) + Duration::from_millis(1);
            if !timed_out && wait <= CLAIM_TIMEOUT {
                let now_is = now.wall;
                tracing::info!(%used_until, %now_is, ?wait, "waiting for the clock to reach the last bound");
                return self.wait(wait, now);
            }
            if let Choice::Only { machine, .. } = plan.choice {
                let now = now.wall;
                return Action::Refused(BuildError::ClockBehind {
                    machine,
                    used_until,
                    now,
                });
            }
        }
        if let Some(until) = owners_bound(plan, &findings, now)
            && unchanged != Some(false)
            && !in_use_here
        {
            return self.watch_owner(plan, until, unchanged.is_some(), now);
        }
        if timed_out || !left.may_end {
            return Action::Refused(self.exhausted(plan, left, now));
        }
        let since = self.earlier.get(&findings.part).map(|(_, since)| *since);
        let pause = since.map_or(watch, left_of);
        let free_from = left.free_from.and_then(|free| free.since(now.wall));
        let free_in =
            free_from.map(|millis| Duration::from_millis(millis) + Duration::from_millis(1));
        self.wait(free_in.map_or(pause, |free_in| pause.min(free_in)), now)
    }

    /// Waits for the bound of an owner that stopped: its record has not changed for longer than a renewal takes.
    fn watch_owner(
        &mut self,
        plan: &Plan,
        until: UnixMillis,
        has_stopped: bool,
        now: &Now,
    ) -> Action {
        let mut pause = plan.timing.renew_every * 3 / 2;
        if has_stopped {
            let (machine, owner) = (*plan.choice.range().start(), self.holder(plan));
            tracing::warn!(
                "machine ID {machine} belongs to {owner}, which has stopped, and the state directory has no secret of \
                 it: waiting until {until}, when its bound has passed"
            );
            pause = Duration::from_millis(until.since(now.wall).unwrap_or(0) + 1);
        }
        self.deadline = now.monotonic + pause + CLAIM_TIMEOUT;
        self.wait(pause, now)
    }

    fn exhausted(&self, plan: &Plan, left: Left, now: &Now) -> BuildError {
        let range = plan.choice.range();
        if let Some(machine) = left.lost.filter(|_| range.start() == range.end()) {
            return BuildError::RecordLost {
                store: plan.store.clone(),
                namespace: plan.namespace.clone(),
                machine,
            };
        }
        let inside = || {
            let surveys = self.earlier.values();
            surveys.flat_map(|(findings, _)| findings.snapshot.records.range(range.clone()))
        };
        let holders = inside()
            .filter(|(_, record)| record.owner != 0)
            .map(|(machine, record)| (*machine, plain(&record.host), record.pid))
            .collect();
        let free = inside()
            .filter(|(_, record)| record.owner == 0)
            .map(|(_, record)| plan.used_until(record.bound));
        let now = now.wall;
        let ahead = free
            .chain(left.ahead)
            .filter(|until| *until > now)
            .min()
            .map(|until| (until, now));
        BuildError::Exhausted {
            holders,
            range,
            ahead,
            users: Vec::new(),
        }
    }
}

/// Bound of the owner whose record a start wants by its number, if a pool server keeps the record for the owner until then.
fn owners_bound(plan: &Plan, findings: &Findings, now: &Now) -> Option<UnixMillis> {
    let Choice::Only { machine, .. } = &plan.choice else {
        return None; // a pool takes another one
    };
    let record = findings.snapshot.records.get(machine)?;
    let until = plan.used_until(record.bound);
    let is_kept = plan.keeps_owners && ![0, Record::FOREIGN].contains(&record.owner);
    (is_kept && until > now.wall).then_some(until)
}

/// Time after which the records of all owners in the range were watched.
fn watch_of(plan: &Plan, records: &BTreeMap<u64, Record>) -> Duration {
    let silence = records.range(plan.choice.range()).map(|it| it.1.silence());
    silence.fold(plan.watch(), Duration::max)
}
