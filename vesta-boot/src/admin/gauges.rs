//! The state of the service as metrics, read at a scrape.

mod segments;
mod tls;

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use vesta_service::{LocalIdService, MachineStatus, Status};

use super::View;
use crate::metrics::counter;
pub(super) use segments::SegmentGauges;
pub(super) use tls::TlsGauges;

#[derive(Debug)]
pub(super) struct Gauges(pub(super) View);

impl Collector for Gauges {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut encoder = Encoder(encoder);
        let ready = self.0.not_ready_because().is_none();
        encoder.number("ready", "1 if calls for IDs are expected to succeed", u64::from(ready))?;
        let Some(service) = self.0.service() else { return Ok(()) };
        whole(&mut encoder, &service.status())?;
        machines(&mut encoder, service)?;
        match self.0.pool().and_then(|pool| pool.fill()) {
            Some(fill) => encoder.numbers(
                "pool_machine_ids",
                "Machine IDs of the pool by what became of them",
                fill.by_state().map(|(state, count)| ([("state", state)], count)),
            ),
            None => Ok(()),
        }
    }
}

/// The service as a whole.
fn whole(encoder: &mut Encoder<'_>, status: &Status) -> fmt::Result {
    for (name, help, value) in [
        ("window_left", "Time until the durable bound is reached", status.window_left),
        ("lead", "How far issued time runs ahead of the wall clock", status.lead),
        ("last_renewal_age", "Time since the last acknowledged renewal", status.last_renewal_age),
        ("layout_left", "Time until the layout has no more IDs", status.layout_left),
    ] {
        // Without a lease there is no bound and no time until it.
        if value != Duration::MAX {
            let unit = Some(&Unit::Seconds);
            let metric = encoder.0.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            ConstGauge::new(value.as_secs_f64()).encode(metric)?;
        }
    }
    for (name, help, value) in [
        ("machine_id", "The machine ID now held, or the first of them", status.machine),
        ("lease_epoch", "The epoch of the lease of that machine ID", status.epoch),
        ("clock_suspect", "1 if the wall clock is not believed", u64::from(status.clock_suspect)),
    ] {
        encoder.number(name, help, value)?;
    }
    for (name, help, value) in [
        ("fenced", "Leases lost to another owner", status.fenced_total),
        ("rehomed", "Machine IDs claimed anew while running", status.rehomed_total),
        ("positions_lost", "Positions taken for batches that failed", status.positions_lost_total),
    ] {
        counter(&mut encoder.0, name, help, value)?;
    }
    encoder.counters(
        "renewals",
        "Renewals of the leases by outcome",
        outcomes(status.renewals_ok, status.renewals_failed).map(|(o, n)| ([("outcome", o)], n)),
    )?;
    let reason = status.sealed.as_deref();
    let labels = [("reason", reason.unwrap_or(""))];
    let help = "1 if the generator stopped for good, and why";
    encoder.numbers("sealed", help, [(labels, u64::from(reason.is_some()))])
}

/// Each machine ID. One that is lost and one that was just claimed may have the same number, so the
/// slot has a number of its own.
fn machines(encoder: &mut Encoder<'_>, service: &LocalIdService) -> fmt::Result {
    let lines: Vec<_> = service.machines().into_iter().enumerate().collect();
    let labels = |number: usize, line: &MachineStatus| {
        [("slot", number.to_string()), ("machine", line.machine.to_string())]
    };
    type Of<T> = fn(&MachineStatus) -> T;
    let seconds: [(&str, &str, Of<Duration>); 3] = [
        ("machine_window_left", "Time until its durable bound is reached", |line| line.window_left),
        ("machine_lead", "How far its issued time runs ahead", |line| line.lead),
        ("machine_last_renewal_age", "Time since its last renewal", |line| line.last_renewal_age),
    ];
    for (name, help, of) in seconds {
        encoder.seconds(name, help, lines.iter().map(|(n, line)| (labels(*n, line), of(line))))?;
    }
    let numbers: [(&str, &str, Of<u64>); 2] = [
        ("machine_ready", "1 if it is expected to make IDs", |line| u64::from(line.ready)),
        ("machine_epoch", "The epoch of its lease", |line| line.epoch),
    ];
    for (name, help, of) in numbers {
        encoder.numbers(name, help, lines.iter().map(|(n, line)| (labels(*n, line), of(line))))?;
    }
    let counters: [(&str, &str, Of<u64>); 2] = [
        ("machine_fenced", "Its leases lost to another owner", |line| line.fenced_total),
        ("machine_rehomed", "Machine IDs it claimed while running", |line| line.rehomed_total),
    ];
    for (name, help, of) in counters {
        encoder.counters(name, help, lines.iter().map(|(n, line)| (labels(*n, line), of(line))))?;
    }
    let renewals = lines.iter().flat_map(|(number, line)| {
        let [a, b] = labels(*number, line);
        outcomes(line.renewals_ok, line.renewals_failed).map(move |(outcome, count)| {
            ([a.clone(), b.clone(), ("outcome", outcome.to_owned())], count)
        })
    });
    encoder.counters("machine_renewals", "Renewals of its lease by outcome", renewals)?;
    let sealed = lines.iter().map(|(number, line)| {
        let [a, b] = labels(*number, line);
        let reason = line.sealed.clone();
        let sealed = u64::from(reason.is_some());
        ([a, b, ("reason", reason.unwrap_or_default())], sealed)
    });
    encoder.numbers("machine_sealed", "1 if it stopped for good, and why", sealed)
}

fn outcomes(ok: u64, failed: u64) -> [(&'static str, u64); 2] {
    [("ok", ok), ("failed", failed)]
}

struct Encoder<'a>(DescriptorEncoder<'a>);

impl Encoder<'_> {
    /// What has no end is left out.
    fn seconds<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, Duration)>,
    ) -> fmt::Result {
        let known: Vec<_> =
            values.into_iter().filter(|(_, value)| *value != Duration::MAX).collect();
        if known.is_empty() {
            return Ok(());
        }
        let unit = Some(&Unit::Seconds);
        let mut family = self.0.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for (labels, value) in known {
            ConstGauge::new(value.as_secs_f64()).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn number(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(metric)
    }

    fn numbers<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
