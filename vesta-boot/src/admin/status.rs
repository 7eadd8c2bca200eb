//! `GET /status`: the program and its machine IDs as JSON, in the order in which a person wants to
//! read it.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use vesta_service::{LocalIdService, MachineStatus, Status};

use super::segments;
use super::state::AdminState;

/// The lease of a service or of one machine ID.
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
    pub(super) sealed: Option<String>,
}

/// The statuses of a service and of a machine ID have fields of the same names.
macro_rules! from_status {
    ($($status:ty),*) => {$(
        impl From<&$status> for LeaseStatus {
            fn from(status: &$status) -> Self {
                Self {
                    epoch: status.epoch,
                    window_left_ms: window_left(status.window_left),
                    lead_ms: millis(status.lead),
                    clock_suspect: status.clock_suspect,
                    renewals_ok: status.renewals_ok,
                    renewals_failed: status.renewals_failed,
                    last_renewal_age_ms: millis(status.last_renewal_age),
                    fenced: status.fenced_total,
                    rehomed: status.rehomed_total,
                    sealed: status.sealed.clone(),
                }
            }
        }
    )*};
}

from_status!(Status, MachineStatus);

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

fn service_status(service: &LocalIdService, state: &AdminState) -> Value {
    let status = service.status();
    let meta = service.meta();
    let count = u64::try_from(status.machines.len()).unwrap_or(1);
    let machines = service.machines().into_iter().map(|machine| {
        let own = json!({
            "machine": machine.machine,
            "ready": machine.ready,
            "notReadyBecause": machine.not_ready_because,
        });
        joined(own, json!(LeaseStatus::from(&machine)))
    });
    json!({
        "machine": {
            "id": status.machine,
            "ids": status.machines,
            "source": status.machine_source,
        },
        "namespace": status.namespace,
        "layout": {
            "name": meta.name(),
            "bits": meta.to_string(),
            "idsPerSecond": meta.capacity_per_second().saturating_mul(count),
            "ends": status.layout_ends.to_string(),
            "leftDays": status.layout_left.as_secs() / 86_400,
        },
        "populator": status.populator.name(),
        "lease": joined(
            json!(LeaseStatus::from(&status)),
            json!({ "positionsLost": status.positions_lost_total }),
        ),
        "machines": machines.collect::<Vec<_>>(),
        "pool": state.pool(),
        "segments": state.segments().map(|segments| segments::summary(segments)),
    })
}

/// An object with the fields of both.
fn joined(mut one: Value, mut other: Value) -> Value {
    if let (Some(one), Some(other)) = (one.as_object_mut(), other.as_object_mut()) {
        one.append(other);
    }
    one
}

/// `None` without a lease.
pub(super) fn window_left(left: Duration) -> Option<u64> {
    (left != Duration::MAX).then(|| millis(left))
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
