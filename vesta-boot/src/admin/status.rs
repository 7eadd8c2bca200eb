//! The state of the service, as JSON and as metrics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use vesta_service::LocalIdService;

use crate::metrics::counter;
use crate::{Role, not_ready_because};

/// `GET /status`, in the order in which a person wants to read it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct State<'a> {
    program: &'a str,
    version: &'a str,
    ready: bool,
    not_ready_because: Option<String>,
    machine: MachineState,
    namespace: String,
    layout: LayoutState<'a>,
    populator: String,
    lease: LeaseState,
}

#[derive(Serialize)]
struct MachineState {
    id: u64,
    source: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LayoutState<'a> {
    name: &'a str,
    bits: String,
    ids_per_second: u64,
    ends: String,
    left_days: u64,
}

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
    sealed: Option<String>,
}

pub(super) fn json(role: Role, service: &LocalIdService, reason: Option<String>) -> String {
    let status = service.status();
    let meta = service.meta();
    let state = State {
        program: role.name(),
        version: env!("CARGO_PKG_VERSION"),
        ready: reason.is_none(),
        not_ready_because: reason,
        machine: MachineState { id: status.machine, source: status.machine_source },
        namespace: status.namespace,
        layout: LayoutState {
            name: meta.name(),
            bits: meta.to_string(),
            ids_per_second: meta.capacity_per_second(),
            ends: status.layout_ends.to_string(),
            left_days: status.layout_left.as_secs() / 86_400,
        },
        populator: status.populator.to_string(),
        lease: LeaseState {
            epoch: status.epoch,
            window_left_ms: (status.window_left != Duration::MAX)
                .then(|| millis(status.window_left)),
            lead_ms: millis(status.lead),
            clock_suspect: status.clock_suspect,
            renewals_ok: status.renewals_ok,
            renewals_failed: status.renewals_failed,
            last_renewal_age_ms: millis(status.last_renewal_age),
            fenced: status.fenced_total,
            sealed: status.sealed,
        },
    };
    let text = serde_json::to_string_pretty(&state).expect("plain fields are JSON");
    text + "\n"
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Reads the service's status at a scrape.
#[derive(Debug)]
pub(super) struct Gauges {
    pub(super) service: Arc<LocalIdService>,
    pub(super) shutdown: CancellationToken,
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = self.service.status();
        let ready = not_ready_because(&self.service, &self.shutdown).is_none();
        let seconds = [
            ("window_left", "Time until the durable bound is reached", status.window_left),
            ("lead", "How far issued time runs ahead of the wall clock", status.lead),
            (
                "last_renewal_age",
                "Time since the last acknowledged renewal",
                status.last_renewal_age,
            ),
            ("layout_left", "Time until the layout has no more IDs", status.layout_left),
        ];
        for (name, help, value) in seconds {
            // Without a lease there is no bound and no time until it.
            if value == Duration::MAX {
                continue;
            }
            let unit = Some(&Unit::Seconds);
            let metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            ConstGauge::new(value.as_secs_f64()).encode(metric)?;
        }
        let numbers = [
            ("ready", "1 if calls for IDs are expected to succeed", u64::from(ready)),
            ("machine_id", "The machine ID now held", status.machine),
            ("lease_epoch", "The epoch of the lease now held", status.epoch),
            (
                "clock_suspect",
                "1 if the wall clock is not believed",
                u64::from(status.clock_suspect),
            ),
        ];
        for (name, help, value) in numbers {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(metric)?;
        }

        counter(&mut encoder, "fenced", "Leases lost to another owner", status.fenced_total)?;
        let help = "Renewals of the lease by outcome";
        let mut family = encoder.encode_descriptor("renewals", help, None, MetricType::Counter)?;
        for (outcome, count) in [("ok", status.renewals_ok), ("failed", status.renewals_failed)] {
            ConstCounter::new(count).encode(family.encode_family(&[("outcome", outcome)])?)?;
        }

        let help = "1 if the generator stopped for good, and why";
        let mut family = encoder.encode_descriptor("sealed", help, None, MetricType::Gauge)?;
        let labels = [("reason", status.sealed.as_deref().unwrap_or(""))];
        ConstGauge::new(i64::from(status.sealed.is_some())).encode(family.encode_family(&labels)?)
    }
}
