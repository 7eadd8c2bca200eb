//! Service status, for health checks, metrics and people.

use std::sync::atomic::Ordering;
use std::time::Duration;

use vesta_intf::UnixMillis;

use crate::LocalIdService;
use crate::builder::Builder;
use crate::clock::{Clock as _, MAX_LEAD, Reading};
use crate::lease::MachineSlot;
use crate::populator::PopulatorKind;
use crate::service::millis;

/// Status of a service. Where it holds several machine IDs, this is the sum of its
/// [machine IDs](MachineStatus): ready while one of them is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Status {
    /// The machine ID now held, or the first of them.
    pub machine: u64,
    /// All machine IDs now held.
    pub machines: Vec<u64>,
    /// Their source.
    pub machine_source: String,
    /// The epoch of the claim of the first; 0 without a lease.
    pub epoch: u64,
    /// The namespace.
    pub namespace: String,
    /// The populator.
    pub populator: PopulatorKind,
    /// Set if IDs can be expected for the next seconds.
    pub ready: bool,
    /// Why not.
    pub not_ready_because: Option<String>,
    /// Time for which IDs can be made without the store; `Duration::MAX` without a lease.
    pub window_left: Duration,
    /// Lead of issued time over the wall clock, at least.
    pub lead: Duration,
    /// Set if the wall clock jumped so far ahead that it is not followed.
    pub clock_suspect: bool,
    /// The moment from which on the layout has no more IDs.
    pub layout_ends: UnixMillis,
    /// Time until then.
    pub layout_left: Duration,
    /// Renewals of the bound that were acknowledged.
    pub renewals_ok: u64,
    /// Renewals that were not answered.
    pub renewals_failed: u64,
    /// Time since a bound was last renewed or claimed.
    pub last_renewal_age: Duration,
    /// Takeovers of a machine ID by another process.
    pub fenced_total: u64,
    /// Machine IDs claimed anew while running.
    pub rehomed_total: u64,
    /// Positions that were taken for batches which then failed. They are never issued.
    pub positions_lost_total: u64,
    /// Why no more IDs will ever be made, if that is so. Only a restart helps.
    pub sealed: Option<String>,
}

/// Status of one machine ID of a service.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MachineStatus {
    /// The machine ID now held.
    pub machine: u64,
    /// The epoch of its claim; 0 without a lease.
    pub epoch: u64,
    /// Set if it can be expected to make IDs for the next seconds.
    pub ready: bool,
    /// Why not.
    pub not_ready_because: Option<String>,
    /// Time for which it makes IDs without the store; `Duration::MAX` without a lease.
    pub window_left: Duration,
    /// Lead of issued time over the wall clock.
    pub lead: Duration,
    /// Set if the wall clock jumped so far ahead that it is not followed.
    pub clock_suspect: bool,
    /// Renewals of the bound that were acknowledged.
    pub renewals_ok: u64,
    /// Renewals that were not answered.
    pub renewals_failed: u64,
    /// Time since the bound was last renewed or claimed.
    pub last_renewal_age: Duration,
    /// Takeovers of the machine ID by another process.
    pub fenced_total: u64,
    /// Machine IDs claimed anew while running.
    pub rehomed_total: u64,
    /// Why no more IDs will ever be made with it, if that is so.
    pub sealed: Option<String>,
}

/// A slot is no longer ready with less than this left in its window, or a fifth of the window.
const NOT_READY_BELOW: Duration = Duration::from_secs(5);

impl LocalIdService {
    fn machine_status(&self, slot: &MachineSlot) -> MachineStatus {
        let Self { settings: Builder { layout: meta, clock, .. }, rules, .. } = self;
        let lease = slot.current();
        let ended = lease.sealed_reason().map(str::to_owned);
        let sealed = ended.clone().filter(|_| !slot.will_follow());
        let window_left = match self.window {
            Some(_) => lease.ticks().distance(rules.tick(lease.limit())),
            None => Duration::MAX,
        };
        let Reading { lead, suspect, .. } = lease.ticks().read();
        let low = self.window.map_or(Duration::ZERO, |w| (w / 5).min(NOT_READY_BELOW));
        let not_ready_because = if let Some(reason) = &sealed {
            Some(format!("the generator has stopped: {reason}"))
        } else if let Some(reason) = &ended {
            let failure = slot.last_failure().map_or(String::new(), |f| format!("; {f}"));
            Some(format!("another machine ID is being claimed: {reason}{failure}"))
        } else if lead > MAX_LEAD {
            Some(format!("the clock stands {} s behind IDs already issued", lead.as_secs()))
        } else if window_left < low {
            let left = millis(window_left);
            Some(format!("the store has not confirmed a window; {left} ms are left"))
        } else if clock.wall() >= meta.end() {
            Some("the layout's time field has run out".into())
        } else {
            None
        };
        let counters = &slot.counters;
        let renewed_at = counters.renewed_at.load(Ordering::Relaxed);
        let age = millis(clock.monotonic()).saturating_sub(renewed_at);
        MachineStatus {
            machine: lease.machine(),
            epoch: lease.epoch(),
            ready: not_ready_because.is_none(),
            not_ready_because,
            window_left,
            lead,
            clock_suspect: suspect,
            renewals_ok: counters.renewals_ok.load(Ordering::Relaxed),
            renewals_failed: counters.renewals_failed.load(Ordering::Relaxed),
            last_renewal_age: Duration::from_millis(age),
            fenced_total: counters.fenced.load(Ordering::Relaxed),
            rehomed_total: counters.rehomed.load(Ordering::Relaxed),
            sealed,
        }
    }

    /// Status of each of its machine IDs.
    pub fn machines(&self) -> Vec<MachineStatus> {
        self.slots.iter().map(|member| self.machine_status(&member.slot)).collect()
    }

    /// Status of the service.
    pub fn status(&self) -> Status {
        let slots = self.machines();
        let first = &slots[0]; // there is at least one
        let ready = slots.iter().any(|slot| slot.ready);
        let sum = |count: fn(&MachineStatus) -> u64| slots.iter().map(count).sum();
        let wall = self.settings.clock.wall();
        Status {
            machine: first.machine,
            machines: slots.iter().map(|slot| slot.machine).collect(),
            machine_source: self.machine_source.clone(),
            epoch: first.epoch,
            namespace: self.settings.namespace.clone(),
            populator: self.settings.populator,
            ready,
            not_ready_because: first.not_ready_because.clone().filter(|_| !ready),
            window_left: slots.iter().map(|slot| slot.window_left).max().unwrap_or_default(),
            lead: slots.iter().map(|slot| slot.lead).min().unwrap_or_default(),
            clock_suspect: slots.iter().any(|slot| slot.clock_suspect),
            layout_ends: self.settings.layout.end(),
            layout_left: Duration::from_millis(self.settings.layout.end().since(wall).unwrap_or(0)),
            renewals_ok: sum(|slot| slot.renewals_ok),
            renewals_failed: sum(|slot| slot.renewals_failed),
            last_renewal_age: slots
                .iter()
                .map(|slot| slot.last_renewal_age)
                .min()
                .unwrap_or_default(),
            fenced_total: sum(|slot| slot.fenced_total),
            rehomed_total: sum(|slot| slot.rehomed_total),
            positions_lost_total: self.positions_lost.load(Ordering::Relaxed),
            sealed: first.sealed.clone().filter(|_| slots.iter().all(|slot| slot.sealed.is_some())),
        }
    }
}
