//! Status of the program and its machine IDs: one JSON value behind `/status` and `/metrics`, in the
//! order in which a person wants to read it.

use std::time::Duration;

use serde_json::{Value, json};
use vesta_service::LocalIdService;

use super::segments;
use super::state::AdminState;
use crate::ticks::millis;

/// `GET /status`, in the order in which a person wants to read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProgramStatus {
    pub(super) program: &'static str,
    pub(super) version: &'static str,
    pub(super) ready: bool,
    pub(super) not_ready_because: Option<String>,
    /// Absent before there is a machine ID.
    #[serde(flatten)]
    pub(super) service: Option<ServiceStatus>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServiceStatus {
    pub(super) machine: MachineIds,
    pub(super) namespace: String,
    pub(super) layout: LayoutStatus,
    populator: String,
    /// All machine IDs together.
    pub(super) lease: LeaseStatus,
    pub(super) machines: Vec<MachineStatus>,
    /// `null` without a pool, and while its store does not answer.
    pub(super) pool: Option<Usage>,
    /// `null` if segment mode is off; `/segments` has more.
    segments: Option<Summary>,
}

#[derive(Debug, Serialize)]
pub(super) struct MachineIds {
    /// The first of `ids`.
    pub(super) id: u64,
    pub(super) ids: Vec<u64>,
    pub(super) source: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LayoutStatus {
    name: String,
    bits: String,
    /// Of all machine IDs together.
    ids_per_second: u64,
    pub(super) ends: String,
    left_days: u64,
    #[serde(skip)]
    pub(super) left_ms: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeaseStatus {
    pub(super) epoch: u64,
    /// `null` without a lease: there is no bound to reach.
    pub(super) window_left_ms: Option<u64>,
    pub(super) lead_ms: u64,
    pub(super) clock_suspect: bool,
    pub(super) renewals_ok: u64,
    pub(super) renewals_failed: u64,
    pub(super) last_renewal_age_ms: u64,
    pub(super) fenced: u64,
    pub(super) rehomed: u64,
    /// Known for all machine IDs together only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) positions_lost: Option<u64>,
    pub(super) sealed: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MachineStatus {
    pub(super) machine: u64,
    pub(super) ready: bool,
    not_ready_because: Option<String>,
    #[serde(flatten)]
    pub(super) lease: LeaseStatus,
}

/// The lease of one machine ID, or of all together.
fn lease(of: vesta_service::MachineStatus, positions_lost: Option<u64>) -> LeaseStatus {
    LeaseStatus {
        epoch: of.epoch,
        window_left_ms: (of.window_left != Duration::MAX).then(|| millis(of.window_left)),
        lead_ms: millis(of.lead),
        clock_suspect: of.clock_suspect,
        renewals_ok: of.renewals_ok,
        renewals_failed: of.renewals_failed,
        last_renewal_age_ms: millis(of.last_renewal_age),
        fenced: of.fenced_total,
        rehomed: of.rehomed_total,
        positions_lost,
        sealed: of.sealed,
    }
}

pub(super) fn status(state: &AdminState) -> Value {
    let not_ready_because = state.not_ready_because();
    let program = json!({
        "program": state.role.name(),
        "version": env!("CARGO_PKG_VERSION"),
        "ready": not_ready_because.is_none(),
        "notReadyBecause": not_ready_because,
    });
    match state.service() {
        Some(service) => joined(program, service_status(service, state)),
        None => program,
    }
}

impl ServiceStatus {
    fn of(service: &LocalIdService, program: &Program) -> Self {
        let status = service.status();
        let meta = service.meta();
        let count = u64::try_from(status.machines.len()).unwrap_or(1);
        let machines = service.machines().into_iter().map(|machine| MachineStatus {
            machine: machine.machine,
            ready: machine.ready,
            not_ready_because: machine.not_ready_because.clone(),
            lease: lease(machine, None),
        });
        Self {
            machine: MachineIds {
                id: status.machine,
                ids: status.machines,
                source: status.machine_source,
            },
            lease: lease(status.all, Some(status.positions_lost_total)),
            namespace: status.namespace,
            layout: LayoutStatus {
                name: meta.name().to_owned(),
                bits: meta.to_string(),
                ids_per_second: meta.capacity_per_second().saturating_mul(count),
                ends: status.layout_ends.to_string(),
                left_days: status.layout_left.as_secs() / 86_400,
                left_ms: millis(status.layout_left),
            },
            populator: status.populator.name().into(),
            machines: machines.collect(),
            pool: program.pool().and_then(|pool| pool.usage()),
            segments: program.segments().map(|segments| SegmentsStatus::of(segments).summary()),
        }
    }
}

/// An object with the fields of both.
fn joined(mut one: Value, mut other: Value) -> Value {
    if let (Some(one), Some(other)) = (one.as_object_mut(), other.as_object_mut()) {
        one.append(other);
    }
    one
}

/// `None` without a lease: there is no bound to reach.
pub(super) fn window_left(left: Duration) -> Option<u64> {
    (left != Duration::MAX).then(|| millis(left))
}
