//! The state of the service as JSON.

use std::time::Duration;

use serde::Serialize;
use vesta_service::{LocalIdService, MachineStatus};

use super::View;
use super::segments::Summary;
use crate::Role;
use crate::pool::Fill;

/// `GET /status`, in the order in which a person wants to read it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct State<'a> {
    program: &'a str,
    version: &'a str,
    ready: bool,
    not_ready_because: Option<String>,
    /// Nothing of it before there is a machine ID.
    #[serde(flatten)]
    service: Option<ServiceState<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceState<'a> {
    machine: MachineIds,
    namespace: String,
    layout: LayoutState<'a>,
    populator: String,
    lease: LeaseState,
    machines: Vec<MachineState>,
    /// `null` without a pool, and while it does not answer.
    pool: Option<Fill>,
    /// `null` if segment mode is off; `/segments` has more.
    segments: Option<Summary>,
}

#[derive(Serialize)]
struct MachineIds {
    /// The first of `ids`.
    id: u64,
    ids: Vec<u64>,
    source: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LayoutState<'a> {
    name: &'a str,
    bits: String,
    /// Of all machine IDs together.
    ids_per_second: u64,
    ends: String,
    left_days: u64,
}

/// All lines together.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LeaseState {
    epoch: u64,
    /// `null` without a lease: there is no bound to reach.
    window_left_ms: Option<u64>,
    lead_ms: u64,
    clock_suspect: bool,
    renewals_ok: u64,
    renewals_failed: u64,
    last_renewal_age_ms: u64,
    fenced: u64,
    rehomed: u64,
    positions_lost: u64,
    sealed: Option<String>,
}

/// One machine ID.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MachineState {
    machine: u64,
    epoch: u64,
    ready: bool,
    not_ready_because: Option<String>,
    window_left_ms: Option<u64>,
    lead_ms: u64,
    clock_suspect: bool,
    renewals_ok: u64,
    renewals_failed: u64,
    last_renewal_age_ms: u64,
    fenced: u64,
    rehomed: u64,
    sealed: Option<String>,
}

pub(super) fn json(role: Role, view: &View) -> String {
    let reason = view.not_ready_because();
    let state = State {
        program: role.name(),
        version: env!("CARGO_PKG_VERSION"),
        ready: reason.is_none(),
        not_ready_because: reason,
        service: view.service().map(|service| service_state(service, view)),
    };
    let text = serde_json::to_string_pretty(&state).expect("plain fields are JSON");
    text + "\n"
}

fn service_state<'a>(service: &'a LocalIdService, view: &View) -> ServiceState<'a> {
    let status = service.status();
    let meta = service.meta();
    let count = u64::try_from(status.machines.len()).unwrap_or(1);
    ServiceState {
        machine: MachineIds {
            id: status.machine,
            ids: status.machines,
            source: status.machine_source,
        },
        namespace: status.namespace,
        layout: LayoutState {
            name: meta.name(),
            bits: meta.to_string(),
            ids_per_second: meta.capacity_per_second().saturating_mul(count),
            ends: status.layout_ends.to_string(),
            left_days: status.layout_left.as_secs() / 86_400,
        },
        populator: status.populator.to_string(),
        lease: LeaseState {
            epoch: status.epoch,
            window_left_ms: window(status.window_left),
            lead_ms: millis(status.lead),
            clock_suspect: status.clock_suspect,
            renewals_ok: status.renewals_ok,
            renewals_failed: status.renewals_failed,
            last_renewal_age_ms: millis(status.last_renewal_age),
            fenced: status.fenced_total,
            rehomed: status.rehomed_total,
            positions_lost: status.positions_lost_total,
            sealed: status.sealed,
        },
        machines: service.machines().into_iter().map(machine_state).collect(),
        pool: view.pool().and_then(|pool| pool.fill()),
        segments: view.segments().map(Summary::of),
    }
}

fn machine_state(line: MachineStatus) -> MachineState {
    MachineState {
        machine: line.machine,
        epoch: line.epoch,
        ready: line.ready,
        not_ready_because: line.not_ready_because,
        window_left_ms: window(line.window_left),
        lead_ms: millis(line.lead),
        clock_suspect: line.clock_suspect,
        renewals_ok: line.renewals_ok,
        renewals_failed: line.renewals_failed,
        last_renewal_age_ms: millis(line.last_renewal_age),
        fenced: line.fenced_total,
        rehomed: line.rehomed_total,
        sealed: line.sealed,
    }
}

fn window(left: Duration) -> Option<u64> {
    (left != Duration::MAX).then(|| millis(left))
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
