//! Collector of all metrics, read at a scrape: the figures of the statuses, by their fields.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use serde_json::{Value, json};

use super::state::AdminState;
use super::{segments, serials, status};
use crate::assemble::Assembled;
use crate::metrics::{BOUNDS, Latency};
use crate::net::Security;
use Kind::{Counter, Gauge, Seconds};

/// Type of a metric.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
    /// A gauge in seconds, of values in milliseconds.
    Seconds,
}

/// Kind, name and help of a metric, and its field in a status, as a JSON pointer. If that holds an
/// object, each member is an outcome.
type Figure = (Kind, &'static str, &'static str, &'static str);

const CONNECTIONS: [Figure; 3] = [
    (Counter, "connections", "Connections accepted", "/opened"),
    (Counter, "connections_refused", "Connections turned away at the limit", "/refused"),
    (Gauge, "open_connections", "Connections open now", "/open"),
];

const PROGRAM: [Figure; 9] = [
    (Gauge, "ready", "1 if calls for IDs are expected to succeed", "/ready"),
    (Gauge, "machine_id", "The machine ID now held, or the first of them", "/machine/id"),
    (Gauge, "machine_ids", "Machine IDs now held", "/machine/held"),
    (Gauge, "machine_ids_ready", "Those of them that are expected to make IDs", "/machine/ready"),
    (Gauge, "lease_epoch", "The epoch of the lease of that machine ID", "/lease/epoch"),
    (
        Gauge,
        "capacity_ids_per_second",
        "IDs that the machine IDs now held can make a second",
        "/layout/idsPerSecond",
    ),
    (Seconds, "layout_left", "Time until the layout has no more IDs", "/layout/leftMs"),
    (Gauge, "clock_suspect", "1 if the wall clock is not trusted", "/lease/clockSuspect"),
    (Counter, "positions_lost", "Positions taken for batches that failed", "/lease/positionsLost"),
];

const MACHINE: [Figure; 2] = [
    (Gauge, "ready", "1 if it is expected to make IDs", "/ready"),
    (Gauge, "epoch", "The epoch of its lease", "/epoch"),
];

const LEASE: [Figure; 8] = [
    (Seconds, "window_left", "Time until the durable bound is reached", "/windowLeftMs"),
    (Seconds, "lead", "Time by which issued time is ahead of the wall clock", "/leadMs"),
    (Seconds, "last_renewal_age", "Time since the last acknowledged renewal", "/lastRenewalAgeMs"),
    (Counter, "fenced", "Leases lost to another owner", "/fenced"),
    (Counter, "store_went_back", "Times the store showed an earlier state", "/storeWentBack"),
    (Counter, "rehomed", "Machine IDs claimed anew while running", "/rehomed"),
    (Counter, "renewals", "Renewals of leases by outcome", "/renewals"),
    (
        Gauge,
        "store_may_forget",
        "1 if the store may forget what it acknowledged",
        "/storeMayForget",
    ),
];

/// Of segments and of serials, after `segment` and `serial`.
const TAGS: [Figure; 4] = [
    (Gauge, "_tags", "Tags in the store", "/tags"),
    (Gauge, "s_ready", "1 if the tags were read and are served", "/ready"),
    (Gauge, "s_may_forget", "1 if the store may hand out numbers again", "/mayForget"),
    (Seconds, "s_refresh_age", "Time since the tags were read", "/lastRefreshAgeMs"),
];

const TAG: [Figure; 6] = [
    (Counter, "_taken", "Numbers of the tag that were given out", "/taken"),
    (Counter, "_lost", "Numbers taken for batches that failed", "/lost"),
    (Gauge, "_ready", "1 if numbers of the tag are expected", "/ready"),
    (Gauge, "_left", "Numbers of the tag at hand", "/left"),
    (Gauge, "_rate", "Numbers of the tag given out a second", "/perSecond"),
    (Counter, "_fetches", "Requests for ranges by outcome", "/fetches"),
];

/// Not of tags that are added up: a sum of steps means nothing.
const STEP: [Figure; 2] = [
    (Gauge, "_step", "Numbers that the next fetch would bring", "/step"),
    (Gauge, "_room", "Numbers until the counter has outgrown its digits", "/room"),
];

/// Tags with series of their own. Those that come after them by name are added up under an empty
/// key, which no tag has.
const MOST: usize = 100;

#[derive(Debug)]
pub(super) struct Scrape(pub(super) AdminState);

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (state, mut encoder) = (&self.0, Encoder(encoder));
        requests(&mut encoder, state)?;
        origin(&mut encoder, state)?;
        program(&mut encoder, &status::status(state))?;
        if let Some(service) = state.segments() {
            tags(&mut encoder, "segment", &segments::status(service))?;
        }
        if let Some(service) = state.serials() {
            tags(&mut encoder, "serial", &serials::status(service))?;
        }
        tls(&mut encoder, &state.security)
    }
}

fn requests(encoder: &mut Encoder<'_>, state: &AdminState) -> fmt::Result {
    let all = &state.metrics;
    let latencies = || all.iter().flat_map(|metrics| metrics.latencies());
    // From zero on, for alerts: a rate misses the first event of a series that begins with it.
    let errors = latencies().filter(|(_, outcome, _)| !matches!(*outcome, "OK" | "CANCELLED"));
    let errors = errors.map(|(_, kind, latency)| (labels([("kind", kind)]), latency.count()));
    encoder.family(Counter, "errors", "Errors of all methods by kind", errors)?;

    let latencies: Vec<_> = latencies()
        .filter(|(_, _, latency)| latency.count() > 0)
        .map(|(method, outcome, latency)| {
            (labels([("method", method), ("outcome", outcome)]), latency)
        })
        .collect();
    let counts = latencies.iter().map(|(labels, latency)| (labels.clone(), latency.count()));
    encoder.family(Counter, "requests", "Requests by method and outcome", counts)?;

    let help = "Time from the decoded request to its answer";
    encoder.durations("request_duration", help, &latencies)?;

    let counters = all.iter().map(|metrics| {
        json!({
            "opened": metrics.opened.get(),
            "refused": metrics.refused.get(),
            "open": Arc::strong_count(&metrics.open) - 1,
        })
    });
    let counters: Vec<_> = counters.collect();
    let added_up: Vec<_> = counters.iter().map(|counters| (vec![], counters)).collect();
    encoder.figures("", &CONNECTIONS, &added_up)?;
    let issued = all
        .iter()
        .flat_map(|metrics| metrics.issued())
        .map(|(caller, count)| (labels([("token", state.security.name(caller))]), count));
    encoder.family(Counter, "ids_issued", "IDs handed out, by the name of the token", issued)?;
    let build = labels([("program", state.role.name()), ("version", env!("CARGO_PKG_VERSION"))]);
    encoder.family(Gauge, "build_info", "The program and its version", [(build, 1)])
}

/// The origin of the IDs, and the requests to the store of machine IDs.
fn origin(encoder: &mut Encoder<'_>, state: &AdminState) -> fmt::Result {
    let Some(Assembled { service, store, origin, .. }) = state.assembled() else {
        return Ok(());
    };
    let status = service.status();
    let gen_methods: Vec<_> = origin.gen_methods.iter().map(u64::to_string).collect();
    let info = labels([
        ("namespace", &status.namespace),
        ("layout", service.meta().name()),
        ("gen_method", &gen_methods.join(",")),
        ("store", origin.store),
        ("machine_source", origin.machine_source),
    ]);
    encoder.family(Gauge, "info", "What the IDs are made of", [(info, 1)])?;
    let Some(store) = store else { return Ok(()) };
    let requests = store.requests().filter(|(_, latency)| latency.count() > 0);
    let requests = requests.map(|(op, latency)| (labels([("op", op)]), latency));
    let help = "Time of one request to the store of machine IDs";
    encoder.durations("store_request_duration", help, &requests.collect::<Vec<_>>())?;
    let Some(offset) = store.offset() else { return Ok(()) };
    let (help, unit) = ("This host's clock minus that of the store", Some(&Unit::Seconds));
    let mut gauge = encoder.0.encode_descriptor("clock_offset", help, unit, MetricType::Gauge)?;
    gauge.encode_gauge(&(offset as f64 / 1000.0))
}

fn program(encoder: &mut Encoder<'_>, status: &Value) -> fmt::Result {
    encoder.figures("", &PROGRAM, &[(vec![], status)])?;
    leases(encoder, "", status.get("lease").map(|lease| (vec![], lease)).as_slice())?;
    // A machine ID that is lost and one that was just claimed may be the same, so the slot has a
    // number of its own.
    let machines = status["machines"].as_array().into_iter().flatten().enumerate().take(MOST);
    let machines = machines.map(|(slot, status)| {
        (vec![("slot", slot.to_string()), ("machine", status["machine"].to_string())], status)
    });
    let machines: Vec<_> = machines.collect();
    encoder.figures("machine_", &MACHINE, &machines)?;
    leases(encoder, "machine_", &machines)?;
    let usage = status["pool"].as_object().into_iter().flatten();
    let usage = usage.map(|(state, count)| (labels([("state", state)]), number(count)));
    encoder.family(Gauge, "pool_machine_ids", "Machine IDs of the pool by state", usage)
}

/// Figures of leases: of the service as a whole, or of each machine ID.
fn leases(encoder: &mut Encoder<'_>, prefix: &str, leases: &[(Labels, &Value)]) -> fmt::Result {
    encoder.figures(prefix, &LEASE, leases)?;
    let sealed = leases.iter().map(|(labels, lease)| {
        let reason = lease["sealed"].as_str();
        (with(labels, "reason", reason.unwrap_or_default()), u64::from(reason.is_some()))
    });
    encoder.family(Gauge, &format!("{prefix}sealed"), "1 if it stopped for good, and why", sealed)
}

/// Tags of a kind: `segment` or `serial`.
fn tags(encoder: &mut Encoder<'_>, kind: &str, status: &Value) -> fmt::Result {
    encoder.figures(kind, &TAGS, &[(vec![], status)])?;
    let tags = status[format!("{kind}s")].as_array().into_iter().flatten().enumerate();
    let tags: Vec<_> = tags
        .map(|(i, tag)| match tag["key"].as_str() {
            Some(key) if i < MOST => (labels([("key", key)]), tag),
            _ => (labels([("key", "")]), tag),
        })
        .collect();
    encoder.figures(kind, &TAG, &tags)?;
    encoder.figures(kind, &STEP, &tags[..tags.len().min(MOST)])
}

/// Certificates and handshakes.
fn tls(encoder: &mut Encoder<'_>, security: &Security) -> fmt::Result {
    let listeners = || security.listeners().map(|(name, tls)| (labels([("listener", name)]), tls));
    let help = "When the certificate of a listener expires, in seconds since 1970";
    let ends = listeners().map(|(labels, tls)| (labels, tls.valid_until().0 / 1000));
    encoder.family(Gauge, "tls_certificate_expires", help, ends)?;
    let help = "Connections that ended before TLS was set up";
    let failed = listeners().map(|(labels, tls)| (labels, tls.handshakes_failed()));
    encoder.family(Counter, "tls_handshakes_failed", help, failed)
}

type Labels = Vec<(&'static str, String)>;

type NoLabels = [(&'static str, &'static str); 0];

fn labels<const N: usize>(labels: [(&'static str, &str); N]) -> Labels {
    labels.map(|(name, value)| (name, value.to_owned())).into()
}

/// These labels and another one.
fn with(labels: &Labels, name: &'static str, value: &str) -> Labels {
    [&labels[..], &[(name, value.to_owned())]].concat()
}

/// A field as a number: 1 is true.
fn number(field: &Value) -> Option<u64> {
    field.as_u64().or(field.as_bool().map(u64::from))
}

struct Encoder<'a>(DescriptorEncoder<'a>);

impl Encoder<'_> {
    /// Figures of statuses, where they have them.
    fn figures(
        &mut self,
        prefix: &str,
        figures: &[Figure],
        statuses: &[(Labels, &Value)],
    ) -> fmt::Result {
        figures.iter().try_for_each(|(kind, name, help, field)| {
            let samples =
                statuses.iter().flat_map(|(labels, status)| match status.pointer(field) {
                    Some(Value::Object(outcomes)) => outcomes
                        .iter()
                        .map(|(outcome, value)| (with(labels, "outcome", outcome), number(value)))
                        .collect(),
                    value => vec![(labels.clone(), value.and_then(number))],
                });
            self.family(*kind, &format!("{prefix}{name}"), help, samples)
        })
    }

    /// A histogram of durations.
    fn durations(&mut self, name: &str, help: &str, all: &[(Labels, Latency)]) -> fmt::Result {
        let of_type = MetricType::Histogram;
        let mut family = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), of_type)?;
        let seconds = |micros: &u64| Duration::from_micros(*micros).as_secs_f64();
        let bounds = || BOUNDS.iter().map(seconds).chain([f64::INFINITY]);
        all.iter().try_for_each(|(labels, latency)| {
            let (sum, count) = (latency.sum.as_secs_f64(), latency.count());
            let buckets: Vec<_> = bounds().zip(latency.buckets).collect();
            family.encode_family(labels)?.encode_histogram::<NoLabels>(sum, count, &buckets, None)
        })
    }

    /// A family of metrics: those that have a value. Values with the same labels are added up.
    fn family(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, impl Into<Option<u64>>)>,
    ) -> fmt::Result {
        let mut values = BTreeMap::<Labels, u64>::new();
        for (labels, value) in samples {
            if let Some(value) = value.into() {
                let sum = values.entry(labels).or_default();
                *sum = sum.saturating_add(value);
            }
        }
        if values.is_empty() {
            return Ok(());
        }
        let (unit, of_type) = match kind {
            Counter => (None, MetricType::Counter),
            Gauge => (None, MetricType::Gauge),
            Seconds => (Some(&Unit::Seconds), MetricType::Gauge),
        };
        let mut family = self.0.encode_descriptor(name, help, unit, of_type)?;
        let encode = |metric: &mut MetricEncoder<'_>, value| match kind {
            Counter => metric.encode_counter::<NoLabels, _, f64>(value, None),
            Gauge => metric.encode_gauge(value),
            Seconds => metric.encode_gauge(&Duration::from_millis(*value).as_secs_f64()),
        };
        values.iter().try_for_each(|(labels, value)| match labels[..] {
            [] => encode(&mut family, value),
            _ => encode(&mut family.encode_family(labels)?, value),
        })
    }
}
