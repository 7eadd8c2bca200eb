//! A machine ID after its claim: extended periodically, then released or fenced. Pure.

use std::time::Duration;

use vesta_intf::UnixMillis;

use super::{Action, Answer, Ask, DOUBT_CHECK, Event, MAX_SKEW, Now, Plan, WIDE_AFTER, Write};
use crate::clock::ClockPair;
use crate::lease::{Amendment, Cas, Doubt, Namespace, Record};

/// Lease state, from the claim to the release or the loss.
#[derive(Debug, Clone)]
pub(in crate::lease) struct Holding {
    machine: u64,
    /// Doubt about the store, as the namespace recorded it at the last check.
    pub(in crate::lease) doubt: Option<Doubt>,
    /// Start of that check, on the monotonic clock.
    checked: Duration,
    /// Facts that the namespace lacks.
    unwritten: Option<Amendment>,
    /// Time since which the namespace shows the windows of this process, on the monotonic clock.
    announced: Option<Duration>,
    /// True once the store's clock was read for the next change. The store may have no clock.
    compared: bool,
    clock: Option<ClockPair>,
    /// The clock as it was read for the change that is pending or was acknowledged last.
    counted: Option<ClockPair>,
    /// Until the store's clock has come near this position, no other process can have taken the record over: its
    /// last bound that was acknowledged in time.
    alone_below: u64,
    /// True once the store's clock has reached it.
    overdue: bool,
    /// Ticks by which this host's clock was ahead of the store's when the last window was counted.
    ahead: u64,
    /// True once the store was found in an earlier state.
    went_back: bool,
    /// The record, as last acknowledged by the store.
    record: Record,
    /// The change that was sent and not yet answered. Until its outcome is known it is sent again unchanged,
    /// and nothing else is sent.
    pending: Option<Record>,
    /// Time at which that change was made, or the last one if none is pending, on the monotonic clock.
    pub(in crate::lease) made: Duration,
    /// Time at which the last acknowledged change was made, on the monotonic clock.
    pub(super) shown: Duration,
    /// Time of the next request, on the monotonic clock.
    pub(super) due: Duration,
    /// True if the last request was not answered.
    unanswered: bool,
    /// Position at which the machine ID was sealed, once it is to be released.
    sealed_at: Option<u64>,
}

impl Holding {
    /// A lease whose claim was acknowledged with this record.
    pub(in crate::lease) fn new(
        plan: &Plan,
        machine: u64,
        doubt: Option<Doubt>,
        record: Record,
        now: &Now,
    ) -> Self {
        let due = now.monotonic + now.spread(plan.renew_every(doubt.is_some(), false));
        Self {
            machine,
            doubt,
            checked: now.monotonic,
            unwritten: None,
            announced: Some(now.monotonic),
            compared: false,
            clock: None,
            counted: None,
            alone_below: record.bound,
            overdue: false,
            ahead: 0,
            went_back: false,
            record,
            pending: None,
            made: now.monotonic,
            shown: now.monotonic,
            due,
            unanswered: false,
            sealed_at: None,
        }
    }

    /// Releases the record. `sealed_at` is what sealing returned: no position at or above it was or will be
    /// issued.
    pub(in crate::lease) fn release(&mut self, sealed_at: u64) {
        if self.sealed_at.is_none() {
            self.sealed_at = Some(sealed_at);
            self.due = Duration::ZERO;
        }
    }

    /// True if the lease is to be given up: under a doubt, another process may have taken the record over and issued
    /// IDs, and the store may have forgotten that.
    pub(in crate::lease) const fn is_overdue(&self) -> bool {
        self.overdue && self.sealed_at.is_none()
    }

    /// Brings forward what is due within a fifth of a renewal interval; within a fiftieth, if the last
    /// request was not answered.
    pub(in crate::lease) fn hurry(&mut self, plan: &Plan, now: &Now) {
        let wide = self.is_wide(now);
        let soon =
            plan.renew_every(self.doubt.is_some(), wide) / if self.unanswered { 50 } else { 5 };
        if self.due <= now.monotonic + soon {
            self.due = self.due.min(now.monotonic);
        }
    }

    /// Returns the next action.
    pub(in crate::lease) fn next(&mut self, plan: &Plan, now: &Now) -> Action {
        // A clock that was stepped ahead can be past the bound long before a renewal is due.
        let used_up = self.sealed_at.is_none()
            && !self.went_back
            && !self.unanswered
            && plan.rules.position(now.tick.saturating_sub(self.ahead)) >= self.record.bound;
        if now.monotonic < self.due && !used_up {
            return Action::Wait(self.due);
        }
        if self.went_back {
            // SAFETY.md, rule 9: once the floor is raised, every claim begins above everything issued here.
            let (namespace, floor) = (self.record.namespace, self.unused_from());
            return Action::Ask(Ask::Amend(Amendment {
                namespace,
                floor,
                ..Amendment::default()
            }));
        }
        if self.pending.is_none() {
            self.made = now.monotonic;
            if self.sealed_at.is_none() {
                let looks = now.monotonic.saturating_sub(self.checked) >= DOUBT_CHECK;
                if !self.compared && (looks || self.doubt.is_some() || now.suspect) {
                    return Action::Ask(Ask::Clock);
                }
                if let Some(facts) = &self.unwritten {
                    return Action::Ask(Ask::Amend(facts.clone()));
                }
                // Checked before a window is counted: a process that writes a doubt knows nothing of this
                // process's windows.
                if looks {
                    return Action::Ask(Ask::Doubt);
                }
            }
            if !self.is_overdue() {
                self.pending = self.change(plan, now);
            }
        }
        // SAFETY.md, rule 3: unchanged, until its outcome is known.
        let Some(new) = self.pending.clone() else {
            self.due = now.monotonic + self.pause(plan, now);
            return Action::Wait(self.due);
        };
        let old = Some(self.record.clone());
        Action::Ask(Ask::Write(
            self.machine,
            Box::new(Write::Record { old, new }),
        ))
    }

    /// The change that is due, if any.
    fn change(&mut self, plan: &Plan, now: &Now) -> Option<Record> {
        let changed = Record {
            attempt: now.number(),
            info_time: now.wall,
            ..self.record.clone()
        };
        if self.sealed_at.is_some() {
            // SAFETY.md, rule 4: the only lowering of a bound, down to the first position that sealing left
            // unused.
            let bound = self.unused_from();
            return Some(Record {
                bound,
                owner: 0,
                released: true,
                ..changed
            });
        }
        // Under a doubt the store's clock counts: time that this host's clock shows beyond it buys nothing.
        // Each reading is used for one window only.
        self.counted = self.clock.take().filter(|_| self.doubt.is_some());
        let limit = self
            .counted
            .map_or(u64::MAX, |pair| plan.meta.tick_at(pair.theirs).unwrap_or(0));
        self.compared = false;
        self.ahead = now.tick.saturating_sub(limit);
        // The bound counts from the clock, not from the old bound: that would run away.
        let window = plan.window_ticks(self.doubt.is_some(), self.is_wide(now));
        let bound = plan
            .rules
            .position(now.tick.min(limit).saturating_add(window));
        let bound = bound.max(self.record.bound);
        let is_due = bound > self.record.bound || plan.shows_life(now);
        is_due.then_some(Record { bound, ..changed })
    }

    /// Handles an answer.
    pub(in crate::lease) fn on_answer(&mut self, plan: &Plan, answer: Answer, now: &Now) -> Event {
        self.unanswered = matches!(answer, Answer::Failed(_));
        let answer = match answer {
            Answer::Failed(error) if error.is_replaced() => return Event::Broken(error),
            // SAFETY.md, rule 7. Whatever the store refuses, safety rests on the bound: continue, and ask again.
            Answer::Failed(error) => {
                self.compared = false;
                self.due = now.monotonic + self.pause(plan, now) / 10;
                return Event::Unsure(error);
            }
            Answer::Clock(pair) => {
                (self.compared, self.clock) = (true, pair);
                self.check_for_successors(plan, now);
                return Event::None;
            }
            Answer::Doubt(look) => {
                self.checked = look.asked;
                let Some(namespace) = look.namespace else {
                    return self.go_back(None);
                };
                // The reach of a doubt counts from the later clock.
                let theirs = self.clock.map(|pair| pair.theirs);
                let wall = now.wall.max(theirs.unwrap_or_default());
                self.unwritten =
                    plan.missing_from(&namespace, look.seen.as_ref(), look.server.as_ref(), wall);
                return self.on_namespace(namespace, plan, now);
            }
            Answer::Namespace(namespace) => {
                if self.went_back {
                    return Event::GivenUp(namespace.uuid == self.record.namespace);
                }
                self.unwritten = None;
                return self.on_namespace(namespace, plan, now);
            }
            Answer::NoNamespace if self.went_back => return Event::GivenUp(false),
            Answer::NoNamespace => return self.go_back(None),
            answer => answer,
        };
        let Some(pending) = self.pending.take() else {
            return Event::None; // an answer without a request is ignored
        };
        match answer {
            Answer::Record(Cas::Conflict(current)) => {
                // A release whose reply was lost may have lowered the bound.
                let bound = pending.bound.min(self.record.bound);
                let known = Record {
                    bound,
                    ..self.record.clone()
                };
                match current {
                    Some(current) if !known.is_ahead_of(&current) => Event::Fenced(current),
                    current => self.go_back(current),
                }
            }
            Answer::Record(Cas::Done) if pending.released => Event::Released(pending),
            Answer::Record(Cas::Done) => {
                let late = match self.doubt {
                    Some(_) => {
                        let theirs = self.counted.map(|pair| pair.latest(now.monotonic));
                        self.is_over_at(theirs, plan, now)
                    }
                    None => now.monotonic.saturating_sub(self.made) > DOUBT_CHECK,
                };
                (self.record, self.shown) = (pending, self.made);
                if !late {
                    self.alone_below = self.record.bound;
                }
                if self.sealed_at.is_none() {
                    // The interval counts from when the change was made. If it was answered late, after an
                    // outage, its bound may lie in the past by now, and the next change is due at once.
                    self.due = self.made + self.pause(plan, now);
                }
                Event::Raised(self.record.clone())
            }
            _ => {
                self.pending = Some(pending);
                Event::None // not the answer to what was asked
            }
        }
    }

    /// Handles the namespace as just read.
    fn on_namespace(&mut self, namespace: Namespace, plan: &Plan, now: &Now) -> Event {
        if namespace.uuid != self.record.namespace {
            return self.go_back(None);
        }
        let announced = self.announced.unwrap_or(now.monotonic);
        self.announced = self.unwritten.is_none().then_some(announced);
        self.doubt = namespace.doubt;
        self.check_for_successors(plan, now);
        Event::None
    }

    /// Under a doubt a lease is not extended once another process may have taken its record over: a store that
    /// forgot the takeover would accept the extend, and both would issue the same positions (SAFETY.md, rule 12).
    fn check_for_successors(&mut self, plan: &Plan, now: &Now) {
        let theirs = self.clock.map(|pair| pair.theirs);
        let silent = plan.may_be_replaced(self.shown, now);
        self.overdue = self.doubt.is_some() && (silent || self.is_over_at(theirs, plan, now));
        if !self.overdue {
            self.alone_below = self.record.bound; // whatever was acknowledged was acknowledged before now
        }
    }

    /// True if that position is less than the skew ahead of the store's clock, or of this host's if the store
    /// has none.
    fn is_over_at(&self, theirs: Option<UnixMillis>, plan: &Plan, now: &Now) -> bool {
        let tick = theirs.map_or(now.wall_tick, |theirs| {
            plan.meta.tick_at(theirs).unwrap_or(0)
        });
        plan.rules
            .position(tick.saturating_add(plan.ticks(MAX_SKEW)))
            >= self.alone_below
    }

    /// Records that the store forgot the record or shows an earlier one.
    const fn go_back(&mut self, current: Option<Record>) -> Event {
        (self.due, self.went_back) = (Duration::ZERO, true);
        Event::WentBack(current)
    }

    /// Lowest known position at or above which nothing was issued; exact once the lease is sealed.
    fn unused_from(&self) -> u64 {
        self.sealed_at.unwrap_or(u64::MAX).min(self.record.bound)
    }

    pub(super) fn pause(&self, plan: &Plan, now: &Now) -> Duration {
        now.spread(plan.renew_every(self.doubt.is_some(), self.is_wide(now)))
    }

    /// SAFETY.md, rule 10: a longer window is used only after the namespace has shown it for ten minutes.
    fn is_wide(&self, now: &Now) -> bool {
        self.announced
            .is_some_and(|since| now.monotonic >= since + WIDE_AFTER)
    }
}

#[cfg(test)]
mod tests;
