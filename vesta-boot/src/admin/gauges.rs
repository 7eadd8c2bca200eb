//! Collector of the status, read at a scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::segments::{SegmentsStatus, TagStatus};
use super::state::Program;
use super::status::{LeaseStatus, ProgramStatus, ServiceStatus};
use crate::Security;
use crate::metrics::Kind::{Counter, Gauge, Seconds};
use crate::metrics::{Encoder, Kind, Labels};

#[derive(Debug)]
pub(super) struct Gauges(pub(super) Program);

impl Collector for Gauges {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut encoder = Encoder(encoder);
        let status = ProgramStatus::of(&self.0);
        let ready = u64::from(status.ready);
        encoder.one(Gauge, "ready", "1 if calls for IDs are expected to succeed", ready)?;
        if let Some(service) = &status.service {
            self::service(&mut encoder, service)?;
        }
        if let Some(segments) = self.0.segments() {
            self::segments(&mut encoder, &SegmentsStatus::of(segments))?;
        }
        tls(&mut encoder, &self.0.security)
    }
}

fn service(encoder: &mut Encoder<'_>, status: &ServiceStatus) -> fmt::Result {
    let ServiceStatus { machine, layout, lease, machines, pool, .. } = status;
    let help = "The machine ID now held, or the first of them";
    encoder.one(Gauge, "machine_id", help, machine.id)?;
    let help = "The epoch of the lease of that machine ID";
    encoder.one(Gauge, "lease_epoch", help, lease.epoch)?;
    let help = "Time until the layout has no more IDs";
    encoder.one(Seconds, "layout_left", help, layout.left_ms)?;
    let help = "1 if the wall clock is not trusted";
    encoder.one(Gauge, "clock_suspect", help, u64::from(lease.clock_suspect))?;
    let help = "Positions taken for batches that failed";
    encoder.one(Counter, "positions_lost", help, lease.positions_lost)?;
    leases(encoder, "", &[(vec![], lease)])?;

    // A machine ID that is lost and one that was just claimed may be the same, so the slot has a
    // number of its own.
    let labels = |slot: usize, machine: u64| {
        vec![("slot", slot.to_string()), ("machine", machine.to_string())]
    };
    let machines = machines.iter().enumerate().map(|(n, it)| (labels(n, it.machine), it));
    let machines: Vec<_> = machines.collect();
    let ready = machines.iter().map(|(labels, it)| (labels.clone(), u64::from(it.ready)));
    encoder.family(Gauge, "machine_ready", "1 if it is expected to make IDs", ready)?;
    let epochs = machines.iter().map(|(labels, it)| (labels.clone(), it.lease.epoch));
    encoder.family(Gauge, "machine_epoch", "The epoch of its lease", epochs)?;
    let machines: Vec<_> = machines.into_iter().map(|(labels, it)| (labels, &it.lease)).collect();
    leases(encoder, "machine_", &machines)?;

    let usage = pool.iter().flatten();
    let usage = usage.map(|(state, count)| (vec![("state", (*state).to_owned())], *count));
    encoder.family(Gauge, "pool_machine_ids", "Machine IDs of the pool by state", usage)
}

/// Figures of leases: of the service as a whole, or of each machine ID.
fn leases(
    encoder: &mut Encoder<'_>,
    prefix: &str,
    leases: &[(Labels, &LeaseStatus)],
) -> fmt::Result {
    type Of = fn(&LeaseStatus) -> Option<u64>;
    let figures: [(Kind, &str, &str, Of); 5] = [
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
        let reason = ("reason", it.sealed.clone().unwrap_or_default());
        ([&labels[..], &[reason]].concat(), u64::from(it.sealed.is_some()))
    });
    encoder.family(Gauge, &format!("{prefix}sealed"), "1 if it stopped for good, and why", sealed)
}

/// Tags with series of their own. Those that come after them by name are added up under an empty
/// key, which no tag has.
const MOST: usize = 100;

fn segments(encoder: &mut Encoder<'_>, status: &SegmentsStatus) -> fmt::Result {
    let SegmentsStatus { ready, last_refresh_age_ms, segments: tags, .. } = status;
    let help = "1 if the tags were read and are served";
    encoder.one(Gauge, "segments_ready", help, u64::from(*ready))?;
    let help = "Time since the tags were read";
    encoder.one(Seconds, "segments_refresh_age", help, *last_refresh_age_ms)?;
    let count = u64::try_from(tags.len()).unwrap_or(u64::MAX);
    encoder.one(Gauge, "segment_tags", "Tags in the table", count)?;

    type Of = fn(&TagStatus) -> u64;
    let (shown, others) = tags.split_at(tags.len().min(MOST));
    let samples = |of: Of| -> Vec<(Labels, u64)> {
        let sum = others.iter().map(of).fold(0, u64::saturating_add);
        let rest = (!others.is_empty()).then_some(("", sum));
        let own = shown.iter().map(|tag| (tag.key.as_str(), of(tag)));
        own.chain(rest).map(|(key, value)| (vec![("key", key.to_owned())], value)).collect()
    };
    let figures: [(Kind, &str, &str, Of); 5] = [
        (Counter, "segment_taken", "Numbers of the tag that were given out", |tag| tag.taken),
        (Counter, "segment_lost", "Numbers taken for batches that failed", |tag| tag.lost),
        (Gauge, "segment_ready", "1 if numbers of the tag are expected", |tag| tag.ready.into()),
        (Gauge, "segment_left", "Numbers of the tag at hand", |tag| tag.left),
        (Gauge, "segment_rate", "Numbers of the tag given out a second", |tag| tag.per_second),
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
