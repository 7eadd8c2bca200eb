//! Status of the program and its machine IDs: one JSON value behind `/status`, in the order useful
//! to a human reader.

use std::time::Duration;

use serde_json::{Value, json};
use vesta_intf::IdMeta;
use vesta_service::LocalIdService;
use vesta_service::options::MachineStatus;

use super::state::AdminState;
use super::tags::joined;
use super::{segments, serials};
use crate::ticks::millis;

/// Lease of one machine ID, or of all together.
fn lease(status: &MachineStatus) -> Value {
    json!({
        "claim": status.epoch,
        "windowLeftMs": window_left(status.window_left),
        "leadMs": millis(status.lead),
        "clockSuspect": status.clock_suspect,
        "renewals": { "ok": status.renewals_ok, "failed": status.renewals_failed },
        "lastRenewalAgeMs": millis(status.last_renewal_age),
        "fenced": status.fenced_total,
        "storeWentBack": status.went_back_total,
        "rehomed": status.rehomed_total,
        "doubt": status.doubt.as_ref().map(|doubt| json!({
            "since": doubt.since.to_string(),
            "reason": doubt.why,
        })),
        "sealed": status.sealed,
        "standingByFor": status.holder,
    })
}

pub(super) fn status(state: &AdminState) -> Value {
    let not_ready_because = state.not_ready_because();
    let program = json!({
        "program": state.program,
        "version": env!("CARGO_PKG_VERSION"),
        "started": state.began.to_string(),
        "ready": not_ready_because.is_none(),
        "notReadyBecause": not_ready_because,
    });
    match state.service() {
        Some(service) => joined(program, service_status(service, state)),
        None => program,
    }
}

/// Maximum machine IDs listed one by one.
const MOST_MACHINES: usize = 100;

fn service_status(service: &LocalIdService, state: &AdminState) -> Value {
    let status = service.status();
    let meta = service.meta();
    let count = u64::try_from(status.machines.len()).unwrap_or(1);
    let all = service.machines();
    let ready = all.iter().filter(|machine| machine.ready).count();
    let machines = all.into_iter().take(MOST_MACHINES).map(|machine| {
        let own = json!({
            "machine": machine.machine,
            "ready": machine.ready,
            "notReadyBecause": machine.not_ready_because,
        });
        joined(own, lease(&machine))
    });
    json!({
        "machine": {
            "id": status.machine,
            "ids": status.machines,
            "held": count,
            "ready": ready,
            "source": status.machine_source,
        },
        "namespace": status.namespace,
        "layout": {
            "name": meta.name(),
            "bits": bits(meta),
            "totalBits": meta.total_bits(),
            "capacityPerSecond": meta.capacity_per_second().saturating_mul(count),
            "ends": status.layout_ends.to_string(),
            "leftDays": status.layout_left.as_secs() / 86_400,
            "leftMs": millis(status.layout_left),
        },
        "populator": status.populator.name(),
        "lease": joined(
            lease(&status.all),
            json!({ "positionsLost": status.positions_lost_total }),
        ),
        "machines": machines.collect::<Vec<_>>(),
        "pool": state.pool(),
        "segments": state.segments().map(|segments| segments::whole(segments).summary()),
        "serials": state.serials().map(|serials| serials::whole(serials).summary()),
    })
}

/// Widths of the fields by name.
fn bits(meta: &IdMeta) -> Value {
    let fields = meta.fields().into_iter();
    fields
        .map(|field| (field.name().to_owned(), meta.bits(field).into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Milliseconds left in the window; `None` without a lease, which has no bound.
pub(super) fn window_left(left: Duration) -> Option<u64> {
    (left != Duration::MAX).then(|| millis(left))
}
