//! Driver of one machine slot: finds what is due, and carries out what the state machine decides.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::plain;

use super::held::HeldLease;
use super::machine::MachineSlot;
use crate::BuildError;
use crate::clock::{AnyClock, MAX_LEAD};
use crate::lease::state::{Action, Answer, Ask, Event, Machine, Now};
use crate::lease::{Choice, EventKind, Plan};

/// State machine together with its slot.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) machine: Machine,
    /// `None` until the first claim.
    pub(super) slot: Option<Arc<MachineSlot>>,
    /// Machine ID that the slot holds or tries: no other slot of this process takes it.
    pub(super) place: Option<u64>,
    /// Lock on the machine ID in the store, held until the lease is sealed.
    pub(super) lock: Option<Box<dyn Any + Send>>,
    pub(super) is_over: bool,
}

/// Next step of a driver.
#[derive(Debug)]
pub(super) enum Due {
    Ask(Ask),
    Refused(BuildError),
    /// Nothing to do for this long.
    Nothing(Duration),
    /// Nothing is ever due again.
    Over,
}

impl Driver {
    pub(super) fn new(plan: &Plan, clock: &AnyClock) -> Self {
        let machine = Machine::new(plan.clone(), &at(plan, clock));
        Self {
            machine,
            slot: None,
            place: None,
            lock: None,
            is_over: false,
        }
    }

    /// Finds what is due. Only the question whether a machine ID is free is answered here, at once:
    /// a thousand of them may be taken already.
    pub(super) fn due(
        &mut self,
        clock: &AnyClock,
        jitter: u64,
        mut is_free: impl FnMut(&mut Option<u64>, u64) -> Answer,
    ) -> Due {
        if self.is_over {
            return Due::Over;
        }
        let slot = self.slot.clone();
        let held = slot.as_ref().map(|slot| slot.leases.current());
        if let (Some(slot), Some(held)) = (&slot, held) {
            self.look_around(slot, held, clock);
        }
        let now = present(&self.machine, held, clock, jitter);
        loop {
            return match self.machine.next(&now) {
                Action::Ask(Ask::IsFree(machine)) => {
                    let answer = is_free(&mut self.place, machine);
                    self.machine.on_answer(answer, &now);
                    continue;
                }
                Action::Ask(ask) => Due::Ask(ask),
                Action::Refused(error) => Due::Refused(error),
                Action::Stop => Due::Over,
                Action::Wait(until) => {
                    if let Some(slot) = slot {
                        slot.next_attempt_at(until);
                        self.report_holder(&slot, clock);
                    }
                    Due::Nothing(until.saturating_sub(now.monotonic))
                }
            };
        }
    }

    /// Publishes which process holds the machine ID while this one stands by; each holder is logged once.
    pub(super) fn report_holder(&self, slot: &MachineSlot, clock: &AnyClock) {
        let Some(holder) = self.machine.stands_by_for() else {
            return;
        };
        let mut state = slot.state.lock();
        (state.failure, state.away_since) = (None, None); // the store has answered
        if state.holder.as_ref() == Some(&holder) {
            return;
        }
        state.holder = Some(holder.clone());
        drop(state);
        let machine = slot.leases.current().machine;
        tracing::info!(machine, holder, "standing by for this machine ID");
        let text = format!("standing by: {holder} holds the machine ID");
        slot.keeper
            .journal
            .note(clock.wall(), EventKind::StandingBy, machine, text);
    }

    /// Seals and releases a lease that is to be given up.
    fn look_around(&mut self, slot: &MachineSlot, held: &HeldLease, clock: &AnyClock) {
        if slot.stopping() {
            self.machine.release(held.seal("it was shut down"));
            self.machine.stop();
        } else if let Some((kind, reason, text)) = self.reason_to_give_up(held, clock) {
            let machine = held.machine;
            tracing::warn!(machine, "{text}");
            slot.keeper.journal.note(clock.wall(), kind, machine, text);
            self.machine.release(held.seal(reason));
        }
        if held.sealed_reason().is_some() && self.machine.is_holding() {
            self.lock = None;
        }
    }

    /// Reason for giving a lease up, and the text of the event, while the process goes on.
    fn reason_to_give_up(
        &self,
        held: &HeldLease,
        clock: &AnyClock,
    ) -> Option<(EventKind, &'static str, &'static str)> {
        let Self { machine, .. } = self;
        if machine.is_overdue() {
            return Some((
                EventKind::NotRenewed,
                "the store may have forgotten a successor",
                "the store may have forgotten a successor: claiming a machine ID again",
            ));
        }
        let may_change = machine.is_holding() && matches!(machine.plan.choice, Choice::Any(_));
        let distance = Plan::distance(machine.doubt.as_ref(), clock.wall());
        let is_behind = may_change && held.ticks.read().lead > MAX_LEAD + distance;
        is_behind.then_some((
            EventKind::Clock,
            "the clock is far behind what it issued",
            "the clock is far behind what was issued: changing the machine ID",
        ))
    }

    /// The present, as the state machine sees it.
    pub(super) fn present(&self, clock: &AnyClock, jitter: u64) -> Now {
        let held = self.slot.as_ref().map(|slot| slot.leases.current());
        present(&self.machine, held, clock, jitter)
    }

    /// Applies an event to the slot. `claimed` is the lease of a claim.
    pub(super) fn carry_out(&mut self, event: Event, claimed: Option<HeldLease>, clock: &AnyClock) {
        let Some(slot) = self.slot.clone() else {
            return;
        };
        let (now, wall) = (clock.monotonic(), clock.wall());
        let held = slot.leases.current();
        let machine = held.machine;
        let note =
            |kind, machine, text: String| slot.keeper.journal.note(wall, kind, machine, text);
        match event {
            Event::None => {}
            Event::Claimed(_) => {
                let Some(next) = claimed else { return };
                let (machine, claim) = (next.machine, next.epoch);
                let text = if self.machine.plan.standby.is_some() {
                    tracing::info!(machine, claim, "took over this machine ID");
                    format!("took over the machine ID, claim {claim}")
                } else {
                    tracing::warn!(machine, claim, "going on with this machine ID");
                    format!("going on with this machine ID, claim {claim}")
                };
                note(EventKind::Moved, machine, text);
                next.ticks.trust_as(&held.ticks);
                slot.follow(next);
                let mut state = slot.state.lock();
                (state.failure, state.away_since, state.holder) = (None, None, None);
                state.rehomed += 1;
                state.renewed_at = now;
            }
            Event::Refused(error) => {
                let first = slot.state.lock().search_failed(error.to_string(), now);
                if first {
                    tracing::error!(%error, "no machine ID; trying again");
                    note(EventKind::NotClaimed, machine, error.to_string());
                }
            }
            Event::Raised(record) => {
                // SAFETY.md, rule 1: the record was acknowledged.
                held.raise(record.bound);
                if let Some(end) = self.machine.ends_at() {
                    held.lasts_until(end);
                }
                let mut state = slot.state.lock();
                (state.renewals_ok, state.failure) = (state.renewals_ok + 1, None);
                let away = std::mem::take(&mut state.away_since);
                state.renewed_at = now;
                drop(state);
                if let Some(since) = away {
                    let seconds = now.saturating_sub(since).as_secs();
                    let text = format!("the store answers again, after {seconds} s");
                    note(EventKind::RenewedLate, machine, text);
                }
            }
            Event::Released(_) => {
                tracing::info!(machine, "machine ID released");
                note(EventKind::Released, machine, "given back".into());
            }
            Event::Unsure(error) => {
                tracing::debug!(machine, %error, "renewal was not answered");
                if slot.state.lock().renewal_failed(error.to_string(), now) {
                    note(EventKind::NotRenewed, machine, error.to_string());
                }
            }
            Event::Broken(error) => {
                slot.state.lock().renewals_failed += 1;
                let store = &self.machine.plan.store;
                let (kind, why) = match error.is_two_stores() {
                    true => (
                        EventKind::TwoStores,
                        "an older store stands behind the same URL",
                    ),
                    false => (
                        EventKind::Sealed,
                        "the store's file was replaced or cannot be written",
                    ),
                };
                tracing::error!(store, %error, "no more IDs: {why}");
                held.seal(&error.to_string());
                note(kind, machine, error.to_string());
            }
            Event::WentBack(current) => {
                slot.state.lock().went_back += 1;
                let store = &self.machine.plan.store;
                let now = match current {
                    Some(record) => format!("the record has claim {}", record.epoch),
                    None => "the record or its namespace is gone".into(),
                };
                let text = format!("the store went back to an earlier state: {now}");
                tracing::error!(
                    store,
                    machine,
                    epoch = held.epoch,
                    "{text}; IDs stop, and the namespace's floor is raised above them. Look for a restore \
                     or a fail-over, and compare the IDs that were made since"
                );
                self.machine.release(held.seal(&text));
                note(EventKind::WentBack, machine, text);
            }
            Event::GivenUp(raised) => {
                let text = match raised {
                    true => "given up: the namespace's floor lies above its IDs",
                    false => "given up: its namespace is gone, so no floor protects its IDs",
                };
                tracing::warn!(machine, "{text}");
                note(EventKind::WentBack, machine, text.into());
            }
            Event::Fenced(current) => {
                slot.state.lock().fenced += 1;
                let reason = "another process took its machine ID over";
                held.seal(reason);
                let text = format!("{reason}: {} (pid {})", plain(&current.host), current.pid);
                tracing::error!(machine, "{text}");
                note(EventKind::Fenced, machine, text);
            }
        }
    }

    /// Ends the driver: its lock and its machine ID become free.
    pub(super) fn end(&mut self) {
        (self.is_over, self.lock, self.place) = (true, None, None);
        if let Some(slot) = &self.slot {
            slot.end();
        }
    }

    pub(super) const fn plan(&self) -> &Plan {
        &self.machine.plan
    }
}

fn present(machine: &Machine, held: Option<&HeldLease>, clock: &AnyClock, jitter: u64) -> Now {
    let now = Now {
        jitter,
        ..at(&machine.plan, clock)
    };
    let Some(held) = held else { return now };
    // Under a doubt no reservation reaches further ahead of the wall clock than where the next
    // claim would begin.
    let tick = match machine.doubt {
        Some(_) => held.ticks.wall_tick(),
        None => held.ticks.effective_tick(),
    };
    let reading = held.ticks.read();
    let wall = if machine.is_holding() {
        reading.wall()
    } else {
        now.wall
    };
    Now {
        wall,
        tick,
        suspect: reading.suspect,
        ..now
    }
}

fn at(plan: &Plan, clock: &AnyClock) -> Now {
    let wall = clock.wall();
    let wall_tick = plan.meta.tick_at(wall).unwrap_or(0);
    let (monotonic, random) = (clock.monotonic(), clock.random());
    Now {
        monotonic,
        wall,
        wall_tick,
        tick: wall_tick,
        suspect: false,
        random,
        jitter: 0,
    }
}
