//! The driver: asks what the state machine wants to know, and does what it says.

use std::any::Any;
use std::time::Duration;

use super::state::{
    Action, Answer, Ask, CLAIM_AGAIN, Claimed, DOUBT_CHECK, Event, Findings, Machine, Now, Write,
};
use super::{CLAIM_TIMEOUT, Choice, Doubt, HostState, Leases, MachineSlot, Plan};
use crate::clock::{AnyClock, MAX_LEAD};
use crate::error::{BuildError, StoreError, ask_store};
use crate::held_lease::{HeldLease, HeldLeaseFactory};

/// One state machine with its store, host state and clock.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(super) machine: Machine,
    leases: Leases,
    host: HostState,
    factory: HeldLeaseFactory,
    /// The lock on the machine ID in the store, until it is sealed.
    lock: Option<Box<dyn Any + Send>>,
}

impl Driver {
    /// Claims a machine ID, or fails once the claim times out.
    pub(crate) fn start(
        plan: Plan,
        leases: Leases,
        host: HostState,
        factory: HeldLeaseFactory,
    ) -> Result<(Self, MachineSlot), BuildError> {
        let now = now(&plan, &factory.clock);
        let mut driver =
            Self { machine: Machine::new(plan, &now), leases, host, factory, lock: None };
        loop {
            match driver.advance(None) {
                Ok(Event::Claimed(claimed)) => {
                    // Whoever waits for a store at start need not be deaf to a stop later.
                    driver.machine.plan.claim_timeout = CLAIM_TIMEOUT;
                    let held = driver.hold(&claimed)?;
                    let slot = MachineSlot::new(held, driver.clock().monotonic());
                    driver.show_doubt(&slot);
                    return Ok((driver, slot));
                }
                Ok(Event::Refused(error)) => return Err(error),
                Ok(_) => {}
                Err(pause) => driver.clock().park(pause.unwrap_or_default()),
            }
        }
    }

    pub(super) const fn clock(&self) -> &AnyClock {
        &self.factory.clock
    }

    /// Does what is due. Returns how long there is nothing more to do, or `None` if it is over.
    pub(super) fn step(&mut self, slot: &MachineSlot) -> Option<Duration> {
        let held = slot.leases.current();
        let plan = &self.machine.plan;
        let reach = self.machine.doubt.as_ref().map(|doubt| doubt.reach);
        let far_behind = MAX_LEAD + plan.distance(reach, self.clock().wall());
        if slot.stopping() {
            self.machine.release(held.seal("it was shut down"));
            self.machine.stop();
        } else if !self.machine.is_holding() {
            if held.ticks.read().suspect {
                tracing::error!("no machine ID is claimed while the clock is suspect");
                return Some(CLAIM_AGAIN);
            }
        } else if held.ticks.read().lead > far_behind && matches!(plan.choice, Choice::Any(_)) {
            let machine = held.machine;
            tracing::warn!(machine, "the clock is far behind: changing the machine ID");
            self.machine.release(held.seal("the clock is far behind what it issued"));
        }
        if held.sealed_reason().is_some() && self.machine.is_holding() {
            self.lock = None;
        }
        match self.advance(Some(held)) {
            Ok(event) => {
                self.show_doubt(slot);
                self.carry_out(event, held, slot);
                Some(Duration::ZERO)
            }
            Err(pause) => pause,
        }
    }

    /// Takes the machine one step on. Without anything to do: how long, or `None` if it is over.
    fn advance(&mut self, held: Option<&HeldLease>) -> Result<Event, Option<Duration>> {
        let now = self.now(held);
        match self.machine.next(&now) {
            Action::Wait(until) => Err(Some(until.saturating_sub(now.monotonic))),
            Action::Stop => Err(None),
            Action::Refused(error) => Ok(Event::Refused(error)),
            Action::Ask(ask) => Ok(self.ask(ask, held)),
        }
    }

    fn ask(&mut self, ask: Ask, held: Option<&HeldLease>) -> Event {
        let (leases, host, clock) = (&self.leases, &mut self.host, &self.factory.clock);
        let (plan, store, lock) = (&self.machine.plan, leases.store(), &mut self.lock);
        let open = |doubt| leases.open_doubted(&plan.meta.fingerprint(), doubt);
        let answer = ask_store(|| {
            Ok(match ask {
                Ask::Namespace => Answer::Namespace(open(None)?),
                Ask::Doubt => Answer::Doubt(leases.look(clock.monotonic(), DOUBT_CHECK)?),
                Ask::WriteDoubt(doubt) => Answer::Namespace(leases.doubt(&doubt)?),
                Ask::Survey => {
                    let doubt = store.doubt()?;
                    open(plan.first_doubt(doubt.as_ref(), clock.wall()))?;
                    let (locals, snapshot) = (host.survey(), leases.snapshot()?);
                    // The clock last: it is compared with this host's as it is then.
                    Answer::Survey(Findings { doubt, clock: store.now()?, snapshot, locals })
                }
                Ask::Record(machine) => Answer::Found(leases.record(machine)?),
                Ask::Write(machine, change) => write(leases, machine, *change)?,
                Ask::IsFree(machine) => Answer::Free(host.is_free(machine)),
                Ask::Keep(machine) => {
                    *lock = None; // it may be the same one
                    *lock = leases.lock(machine)?.filter(|_| host.keep(machine, &**clock));
                    Answer::Kept(lock.is_some())
                }
            })
        });
        let now = self.now(held);
        self.machine.on_answer(answer.unwrap_or_else(Answer::Failed), &now)
    }

    fn carry_out(&mut self, event: Event, held: &HeldLease, slot: &MachineSlot) {
        let machine = held.machine;
        match event {
            Event::None => {}
            Event::Claimed(claimed) => match self.hold(&claimed) {
                Ok(next) => {
                    let (machine, epoch) = (next.machine, next.epoch);
                    tracing::warn!(machine, epoch, "going on with this machine ID");
                    next.ticks.trust_as(&held.ticks);
                    slot.follow(next);
                    let mut state = slot.state.lock();
                    (state.failure, state.away_since) = (None, None);
                    state.rehomed += 1;
                }
                Err(error) => self.refused(&error, slot),
            },
            Event::Refused(error) => self.refused(&error, slot),
            Event::Raised(record) => {
                self.host.remember(&record);
                held.raise(record.bound);
                let now = self.clock().monotonic();
                let mut state = slot.state.lock();
                state.renewals_ok += 1;
                (state.renewed_at, state.away_since) = (now, None);
            }
            Event::Released(record) => {
                self.host.remember(&record);
                tracing::info!(machine, "machine ID released");
            }
            Event::Unsure(error) => {
                slot.state.lock().renewal_failed(self.clock().monotonic());
                let store = &self.machine.plan.store;
                tracing::warn!(store, %error, "renewal was not answered; trying again");
            }
            Event::Broken(error) => {
                slot.state.lock().renewals_failed += 1;
                let store = &self.machine.plan.store;
                tracing::error!(store, %error, "the store failed for good: no more IDs");
                held.seal(&error.to_string());
            }
            Event::Fenced(current) => {
                slot.state.lock().fenced += 1;
                let reason = match current {
                    Some(_) => "another process took its machine ID over",
                    None => "the record of its machine ID was deleted",
                };
                held.seal(reason);
                let (by_host, by_pid) = current.map(|record| (record.host, record.pid)).unzip();
                tracing::error!(machine, by_host, by_pid, "{reason}");
            }
        }
    }

    fn show_doubt(&self, slot: &MachineSlot) {
        let (doubt, plan) = (&self.machine.doubt, &self.machine.plan);
        let mut state = slot.state.lock();
        if state.doubt == *doubt {
            return;
        }
        state.doubt.clone_from(doubt);
        let (store, namespace) = (&plan.store, &plan.namespace);
        match doubt {
            Some(Doubt { since, why, .. }) => tracing::warn!(
                store, namespace, %since, why,
                "the store may forget what it acknowledged: claims keep a distance from that"
            ),
            None => tracing::info!(store, namespace, "the store is trusted again"),
        }
    }

    fn refused(&mut self, error: &BuildError, slot: &MachineSlot) {
        self.host.let_go();
        tracing::error!(%error, "no machine ID; trying again");
        slot.state.lock().search_failed(error.to_string(), self.clock().monotonic());
    }

    fn hold(
        &mut self,
        Claimed { machine, record, next }: &Claimed,
    ) -> Result<HeldLease, BuildError> {
        self.host.remember(record);
        Ok(self.factory.make(*machine, record.epoch, *next, record.bound)?)
    }

    fn now(&self, held: Option<&HeldLease>) -> Now {
        let now = now(&self.machine.plan, self.clock());
        let tick = match held {
            // From a store that may forget no reservation reaches further ahead of the wall clock
            // than where the next claim would begin.
            Some(held) if self.machine.doubt.is_some() => held.ticks.wall_tick(),
            Some(held) => held.ticks.effective_tick(),
            None => now.tick,
        };
        Now { tick, ..now }
    }
}

/// Makes a change of one entry.
pub(super) fn write(leases: &Leases, machine: u64, change: Write) -> Result<Answer, StoreError> {
    Ok(match change {
        Write::Record { old, new } => Answer::Record(leases.change(machine, old.as_ref(), &new)?),
        Write::Marks { old, new } => Answer::Marks(leases.mark(machine, old.as_ref(), &new)?),
    })
}

fn now(plan: &Plan, clock: &AnyClock) -> Now {
    let wall = clock.wall();
    let wall_tick = plan.meta.tick_at(wall).unwrap_or(0);
    Now { monotonic: clock.monotonic(), wall, wall_tick, tick: wall_tick, random: clock.random() }
}
