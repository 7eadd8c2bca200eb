//! Collector of all metrics, read at a scrape.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use vesta_service::{LocalIdService, SegmentService, SegmentStatus};

use super::encoder::Kind::{Counter, Gauge, Seconds};
use super::encoder::{Encoder, Figure, Labels, with};
use super::segments::left;
use super::state::AdminState;
use super::status::{LeaseStatus, millis};
use crate::metrics::{BOUNDS, Latency, Metrics};
use crate::net::Security;
use crate::role::Role;

#[derive(Debug)]
pub(super) struct Scrape(pub(super) AdminState);

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (state, mut encoder) = (&self.0, Encoder(encoder));
        requests(&mut encoder, state.role, &state.metrics)?;
        let ready = state.not_ready_because().is_none().into();
        let help = "1 if calls for IDs are expected to succeed";
        encoder.figures([(Gauge, "ready", help, ready)])?;
        if let Some(service) = state.service() {
            self::service(&mut encoder, service)?;
        }
        let usage = state.pool().into_iter().flatten();
        let usage = usage.map(|(state, count)| (vec![("state", state.to_owned())], count));
        encoder.family(Gauge, "pool_machine_ids", "Machine IDs of the pool by state", usage)?;
        if let Some(segments) = state.segments() {
            self::segments(&mut encoder, segments)?;
        }
        tls(&mut encoder, &state.security)
    }
}

fn requests(encoder: &mut Encoder<'_>, role: Role, metrics: &Metrics) -> fmt::Result {
    // Every series with something in it, and the good outcome of every method, so that rates are
    // known from the start.
    let latencies: Vec<(Labels, Latency)> = metrics
        .latencies()
        .filter(|(_, outcome, latency)| *outcome == "OK" || latency.count() > 0)
        .map(|(method, outcome, latency)| {
            (vec![("method", method.to_owned()), ("outcome", outcome.to_owned())], latency)
        })
        .collect();
    let counts = latencies.iter().map(|(labels, latency)| (labels.clone(), latency.count()));
    encoder.family(Counter, "requests", "Requests by method and outcome", counts)?;

    let (help, unit) = ("Time from the decoded request to its answer", Some(&Unit::Seconds));
    let of_type = MetricType::Histogram;
    let mut family = encoder.0.encode_descriptor("request_duration", help, unit, of_type)?;
    for (labels, latency) in &latencies {
        let mut series = family.encode_family(labels)?;
        let buckets: Vec<_> = bounds().zip(latency.buckets).collect();
        let sum = latency.sum.as_secs_f64();
        series.encode_histogram::<[(&str, &str); 0]>(sum, latency.count(), &buckets, None)?;
    }

    let [opened, closed, refused] = metrics.connections();
    encoder.figures([
        (Counter, "ids_issued", "IDs handed out", metrics.ids()),
        (Counter, "connections", "Connections accepted", opened),
        (Counter, "connections_refused", "Connections turned away at the limit", refused),
        (Gauge, "open_connections", "Connections open now", opened.saturating_sub(closed)),
    ])?;
    let labels = vec![("program", role.name().to_owned())];
    let labels = with(&labels, "version", env!("CARGO_PKG_VERSION"));
    encoder.family(Gauge, "build_info", "The program and its version", [(labels, 1)])
}

/// Upper bounds of the latency buckets in seconds.
fn bounds() -> impl Iterator<Item = f64> {
    let bounds = BOUNDS.iter().map(|micros| Duration::from_micros(*micros).as_secs_f64());
    bounds.chain([f64::INFINITY])
}

fn service(encoder: &mut Encoder<'_>, service: &LocalIdService) -> fmt::Result {
    let status = service.status();
    encoder.figures([
        (Gauge, "machine_id", "The machine ID now held, or the first of them", status.machine),
        (Gauge, "lease_epoch", "The epoch of the lease of that machine ID", status.epoch),
        (
            Seconds,
            "layout_left",
            "Time until the layout has no more IDs",
            millis(status.layout_left),
        ),
        (Gauge, "clock_suspect", "1 if the wall clock is not trusted", status.clock_suspect.into()),
        (
            Counter,
            "positions_lost",
            "Positions taken for batches that failed",
            status.positions_lost_total,
        ),
    ])?;
    leases(encoder, "", &[(vec![], LeaseStatus::from(&status))])?;

    // A machine ID that is lost and one that was just claimed may be the same, so the slot has a
    // number of its own.
    let machines: Vec<_> = service.machines().into_iter().enumerate().collect();
    let machines = machines.iter().map(|(slot, it)| {
        let labels = vec![("slot", slot.to_string()), ("machine", it.machine.to_string())];
        (labels, it)
    });
    let ready = machines.clone().map(|(labels, it)| (labels, u64::from(it.ready)));
    encoder.family(Gauge, "machine_ready", "1 if it is expected to make IDs", ready)?;
    let epochs = machines.clone().map(|(labels, it)| (labels, it.epoch));
    encoder.family(Gauge, "machine_epoch", "The epoch of its lease", epochs)?;
    let of_machines: Vec<_> =
        machines.map(|(labels, it)| (labels, LeaseStatus::from(it))).collect();
    leases(encoder, "machine_", &of_machines)
}

/// Figures of leases: of the service as a whole, or of each machine ID.
fn leases(
    encoder: &mut Encoder<'_>,
    prefix: &str,
    leases: &[(Labels, LeaseStatus)],
) -> fmt::Result {
    type Of = fn(&LeaseStatus) -> Option<u64>;
    let figures: [Figure<Of>; 5] = [
        (Seconds, "window_left", "Time until the durable bound is reached", |it| it.window_left_ms),
        (Seconds, "lead", "Time by which issued time is ahead of the wall clock", |it| {
            Some(it.lead_ms)
        }),
        (Seconds, "last_renewal_age", "Time since the last acknowledged renewal", |it| {
            Some(it.last_renewal_age_ms)
        }),
        (Counter, "fenced", "Leases lost to another owner", |it| Some(it.fenced)),
        (Counter, "rehomed", "Machine IDs claimed anew while running", |it| Some(it.rehomed)),
    ];
    for (kind, name, help, of) in figures {
        let samples = leases.iter().map(|(labels, lease)| (labels.clone(), of(lease)));
        encoder.family(kind, &format!("{prefix}{name}"), help, samples)?;
    }
    let renewals =
        leases.iter().map(|(labels, it)| (labels.clone(), it.renewals_ok, it.renewals_failed));
    encoder.outcomes(&format!("{prefix}renewals"), "Renewals of leases by outcome", renewals)?;
    let sealed = leases.iter().map(|(labels, it)| {
        let reason = it.sealed.as_deref().unwrap_or_default();
        (with(labels, "reason", reason), u64::from(it.sealed.is_some()))
    });
    encoder.family(Gauge, &format!("{prefix}sealed"), "1 if it stopped for good, and why", sealed)
}

/// Tags with series of their own. Those that come after them by name are added up under an empty
/// key, which no tag has.
const MOST: usize = 100;

fn segments(encoder: &mut Encoder<'_>, segments: &SegmentService) -> fmt::Result {
    let tags = segments.status();
    let ready = segments.not_ready_because().is_none().into();
    let count = u64::try_from(tags.len()).unwrap_or(u64::MAX);
    encoder.figures([
        (Gauge, "segments_ready", "1 if the tags were read and are served", ready),
        (Gauge, "segment_tags", "Tags in the table", count),
    ])?;
    let age = segments.last_refresh_age().map(millis);
    encoder.family(
        Seconds,
        "segments_refresh_age",
        "Time since the tags were read",
        [(vec![], age)],
    )?;

    type Of = fn(&SegmentStatus) -> u64;
    let (shown, others) = tags.split_at(tags.len().min(MOST));
    let samples = |of: Of| -> Vec<(Labels, u64)> {
        let sum = others.iter().map(of).fold(0, u64::saturating_add);
        let rest = (!others.is_empty()).then_some(("", sum));
        let own = shown.iter().map(|tag| (tag.key.as_str(), of(tag)));
        own.chain(rest).map(|(key, value)| (vec![("key", key.to_owned())], value)).collect()
    };
    let figures: [Figure<Of>; 5] = [
        (Counter, "segment_taken", "Numbers of the tag that were given out", |tag| tag.taken_total),
        (Counter, "segment_lost", "Numbers taken for batches that failed", |tag| tag.lost_total),
        (Gauge, "segment_ready", "1 if numbers of the tag are expected", |tag| {
            tag.not_ready_because.is_none().into()
        }),
        (Gauge, "segment_left", "Numbers of the tag at hand", left),
        (Gauge, "segment_rate", "Numbers of the tag given out a second", |tag| tag.rate),
    ];
    for (kind, name, help, of) in figures {
        encoder.family(kind, name, help, samples(of))?;
    }
    // A sum of steps means nothing.
    let steps = samples(|tag| tag.step).into_iter().take(MOST);
    encoder.family(Gauge, "segment_step", "The step of the next fetch", steps)?;
    let failed = samples(|tag| tag.fetches_failed);
    let fetches = samples(|tag| tag.fetches_ok).into_iter().zip(failed);
    let fetches = fetches.map(|((labels, ok), (_, failed))| (labels, ok, failed));
    encoder.outcomes("segment_fetches", "Requests for ranges by outcome", fetches)
}

/// Certificates and handshakes.
fn tls(encoder: &mut Encoder<'_>, security: &Security) -> fmt::Result {
    let label = |name: &str| vec![("listener", name.to_owned())];
    let help = "When the certificate of a listener expires, in seconds since 1970";
    let ends = security.listeners().map(|(name, tls)| (label(name), tls.valid_until().0 / 1000));
    encoder.family(Gauge, "tls_certificate_expires", help, ends)?;
    let help = "Connections that ended before TLS was set up";
    let failed = security.listeners().map(|(name, tls)| (label(name), tls.handshakes_failed()));
    encoder.family(Counter, "tls_handshakes_failed", help, failed)
}
