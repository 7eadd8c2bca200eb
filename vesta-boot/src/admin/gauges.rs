//! Collector of all metrics, read at a scrape: the figures of the statuses, by their fields.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use serde_json::{Map, Value};

use super::encoder::Kind::{Counter, Gauge, Seconds};
use super::encoder::{Encoder, Figure, Labels, Outcomes, number, with};
use super::state::AdminState;
use super::{segments, status};
use crate::metrics::{BOUNDS, Latency, Metrics};
use crate::net::Security;
use crate::role::Role;

const PROGRAM: [Figure; 6] = [
    (Gauge, "ready", "1 if calls for IDs are expected to succeed", "/ready"),
    (Gauge, "machine_id", "The machine ID now held, or the first of them", "/machine/id"),
    (Gauge, "lease_epoch", "The epoch of the lease of that machine ID", "/lease/epoch"),
    (Seconds, "layout_left", "Time until the layout has no more IDs", "/layout/leftMs"),
    (Gauge, "clock_suspect", "1 if the wall clock is not trusted", "/lease/clockSuspect"),
    (Counter, "positions_lost", "Positions taken for batches that failed", "/lease/positionsLost"),
];

const MACHINE: [Figure; 2] = [
    (Gauge, "ready", "1 if it is expected to make IDs", "/ready"),
    (Gauge, "epoch", "The epoch of its lease", "/epoch"),
];

const LEASE: [Figure; 5] = [
    (Seconds, "window_left", "Time until the durable bound is reached", "/windowLeftMs"),
    (Seconds, "lead", "Time by which issued time is ahead of the wall clock", "/leadMs"),
    (Seconds, "last_renewal_age", "Time since the last acknowledged renewal", "/lastRenewalAgeMs"),
    (Counter, "fenced", "Leases lost to another owner", "/fenced"),
    (Counter, "rehomed", "Machine IDs claimed anew while running", "/rehomed"),
];

const RENEWALS: Outcomes =
    ("renewals", "Renewals of leases by outcome", ["/renewalsOk", "/renewalsFailed"]);

const SEGMENTS: [Figure; 2] = [
    (Gauge, "segments_ready", "1 if the tags were read and are served", "/ready"),
    (Seconds, "segments_refresh_age", "Time since the tags were read", "/lastRefreshAgeMs"),
];

const TAG: [Figure; 6] = [
    (Counter, "segment_taken", "Numbers of the tag that were given out", "/taken"),
    (Counter, "segment_lost", "Numbers taken for batches that failed", "/lost"),
    (Gauge, "segment_ready", "1 if numbers of the tag are expected", "/ready"),
    (Gauge, "segment_left", "Numbers of the tag at hand", "/left"),
    (Gauge, "segment_rate", "Numbers of the tag given out a second", "/perSecond"),
    (Gauge, "segment_step", "The step of the next fetch", "/step"),
];

const FETCHES: Outcomes =
    ("segment_fetches", "Requests for ranges by outcome", ["/fetchesOk", "/fetchesFailed"]);

/// Fields of a tag that can be added up. A sum of steps means nothing.
const SUMMED: [&str; 7] =
    ["taken", "lost", "ready", "left", "perSecond", "fetchesOk", "fetchesFailed"];

/// Tags with series of their own. Those that come after them by name are added up under an empty
/// key, which no tag has.
const MOST: usize = 100;

#[derive(Debug)]
pub(super) struct Scrape(pub(super) AdminState);

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (state, mut encoder) = (&self.0, Encoder(encoder));
        requests(&mut encoder, state.role, &state.metrics)?;
        program(&mut encoder, &status::status(state))?;
        if let Some(service) = state.segments() {
            tags(&mut encoder, &segments::status(service))?;
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

    let opened = metrics.opened.get();
    let open = opened.saturating_sub(metrics.closed.get());
    encoder.one(Counter, "ids_issued", "IDs handed out", metrics.issued.get())?;
    encoder.one(Counter, "connections", "Connections accepted", opened)?;
    let help = "Connections turned away at the limit";
    encoder.one(Counter, "connections_refused", help, metrics.refused.get())?;
    encoder.one(Gauge, "open_connections", "Connections open now", open)?;
    let labels = vec![("program", role.name().to_owned())];
    let labels = with(&labels, "version", env!("CARGO_PKG_VERSION"));
    encoder.family(Gauge, "build_info", "The program and its version", [(labels, 1)])
}

/// Upper bounds of the latency buckets in seconds.
fn bounds() -> impl Iterator<Item = f64> {
    let bounds = BOUNDS.iter().map(|micros| Duration::from_micros(*micros).as_secs_f64());
    bounds.chain([f64::INFINITY])
}

fn program(encoder: &mut Encoder<'_>, status: &Value) -> fmt::Result {
    encoder.figures("", &PROGRAM, &[(vec![], status)])?;
    leases(encoder, "", status.get("lease").map(|lease| (vec![], lease)).as_slice())?;
    // A machine ID that is lost and one that was just claimed may be the same, so the slot has a
    // number of its own.
    let machines = status["machines"].as_array().into_iter().flatten().enumerate();
    let machines = machines.map(|(slot, status)| {
        (vec![("slot", slot.to_string()), ("machine", status["machine"].to_string())], status)
    });
    let machines: Vec<_> = machines.collect();
    encoder.figures("machine_", &MACHINE, &machines)?;
    leases(encoder, "machine_", &machines)?;
    let usage = status["pool"].as_object().into_iter().flatten();
    let usage = usage.map(|(state, count)| (vec![("state", state.clone())], count.as_u64()));
    encoder.family(Gauge, "pool_machine_ids", "Machine IDs of the pool by state", usage)
}

/// Figures of leases: of the service as a whole, or of each machine ID.
fn leases(encoder: &mut Encoder<'_>, prefix: &str, leases: &[(Labels, &Value)]) -> fmt::Result {
    encoder.figures(prefix, &LEASE, leases)?;
    encoder.outcomes(prefix, &RENEWALS, leases)?;
    let sealed = leases.iter().map(|(labels, lease)| {
        let reason = lease["sealed"].as_str();
        (with(labels, "reason", reason.unwrap_or_default()), u64::from(reason.is_some()))
    });
    encoder.family(Gauge, &format!("{prefix}sealed"), "1 if it stopped for good, and why", sealed)
}

fn tags(encoder: &mut Encoder<'_>, status: &Value) -> fmt::Result {
    encoder.figures("", &SEGMENTS, &[(vec![], status)])?;
    let tags = status["segments"].as_array().map_or(&[][..], Vec::as_slice);
    let count = u64::try_from(tags.len()).unwrap_or(u64::MAX);
    encoder.one(Gauge, "segment_tags", "Tags in the table", count)?;
    let (shown, others) = tags.split_at(tags.len().min(MOST));
    let rest = (!others.is_empty()).then(|| sum(others));
    let items = shown
        .iter()
        .chain(&rest)
        .map(|tag| (vec![("key", tag["key"].as_str().unwrap_or_default().to_owned())], tag));
    let items: Vec<_> = items.collect();
    encoder.figures("", &TAG, &items)?;
    encoder.outcomes("", &FETCHES, &items)
}

/// Tags added up.
fn sum(tags: &[Value]) -> Value {
    let sum = |field: &str| {
        let values = tags.iter().filter_map(|tag| number(&tag[field]));
        Value::from(values.fold(0, u64::saturating_add))
    };
    Value::Object(Map::from_iter(SUMMED.map(|field| (field.to_owned(), sum(field)))))
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
