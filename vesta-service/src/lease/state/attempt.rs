//! Attempt on one machine ID: create its record, mark it, claim it, read the floor once more. Pure.

use std::time::Duration;

use vesta_intf::UnixMillis;

use super::{Now, Plan, Write};
use crate::clock::ClockPair;
use crate::lease::{Cas, Doubt, Marks, Namespace, Record, Secret, Standing};

/// Maximum distance by which a claim may start ahead of the clock.
pub(crate) const ROLLBACK_LEAD: Duration = Duration::from_secs(5);

/// Known facts on which a claim's start position depends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::lease) struct Ground {
    /// The uuid of the namespace.
    pub(in crate::lease) namespace: u128,
    /// Set if the store may forget what it acknowledged.
    pub(in crate::lease) doubt: Option<Doubt>,
    /// The store's clock, if it has one.
    pub(in crate::lease) clock: Option<ClockPair>,
    /// Bound that this process or host remembers of the machine ID; 0 if none.
    pub(in crate::lease) remembered: u64,
    /// The known bounds may lack up to one window of what was acknowledged: a claim keeps that distance from
    /// them.
    pub(in crate::lease) is_damaged: bool,
}

/// State of an attempt between two answers of the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::lease) struct Attempt {
    pub(in crate::lease) machine: u64,
    pub(in crate::lease) ground: Ground,
    /// The namespace's floor, as last read.
    pub(in crate::lease) floor: u64,
    /// The record, as last read.
    pub(in crate::lease) record: Option<Record>,
    /// Its bucket of marks, as last read.
    pub(in crate::lease) marks: Option<Marks>,
    /// Start of the claim that was sent.
    pub(in crate::lease) from: Option<u64>,
    /// Start of this attempt's claim, once it is in force: the record is then this process's own.
    pub(in crate::lease) mine: Option<u64>,
    /// The change that was sent and not yet answered. It is sent again unchanged until it is.
    pub(in crate::lease) sent: Option<Write>,
    /// Verdict that ends the attempt once the change in `sent` is answered; after a claim, once this host has
    /// locked the machine ID.
    pub(in crate::lease) ends: Option<Verdict>,
}

/// Next step of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::lease) enum Step {
    /// Send this change.
    Send(Write),
    /// Read the record again: record and mark, as last read, contradict each other.
    Look,
    /// Read the namespace again: the claim is in force, and the floor may have been raised before.
    Floor,
    /// The attempt is over.
    Over(Verdict),
}

/// Outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::lease) enum Verdict {
    /// Claimed: positions from `next` below the record's bound may be issued.
    Claimed { record: Record, next: u64 },
    /// Another process was faster.
    Taken,
    /// A process of another system holds the machine ID, for which the record was reserved before.
    Elsewhere,
    /// The record was deleted, or replaced by one that is not the marked one.
    Lost,
    /// The record is reserved up to this moment, which is too far ahead of the clock.
    TooFarAhead(UnixMillis),
    /// The positions of the record are used up to the end of the layout.
    Spent,
}

impl Attempt {
    /// Returns the next step.
    pub(in crate::lease) fn next(&mut self, plan: &Plan, now: &Now) -> Step {
        if let Some(write) = &self.sent {
            return Step::Send(write.clone()); // SAFETY.md, rule 3
        }
        if let Some(verdict) = self.ends.take() {
            return Step::Over(verdict);
        }
        if self.mine.is_some_and(|start| self.floor <= start) {
            return Step::Floor;
        }
        let (record, marks) = (self.record.as_ref(), self.marks.as_ref());
        let write = match Standing::of(self.ground.namespace, self.machine, record, marks) {
            Standing::Lost => return Step::Look, // SAFETY.md, rule 5: never claimed
            Standing::Absent => self.creation(plan, now),
            Standing::Unmarked(record) => self.marking(record.birth),
            Standing::Marked(record) => match self.claim(record, plan, now) {
                Ok((write, start)) => {
                    self.from = Some(start);
                    write
                }
                Err(verdict) => return self.end(verdict, now),
            },
        };
        Step::Send(self.sent.insert(write).clone())
    }

    /// Creation of an absent record: nothing may be issued from the new record until it is marked and
    /// claimed.
    fn creation(&self, plan: &Plan, now: &Now) -> Write {
        let new = Record {
            namespace: self.ground.namespace,
            birth: now.number(),
            attempt: now.number(),
            ..plan.signature(now)
        };
        Write::Record { old: None, new }
    }

    fn marking(&self, birth: u64) -> Write {
        let old = self.marks.clone();
        let mut new = old.clone().unwrap_or_default();
        new.namespace = self.ground.namespace;
        new.births.insert(self.machine, birth);
        Write::Marks { old, new }
    }

    #[allow(
        clippy::result_large_err,
        reason = "a claim is rare, and a refused one rarer"
    )]
    fn claim(&self, record: &Record, plan: &Plan, now: &Now) -> Result<(Write, u64), Verdict> {
        let doubted = self.ground.doubt.is_some();
        let start = self.start(record, plan, now);
        let tick = plan.rules.tick(start);
        // Positions that may be borrowed do not count as ahead of the clock.
        let starts = plan.meta.moment_of(plan.rules.earliest_tick(start)).ok();
        let starts = starts
            .filter(|_| tick <= plan.rules.max_tick())
            .ok_or(Verdict::Spent)?;
        let lead = starts
            .since(now.wall)
            .map_or(Duration::ZERO, Duration::from_millis);
        if lead > ROLLBACK_LEAD + Plan::distance(self.ground.doubt.as_ref(), now.wall) {
            return Err(Verdict::TooFarAhead(starts));
        }
        // If a claim were forgotten, the next one could begin at the same position. So under a doubt a claim
        // buys nothing; the first extend does.
        let end = plan
            .rules
            .position(tick.saturating_add(plan.window_ticks(false, false)));
        let secret = Secret::new(now.random);
        let new = Record {
            namespace: record.namespace,
            birth: record.birth,
            epoch: record.epoch + 1,
            owner: secret.owner(),
            secret,
            from: start,
            version: env!("CARGO_PKG_VERSION").into(),
            claimed: now.wall,
            attempt: now.number(),
            bound: if doubted { start } else { end },
            standby: plan.standby,
            ..plan.signature(now)
        };
        Ok((
            Write::Record {
                old: Some(record.clone()),
                new,
            },
            start,
        ))
    }

    /// First position that a claim of this record may issue.
    fn start(&self, record: &Record, plan: &Plan, now: &Now) -> u64 {
        let (ground, rules) = (&self.ground, &plan.rules);
        let known = record.bound.max(self.floor).max(ground.remembered);
        let guarded = if ground.is_damaged {
            rules.position(rules.tick(known) + 1 + plan.window_ticks(ground.doubt.is_some(), true))
        } else {
            known
        };
        let distance = Plan::distance(ground.doubt.as_ref(), now.wall);
        // Under a doubt a claim counts from the later clock, an extend from the earlier one.
        let theirs = ground.clock.filter(|_| ground.doubt.is_some());
        let theirs = theirs.and_then(|pair| plan.meta.tick_at(pair.latest(now.monotonic)).ok());
        let tick = now.wall_tick.max(theirs.unwrap_or(0));
        guarded.max(rules.position(tick + plan.ticks(distance)))
    }

    /// Ends the attempt. A claim from which nothing was issued is released first.
    fn end(&mut self, verdict: Verdict, now: &Now) -> Step {
        let (Some(unused), Some(record)) = (self.mine.take(), &self.record) else {
            return Step::Over(verdict);
        };
        let new = Record {
            owner: 0,
            released: true,
            bound: unused.min(record.bound),
            attempt: now.number(),
            ..record.clone()
        };
        self.ends = Some(verdict);
        let write = Write::Record {
            old: self.record.clone(),
            new,
        };
        Step::Send(self.sent.insert(write).clone())
    }

    /// Releases a claim from which nothing was issued.
    pub(in crate::lease) fn give_back(&mut self, record: Record, next: u64, now: &Now) {
        (self.record, self.mine) = (Some(record), Some(next));
        self.end(Verdict::Taken, now);
    }

    /// True if the attempt ends because its request was not answered. A creation is never sent again
    /// (SAFETY.md, rule 3): if the first copy arrived late, it would bring back a record that was deleted in
    /// between, with its birth. Another survey shows the outcome.
    pub(in crate::lease) fn ends_unanswered(&self) -> bool {
        matches!(self.sent, Some(Write::Record { old: None, .. }))
    }

    /// Handles the answer to a change of the record.
    pub(in crate::lease) fn on_record(&mut self, answer: Cas<Record>) -> Option<Verdict> {
        let Some(Write::Record { new, .. }) = self.sent.take() else {
            return Some(Verdict::Taken);
        };
        if self.ends.is_some() {
            return self.ends.take();
        }
        if let Cas::Conflict(current) = answer {
            let is_elsewhere = current.is_some_and(|current| {
                current.owner == Record::FOREIGN && Some(&current) == self.record.as_ref()
            });
            return Some(match is_elsewhere {
                true => Verdict::Elsewhere,
                false => Verdict::Taken,
            });
        }
        // SAFETY.md, rule 1: from here on the claim's window may be used.
        self.mine = self.from.take();
        self.record = Some(new);
        None
    }

    /// Handles the answer to a change of the marks. On a conflict the attempt continues with the current marks:
    /// other processes mark their machine IDs in the same bucket.
    pub(in crate::lease) fn on_marks(&mut self, answer: Cas<Marks>) -> Option<Verdict> {
        let Some(Write::Marks { new, .. }) = self.sent.take() else {
            return Some(Verdict::Taken);
        };
        self.marks = match answer {
            Cas::Done => Some(new),
            Cas::Conflict(current) => current,
        };
        None
    }

    /// Handles the answer to [`Step::Look`].
    pub(in crate::lease) fn on_look(&self, current: Option<Record>) -> Verdict {
        if current == self.record {
            Verdict::Lost
        } else {
            Verdict::Taken
        }
    }

    /// Handles the answer to [`Step::Floor`].
    pub(in crate::lease) fn on_floor(
        &mut self,
        namespace: &Namespace,
        plan: &Plan,
        now: &Now,
    ) -> Option<Verdict> {
        if namespace.uuid != self.ground.namespace {
            return Some(Verdict::Taken); // the claim belongs to a namespace that is gone
        }
        if namespace.doubt != self.ground.doubt {
            // The claim's start was computed under another doubt.
            self.end(Verdict::Taken, now);
            return None;
        }
        self.floor = namespace.floor;
        let (next, record) = (self.mine?, self.record.clone()?);
        // Under a doubt a claim that took long keeps its distance from the present moment: ranges that others
        // reserved meanwhile may be forgotten, too.
        let next = match self.ground.doubt {
            Some(_) => next.max(self.start(&record, plan, now)),
            None => next,
        };
        // SAFETY.md, rule 6. If the claim starts below the floor, it is repeated above it; nothing was issued
        // yet.
        (self.floor <= next).then_some(Verdict::Claimed { record, next })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// The outcome of a claim that the store refuses, showing a record in place of the one that was read.
    fn refused(read: u128, shown: u128) -> Option<Verdict> {
        let record = |owner| Record {
            owner,
            ..Record::default()
        };
        let mut attempt = Attempt {
            record: Some(record(read)),
            sent: Some(Write::Record {
                old: Some(record(read)),
                new: record(7),
            }),
            ..Attempt::default()
        };
        attempt.on_record(Cas::Conflict(Some(record(shown))))
    }

    #[test]
    fn a_machine_id_that_another_system_holds_is_left_once_it_is_reserved() {
        assert_eq!(
            refused(Record::FOREIGN, Record::FOREIGN),
            Some(Verdict::Elsewhere)
        );
        // Another survey shows the new reservation.
        assert_eq!(refused(0, Record::FOREIGN), Some(Verdict::Taken));
        assert_eq!(refused(Record::FOREIGN, 8), Some(Verdict::Taken));
        assert_eq!(refused(8, 8), Some(Verdict::Taken));
    }
}
