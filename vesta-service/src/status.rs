//! Service status, for health checks, metrics and people.

use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vesta_intf::UnixMillis;

use crate::LocalIdService;
use crate::builder::Builder;
use crate::clock::{MAX_LEAD, Reading};
use crate::lease::{Doubt, Event, MachineSlot};
use crate::number::millis;
use crate::populator::PopulatorKind;

/// Status of a service. Dereferences to [`all`](Self::all).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Status {
    /// All machine IDs together: ready while one of them is. Machine ID and epoch are those of the first one.
    pub all: MachineStatus,
    /// All current machine IDs.
    pub machines: Vec<u64>,
    /// Source of the machine IDs.
    pub machine_source: String,
    /// The namespace.
    pub namespace: String,
    /// The populator.
    pub populator: PopulatorKind,
    /// The moment from which the layout has no more IDs.
    pub layout_ends: UnixMillis,
    /// Time until then.
    pub layout_left: Duration,
    /// Positions that were taken by calls that then failed or were dropped. They are never issued.
    pub positions_lost_total: u64,
}

impl Deref for Status {
    type Target = MachineStatus;

    fn deref(&self) -> &MachineStatus {
        &self.all
    }
}

/// Status of one machine ID of a service.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MachineStatus {
    /// The current machine ID.
    pub machine: u64,
    /// The epoch of its claim; 0 without a lease.
    pub epoch: u64,
    /// Set if it can be expected to issue IDs for the next seconds.
    pub ready: bool,
    /// The reason if it is not ready.
    pub not_ready_because: Option<String>,
    /// Time for which it can issue IDs without the store; `Duration::MAX` without a lease.
    pub window_left: Duration,
    /// Lead of issued time over the wall clock.
    pub lead: Duration,
    /// Set if the wall clock jumped so far ahead that it is ignored.
    pub clock_suspect: bool,
    /// Renewals of the bound that were acknowledged.
    pub renewals_ok: u64,
    /// Renewals that were not answered.
    pub renewals_failed: u64,
    /// Time since the bound was last renewed or claimed.
    pub last_renewal_age: Duration,
    /// Takeovers of the machine ID by another process.
    pub fenced_total: u64,
    /// Number of times that the store showed an earlier state than it had acknowledged.
    pub went_back_total: u64,
    /// Number of machine IDs claimed at runtime as replacements.
    pub rehomed_total: u64,
    /// The reason why the store may forget acknowledged writes, as recorded in the store.
    pub doubt: Option<Doubt>,
    /// Set if a restart helps: it will never issue IDs again, or it claims no machine ID until its clock,
    /// which jumped ahead, is believed.
    pub restart_helps: bool,
    /// The reason why it will never issue IDs again, if that is so.
    pub sealed: Option<String>,
    /// The process that holds the machine ID, for people, while this one stands by.
    pub holder: Option<String>,
}

/// A slot is not ready with less than this left in its window, or less than a fifth of the window.
const NOT_READY_BELOW: Duration = Duration::from_secs(5);

impl LocalIdService {
    fn machine_status(&self, slot: &MachineSlot) -> MachineStatus {
        let Self {
            settings:
                Builder {
                    layout: meta,
                    clock,
                    ..
                },
            rules,
            ..
        } = self;
        let lease = slot.leases.current();
        let ended = lease.sealed_reason().map(str::to_owned);
        let sealed = ended.clone().filter(|_| !slot.will_follow());
        let state = slot.state.lock();
        let window_left = match self.window {
            Some(_) => lease
                .ticks
                .distance(rules.tick(lease.bound()))
                .min(lease.left()),
            None => Duration::MAX,
        };
        let Reading { lead, suspect, .. } = lease.ticks.read();
        let window = self.window.unwrap_or_default();
        let shorter = state
            .doubt
            .as_ref()
            .map_or(window, |_| window.min(self.settings.doubtful_window));
        let low = (shorter / 5).min(NOT_READY_BELOW);
        let failure = state
            .failure
            .as_ref()
            .map_or(String::new(), |failure| format!("; {failure}"));
        let not_ready_because = if let Some(reason) = &sealed {
            Some(format!("the generator has stopped: {reason}"))
        } else if let Some(holder) = &state.holder {
            Some(format!(
                "standing by: {holder} holds machine ID {}, and this server takes it over when that one stops{failure}",
                lease.machine
            ))
        } else if let Some(reason) = &ended {
            Some(format!(
                "another machine ID is being claimed: {reason}{failure}"
            ))
        } else if lead > MAX_LEAD {
            Some(format!(
                "the clock is {} s behind IDs already issued",
                lead.as_secs()
            ))
        } else if window_left < low {
            let left = millis(window_left);
            Some(format!(
                "the store has not confirmed a window; {left} ms are left{failure}"
            ))
        } else if clock.wall() >= meta.end() {
            Some("the layout's time field has run out".into())
        } else {
            None
        };
        MachineStatus {
            machine: lease.machine,
            epoch: lease.epoch,
            ready: not_ready_because.is_none(),
            not_ready_because,
            window_left,
            lead,
            clock_suspect: suspect,
            renewals_ok: state.renewals_ok,
            renewals_failed: state.renewals_failed,
            last_renewal_age: clock.monotonic().saturating_sub(state.renewed_at),
            fenced_total: state.fenced,
            went_back_total: state.went_back,
            rehomed_total: state.rehomed,
            doubt: state.doubt.clone(),
            restart_helps: sealed.is_some() || suspect && ended.is_some(),
            sealed,
            holder: state.holder.clone(),
        }
    }

    /// Status of each of its machine IDs.
    pub fn machines(&self) -> Vec<MachineStatus> {
        self.slots
            .iter()
            .map(|slot| self.machine_status(slot))
            .collect()
    }

    /// Events of its machine IDs after the event with this number (0 for all), as far as they are
    /// kept: the last 200 events.
    pub fn events(&self, since: u64) -> Vec<Event> {
        self.slots.first().keeper.journal.since(since)
    }

    /// Status of the service.
    pub fn status(&self) -> Status {
        let machines = self.machines();
        let lost = self.slots.iter().map(|slot| slot.leases.lost());
        let layout_ends = self.settings.layout.end();
        let left = layout_ends.since(self.settings.clock.wall()).unwrap_or(0);
        Status {
            machines: machines.iter().map(|status| status.machine).collect(),
            all: machines
                .into_iter()
                .reduce(MachineStatus::and)
                .expect("there is at least one"),
            machine_source: self.machine_source.clone(),
            namespace: self.settings.namespace.clone(),
            populator: self.settings.populator,
            layout_ends,
            layout_left: Duration::from_millis(left),
            positions_lost_total: self.positions_lost.load(Ordering::Relaxed) + lost.sum::<u64>(),
        }
    }
}

impl MachineStatus {
    /// Merges two statuses; the first one provides machine ID and epoch.
    fn and(self, other: Self) -> Self {
        let ready = self.ready || other.ready;
        Self {
            ready,
            not_ready_because: self.not_ready_because.filter(|_| !ready),
            window_left: self.window_left.max(other.window_left),
            lead: self.lead.min(other.lead),
            clock_suspect: self.clock_suspect || other.clock_suspect,
            renewals_ok: self.renewals_ok + other.renewals_ok,
            renewals_failed: self.renewals_failed + other.renewals_failed,
            last_renewal_age: self.last_renewal_age.min(other.last_renewal_age),
            fenced_total: self.fenced_total + other.fenced_total,
            went_back_total: self.went_back_total + other.went_back_total,
            rehomed_total: self.rehomed_total + other.rehomed_total,
            doubt: self.doubt.or(other.doubt),
            restart_helps: self.restart_helps && other.restart_helps,
            sealed: self.sealed.filter(|_| other.sealed.is_some()),
            holder: self.holder.filter(|_| other.holder.is_some()),
            ..self
        }
    }
}
