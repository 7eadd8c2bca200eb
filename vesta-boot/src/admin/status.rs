//! Status of the program and its machine IDs, behind `/status`.

use tokio::time::Instant;
use vesta_service::LocalIdService;

use super::state::AdminState;
use super::{segments, serials};
use crate::answers::{Lease, LeaseOfAll, MachineNow, ServiceNow, Status};
use crate::ticks::millis;

/// Maximum machine IDs listed one by one.
const MOST_MACHINES: usize = 100;

pub(super) fn status(state: &AdminState) -> Status {
    let not_ready_because = state.not_ready_because();
    Status {
        program: state.program,
        version: env!("CARGO_PKG_VERSION"),
        started: state.began.to_string(),
        ready: not_ready_because.is_none(),
        not_ready_because,
        service: state.service().map(|service| service_now(service, state)),
        rates: state.rates.lock().recent(Instant::now()),
    }
}

fn service_now(service: &LocalIdService, state: &AdminState) -> ServiceNow {
    let status = service.status();
    let (all, layout) = (service.machines(), service.meta());
    let held = status.machines.len();
    ServiceNow {
        machine: status.machine,
        machines_held: held,
        machines_ready: all.iter().filter(|machine| machine.ready).count(),
        machine_source: status.machine_source,
        namespace: status.namespace,
        layout: layout.name(),
        bits: layout.into(),
        total_bits: layout.total_bits(),
        capacity_per_second: layout.capacity_per_second().saturating_mul(held as u64),
        ends: status.layout_ends.to_string(),
        layout_left_ms: millis(status.layout_left),
        populator: status.populator.name(),
        lease: LeaseOfAll {
            lease: Lease::from(&status.all),
            positions_lost: status.positions_lost_total,
        },
        machines: all
            .iter()
            .take(MOST_MACHINES)
            .map(MachineNow::from)
            .collect(),
        pool: state.pool(),
        segments: state.segments().map(|it| segments::whole(it)),
        serials: state.serials().map(|it| serials::whole(it)),
    }
}
