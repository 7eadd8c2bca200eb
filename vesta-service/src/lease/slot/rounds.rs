//! Rounds of all slots of a service, over one store and one folder. A round asks for everything that is due
//! together: questions common to all slots are asked once, and changes go side by side.

mod asking;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::driver::{Driver, Due};
use super::held::HeldLeaseFactory;
use super::machine::MachineSlot;
use super::signals::Signals;
use crate::clock::{AnyClock, ClockPair};
use crate::error::{BuildError, StoreError, ask_store};
use crate::lease::state::{Answer, Claimed, Event};
use crate::lease::{CLAIM_TIMEOUT, Doubt, EventKind, HostState, Leases, Plan};

/// All slots of a service, each with its driver.
#[derive(Debug)]
pub(crate) struct Rounds {
    drivers: Vec<Driver>,
    leases: Leases,
    host: HostState,
    factory: HeldLeaseFactory,
    signals: Arc<Signals>,
    /// Machine IDs that one of the drivers holds or tries.
    taken: BTreeSet<u64>,
    /// Last reported state of the store.
    said: Said,
    /// Error that ends the start.
    refused: Option<BuildError>,
}

/// Reported state of a store, kept so that each state is reported once.
#[derive(Debug, Default)]
struct Said {
    doubt: Option<Doubt>,
    /// Error that was last logged, while it lasts.
    error: Option<String>,
    /// Last comparison with the store's clock.
    clock: Option<ClockPair>,
    /// Number of comparisons that differed since the difference was logged.
    differed: u64,
}

impl Rounds {
    /// Claims as many machine IDs as the plan asks for, or fails once a claim times out.
    pub(crate) fn start(
        plan: Plan,
        leases: Leases,
        host: HostState,
        factory: HeldLeaseFactory,
    ) -> Result<Self, BuildError> {
        let drivers = (0..plan.count)
            .map(|_| Driver::new(&plan, &factory.clock))
            .collect();
        let (signals, taken) = (Arc::default(), BTreeSet::new());
        let (said, refused) = (Said::default(), None);
        let mut this = Self {
            drivers,
            leases,
            host,
            factory,
            signals,
            taken,
            said,
            refused,
        };
        loop {
            let pause = this.round().unwrap_or_default();
            this.stand_by()?;
            if let Some(error) = this.refused.take() {
                this.give_up();
                return Err(error);
            }
            if this.drivers.iter().all(|driver| driver.slot.is_some()) {
                this.host.let_go(); // other processes may be about to start
                return Ok(this);
            }
            if !pause.is_zero() {
                this.clock().park(pause);
            }
        }
    }

    /// Lets the service start without a machine ID while its process stands by: with a lease that is sealed.
    fn stand_by(&mut self) -> Result<(), BuildError> {
        for driver in &mut self.drivers {
            if driver.slot.is_some() || driver.machine.stands_by_for().is_none() {
                continue;
            }
            let machine = *driver.plan().choice.range().start();
            let held = self.factory.make(machine, 0, 0, 0, None)?;
            held.seal("another process holds its machine ID");
            let clock = &self.factory.clock;
            let slot = MachineSlot::new(held, clock.monotonic(), self.signals.clone());
            driver.machine.plan.claim_timeout = CLAIM_TIMEOUT;
            driver.report_holder(&slot, clock);
            driver.slot = Some(Arc::new(slot));
        }
        Ok(())
    }

    /// Releases what was claimed before the start failed, as far as the store answers at once.
    fn give_up(&mut self) {
        for slot in self.slots() {
            slot.request_stop();
        }
        loop {
            for driver in &mut self.drivers {
                // An attempt is completed: its record may already belong to this process.
                if driver.slot.is_none() && !driver.machine.is_attempting() {
                    driver.machine.stop();
                }
                if let Some(slot) = &driver.slot {
                    slot.request_stop();
                }
            }
            if self.round() != Some(Duration::ZERO) {
                return;
            }
        }
    }

    /// Slots of the drivers that have claimed a machine ID.
    pub(super) fn slots(&self) -> Vec<Arc<MachineSlot>> {
        self.drivers
            .iter()
            .filter_map(|driver| driver.slot.clone())
            .collect()
    }

    pub(super) const fn signals(&self) -> &Arc<Signals> {
        &self.signals
    }

    pub(super) const fn clock(&self) -> &AnyClock {
        &self.factory.clock
    }

    pub(super) fn plan(&self) -> &Plan {
        self.drivers[0].plan()
    }

    /// True if a search is under way, and not only due.
    pub(super) fn are_searching(&self) -> bool {
        self.drivers
            .iter()
            .any(|driver| driver.machine.is_searching())
    }

    /// Does what is due, once for each driver. Returns the time until more is due, or `None` if it is over.
    pub(super) fn round(&mut self) -> Option<Duration> {
        let jitter = self.jitter();
        let (mut asks, mut idle, mut pause) = (Vec::new(), Vec::new(), None);
        for number in 0..self.drivers.len() {
            match self.due(number, jitter) {
                Due::Ask(ask) => asks.push((number, ask)),
                Due::Refused(error) => {
                    self.refused(number, error);
                    pause = Some(Duration::ZERO);
                }
                Due::Nothing(of) => {
                    idle.push(number);
                    pause = Some(pause.map_or(of, |pause: Duration| pause.min(of)));
                }
                Due::Over => self.end(number),
            }
        }
        if asks.is_empty() {
            if !self.are_searching() {
                self.host.let_go();
            }
            return pause;
        }
        for number in idle {
            // One request also serves the drivers that are due soon.
            let driver = &mut self.drivers[number];
            driver
                .machine
                .hurry(&driver.present(&self.factory.clock, jitter));
            if let Due::Ask(ask) = self.due(number, jitter) {
                asks.push((number, ask));
            }
        }
        let answers = self.ask(asks);
        self.take_in(answers, jitter);
        Some(Duration::ZERO)
    }

    #[allow(clippy::cast_possible_truncation, reason = "64 bits of it are wanted")]
    fn jitter(&self) -> u64 {
        self.clock().random() as u64
    }

    fn due(&mut self, number: usize, jitter: u64) -> Due {
        let Self {
            drivers,
            host,
            factory,
            leases,
            taken,
            ..
        } = self;
        let by_record = drivers[number].plan().goes_by_record();
        // Released at once: the claim takes the lock again, once the record is this process's own.
        let is_locked = |machine| matches!(ask_store(|| leases.lock(machine)), Ok(None));
        drivers[number].due(&factory.clock, jitter, |place, machine| {
            if *place != Some(machine) {
                if !taken.insert(machine) {
                    return Answer::Taken;
                }
                if let Some(place) = place.replace(machine) {
                    taken.remove(&place);
                }
            }
            Answer::Free(by_record || host.is_free(machine) && !is_locked(machine))
        })
    }

    fn end(&mut self, number: usize) {
        let driver = &mut self.drivers[number];
        if let Some(place) = driver.place {
            self.taken.remove(&place);
            self.host.give_up(place);
        }
        driver.end();
    }

    fn refused(&mut self, number: usize, error: BuildError) {
        let driver = &mut self.drivers[number];
        if driver.slot.is_none() {
            self.refused.get_or_insert(error);
        } else {
            driver.carry_out(Event::Refused(error), None, &self.factory.clock);
        }
    }

    fn take_in(&mut self, answers: Vec<(usize, Answer)>, jitter: u64) {
        let mut failed: Option<(StoreError, u64)> = None;
        let only_clock = answers
            .iter()
            .all(|(_, answer)| matches!(answer, Answer::Clock(_)));
        let mut events = Vec::with_capacity(answers.len());
        for (number, answer) in answers {
            if let Answer::Failed(error) = &answer {
                failed.get_or_insert_with(|| (error.clone(), 0)).1 += 1;
            }
            let driver = &mut self.drivers[number];
            let now = driver.present(&self.factory.clock, jitter);
            events.push((number, driver.machine.on_answer(answer, &now)));
        }
        // One log line for each state of the store, however often it is asked.
        let said = failed.as_ref().map(|(error, _)| error.to_string());
        if let Some((error, machines)) = failed.filter(|_| self.said.error != said) {
            let store = &self.plan().store;
            tracing::warn!(store, %error, machines, "the store does not answer; trying again");
        }
        // A store that answers with its clock may still refuse every change.
        if !only_clock {
            self.said.error = said;
        }
        // Written to disk before anything is issued.
        let acknowledged = events.iter().filter_map(|(number, event)| match event {
            Event::Claimed(Claimed { record, .. })
            | Event::Raised(record)
            | Event::Released(record) => Some((self.drivers[*number].place?, record)),
            _ => None,
        });
        self.host.remember(acknowledged);
        for (number, event) in events {
            self.carry_out(number, event);
        }
    }

    fn carry_out(&mut self, number: usize, event: Event) {
        let (now, wall) = (self.clock().monotonic(), self.clock().wall());
        let claimed = match &event {
            Event::Claimed(Claimed {
                machine,
                record,
                next,
                ..
            }) => {
                let ends_at = self.drivers[number].machine.ends_at();
                match self
                    .factory
                    .make(*machine, record.epoch, *next, record.bound, ends_at)
                {
                    Ok(held) => Some(held),
                    Err(error) => return self.refused(number, error.into()),
                }
            }
            _ => None,
        };
        self.announce(number);
        let driver = &mut self.drivers[number];
        match (event, claimed) {
            (Event::Refused(error), _) => self.refused(number, error),
            (Event::Claimed(_), Some(held)) if driver.slot.is_none() => {
                // A service that waits for its store at start must still react to a stop later.
                driver.machine.plan.claim_timeout = CLAIM_TIMEOUT;
                let text = format!("claimed; this is claim {}", held.epoch);
                self.signals
                    .journal
                    .note(wall, EventKind::Claimed, held.machine, text);
                let slot = MachineSlot::new(held, now, self.signals.clone());
                slot.state.lock().doubt.clone_from(&driver.machine.doubt);
                driver.slot = Some(Arc::new(slot));
            }
            (event, claimed) => {
                let gives_up = matches!(event, Event::WentBack(_) | Event::Fenced(_));
                driver.carry_out(event, claimed, &self.factory.clock);
                if let Some(slot) = driver.slot.as_ref().filter(|_| gives_up) {
                    let held = slot.leases.current();
                    self.host.sealed(held.machine, held.seal("")); // already sealed: returns the position
                }
            }
        }
    }

    /// Publishes a doubt, or its end, in the slot's state; and once in the log and the journal.
    fn announce(&mut self, number: usize) {
        let Driver { machine, slot, .. } = &self.drivers[number];
        let doubt = &machine.doubt;
        if let Some(slot) = slot {
            slot.state.lock().doubt.clone_from(doubt);
        }
        // Some slots may not have checked yet.
        let holding = || {
            self.drivers
                .iter()
                .filter(|driver| driver.machine.is_holding())
        };
        let undecided = doubt.is_none() && holding().any(|driver| driver.machine.doubt.is_some());
        if self.said.doubt == *doubt || undecided || !machine.is_holding() {
            return;
        }
        self.said.doubt.clone_from(doubt);
        let (store, namespace) = (&machine.plan.store, &machine.plan.namespace);
        match doubt {
            Some(Doubt { since, why, .. }) => tracing::warn!(
                store, namespace, %since, why,
                "the store may forget what it acknowledged: claims keep a distance from that"
            ),
            None => tracing::info!(store, namespace, "the store is trusted again"),
        }
        let text = match doubt {
            Some(Doubt { why, .. }) => format!("the store may forget what it acknowledged: {why}"),
            None => "the store is trusted again".to_owned(),
        };
        let machine = self.drivers[number].place.unwrap_or_default();
        self.signals
            .journal
            .note(self.clock().wall(), EventKind::Doubt, machine, text);
    }
}
