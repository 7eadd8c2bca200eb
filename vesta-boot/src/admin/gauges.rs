//! Collector of all metrics; each scrape reads the statuses.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use vesta_intf::ErrorKind;
use vesta_numbers::segment::SegmentStatus;
use vesta_service::options::{MachineStatus, Status};

use super::encoder::Kind::{Counter, Gauge, Seconds};
use super::encoder::{Encoder, Figure, Labels, labels, with};
use super::state::AdminState;
use super::{segments, serials};
use crate::answers::{Whole, left, window_left};
use crate::assemble::Assembled;
use crate::metrics::{BOUNDS, Metrics};
use crate::security::Security;
use crate::serials::{room, trouble};
use crate::ticks::millis;

/// The service, once it has started.
struct Service {
    status: Status,
    machines: Vec<MachineStatus>,
    ids_per_second: u64,
}

/// A segment tag or a serial tag.
struct Tag {
    segment: SegmentStatus,
    ready: bool,
    /// Only for serials.
    room: Option<u64>,
}

macro_rules! figures {
    (@ known $value:expr) => { $value };
    (@ $value:expr) => { Some($value as u64) };
    ($($(#[$doc:meta])* $constant:ident of $status:ty { $($kind:ident $name:literal $help:literal, $($known:ident)? |$it:ident| $value:expr;)* })*) => {
        $($(#[$doc])* const $constant: &[Figure<$status>] =
            &[$(($kind, $name, $help, |$it: &$status| figures!(@ $($known)? $value))),*];)*
    };
}

figures! {
    CONNECTIONS of Metrics {
        Counter "connections" "Connections accepted", |it| it.connections.accepted();
        Counter "connections_refused" "Connections refused at the limit", |it| it.connections.refused();
        Gauge "open_connections" "Connections open now", |it| it.connections.open();
    }
    SERVICE of Service {
        Gauge "machine_id" "The machine ID now held, or the first of several", |it| it.status.machine;
        Gauge "machine_ids" "Machine IDs now held", |it| it.machines.len();
        Gauge "machine_ids_ready" "Machine IDs now held that are expected to make IDs",
            |it| it.machines.iter().filter(|machine| machine.ready).count();
        Gauge "standing_by" "1 if another process holds the machine ID and this one stands by",
            |it| it.status.holder.is_some();
        Gauge "lease_claim" "How often `machine_id` was claimed", |it| it.status.epoch;
        Gauge "capacity_ids_per_second" "Capacity of the machine IDs now held, in IDs per second", |it| it.ids_per_second;
        Seconds "layout_left" "Time until the layout runs out of IDs", |it| millis(it.status.layout_left);
        Gauge "clock_suspect" "1 if the wall clock is not trusted", |it| it.status.clock_suspect;
        Counter "positions_lost" "Positions lost to calls that failed or were dropped", |it| it.status.positions_lost_total;
    }
    MACHINE of MachineStatus {
        Gauge "ready" "1 if the machine ID is expected to make IDs", |it| it.ready;
        Gauge "claim" "How often the machine ID was claimed", |it| it.epoch;
    }
    LEASE of MachineStatus {
        Seconds "window_left" "Time until the durable bound is reached", known |it| window_left(it.window_left);
        Seconds "lead" "How far issued time is ahead of the wall clock", |it| millis(it.lead);
        Seconds "last_renewal_age" "Time since the last acknowledged renewal", |it| millis(it.last_renewal_age);
        Counter "fenced" "Leases lost to another owner", |it| it.fenced_total;
        Counter "store_went_back" "Times the store showed an earlier state", |it| it.went_back_total;
        Counter "rehomed" "Machine IDs claimed again while running", |it| it.rehomed_total;
        Gauge "store_doubt" "1 if the store may forget acknowledged writes", |it| it.doubt.is_some();
    }
    /// Figures of segments and serials; the name follows `segment` or `serial`.
    TAGS of Whole {
        Gauge "_tags" "Tags in the store", |it| it.tag_count;
        Gauge "s_ready" "1 if the tags have been read and are served", |it| it.ready;
        Gauge "s_doubt" "1 if the store may hand out numbers again", |it| it.doubt.is_some();
        Seconds "s_refresh_age" "Time since the tags were last read", known |it| it.last_refresh_age_ms;
    }
    TAG of Tag {
        Counter "_taken" "Numbers of the tag handed out", |it| it.segment.taken_total;
        Counter "_lost" "Numbers lost to failed batches", |it| it.segment.lost_total;
        Gauge "_ready" "1 if the tag is expected to hand out numbers", |it| it.ready;
        Gauge "_left" "Fetched numbers of the tag that are still unused", |it| left(&it.segment);
        Gauge "_rate" "Numbers of the tag handed out per second", |it| it.segment.rate;
    }
    /// Omitted for aggregated tags: a sum of steps means nothing.
    STEP of Tag {
        Gauge "_step" "Size of the next fetch", |it| it.segment.step;
        Gauge "_used_percent" "Share of the numbers up to the last one that is handed out", known |it| it.segment.used_percent;
        Gauge "_room" "Numbers left until the counter exceeds its digits", known |it| it.room;
    }
}

/// Maximum tags with individual series. The tags after them by name are aggregated under an empty
/// name, which no tag has.
const MOST: usize = 100;

/// Kinds of errors that the alerts in ops/ name. Their series exist from zero on, because a rate misses the first
/// event of a series that begins with it. Those of other kinds begin with their first error.
const ALERTED: [ErrorKind; 4] = [
    ErrorKind::SequenceUsedUp,
    ErrorKind::Internal,
    ErrorKind::Unauthenticated,
    ErrorKind::PermissionDenied,
];

/// Bounds among [`BOUNDS`] for requests to a store.
const STORE_BOUNDS: [u64; 6] = [1_000, 5_000, 25_000, 100_000, 1_000_000, 2_500_000];

#[derive(Debug)]
pub(super) struct Scrape(pub(super) AdminState);

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (state, mut encoder) = (&self.0, Encoder(encoder));
        requests(&mut encoder, state)?;
        origin(&mut encoder, state)?;
        program(&mut encoder, state)?;
        if let Some(service) = state.segments() {
            let all = service.status();
            let all = all.into_iter().map(|segment| {
                let ready = segment.not_ready_because.is_none();
                Tag {
                    segment,
                    ready,
                    room: None,
                }
            });
            tags(
                &mut encoder,
                "segment",
                &segments::whole(service),
                &all.collect::<Vec<_>>(),
            )?;
        }
        if let Some(service) = state.serials() {
            let all = service.status();
            let all = all.into_iter().map(|serial| {
                let (ready, room) = (trouble(&serial).is_none(), Some(room(&serial)));
                Tag {
                    segment: serial.segment,
                    ready,
                    room,
                }
            });
            tags(
                &mut encoder,
                "serial",
                &serials::whole(service),
                &all.collect::<Vec<_>>(),
            )?;
        }
        tls(&mut encoder, &state.security)
    }
}

fn requests(encoder: &mut Encoder<'_>, state: &AdminState) -> fmt::Result {
    let all = &state.metrics;
    let latencies = || all.iter().flat_map(|metrics| metrics.latencies());
    let errors = latencies()
        .filter(|(_, outcome, _)| !matches!(*outcome, "OK" | "CANCELLED"))
        .map(|(_, kind, latency)| (kind, latency.count()))
        .filter(|(kind, count)| *count > 0 || ALERTED.iter().any(|it| it.name() == *kind))
        .map(|(kind, count)| (labels([("kind", kind)]), count));
    encoder.family(Counter, "errors", "Errors of all methods by kind", errors)?;

    let latencies: Vec<_> = latencies()
        .filter(|(_, _, latency)| latency.count() > 0)
        .map(|(method, outcome, latency)| {
            (labels([("method", method), ("outcome", outcome)]), latency)
        })
        .collect();
    let counts = latencies
        .iter()
        .map(|(labels, latency)| (labels.clone(), latency.count()));
    encoder.family(
        Counter,
        "requests",
        "Requests by method and outcome",
        counts,
    )?;

    let help = "Time from the decoded request to its answer";
    encoder.durations("request_duration", help, &BOUNDS, &latencies)?;

    let connections: Vec<_> = all.iter().map(|metrics| (vec![], &**metrics)).collect();
    encoder.figures("", CONNECTIONS, &connections)?;
    let issued = all
        .iter()
        .flat_map(|metrics| metrics.issued())
        .map(|(caller, count)| (labels([("token", state.security.name(caller))]), count));
    encoder.family(
        Counter,
        "ids_issued",
        "IDs handed out, by name of the token",
        issued,
    )?;
    let refused = all
        .iter()
        .flat_map(|metrics| metrics.refused_changes())
        .map(|(caller, count)| (labels([("token", state.security.name(caller))]), count));
    encoder.family(
        Counter,
        "pool_server_refused",
        "Changes that no owner would make, refused by the pool server, by name of the token",
        refused,
    )?;
    let build = labels([
        ("program", state.program),
        ("version", env!("CARGO_PKG_VERSION")),
    ]);
    encoder.family(Gauge, "build_info", "Program and version", [(build, 1)])
}

/// Origin of the IDs, and requests to the store of machine IDs.
fn origin(encoder: &mut Encoder<'_>, state: &AdminState) -> fmt::Result {
    let Some(Assembled {
        service,
        store,
        origin,
        ..
    }) = state.assembled()
    else {
        return Ok(());
    };
    let status = service.status();
    let info = labels([
        ("namespace", &status.namespace),
        ("layout", service.meta().name()),
        ("gen_method", &origin.gen_method.to_string()),
        ("store", origin.store),
        ("machine_source", origin.machine_source),
    ]);
    encoder.family(
        Gauge,
        "info",
        "Layout, store and genMethods of the IDs",
        [(info, 1)],
    )?;
    let Some(store) = store else { return Ok(()) };
    let requests = store.requests().filter(|(_, latency)| latency.count() > 0);
    let requests = requests.map(|(op, latency)| (labels([("op", op)]), latency));
    let help = "Duration of one request to the store of machine IDs";
    encoder.durations(
        "store_request_duration",
        help,
        &STORE_BOUNDS,
        &requests.collect::<Vec<_>>(),
    )?;
    let Some(offset) = store.offset() else {
        return Ok(());
    };
    let (help, unit) = (
        "This host's clock minus the store's clock",
        Some(&Unit::Seconds),
    );
    let mut gauge = encoder
        .0
        .encode_descriptor("clock_offset", help, unit, MetricType::Gauge)?;
    gauge.encode_gauge(&(offset as f64 / 1000.0))
}

fn program(encoder: &mut Encoder<'_>, state: &AdminState) -> fmt::Result {
    let ready = u64::from(state.not_ready_because().is_none());
    let help = "1 if calls for IDs are expected to succeed";
    encoder.family(Gauge, "ready", help, [(vec![], ready)])?;
    let Some(service) = state.service() else {
        return Ok(());
    };
    let (status, machines) = (service.status(), service.machines());
    let ids_per_second = service
        .meta()
        .capacity_per_second()
        .saturating_mul(machines.len() as u64);
    let service = Service {
        status,
        machines,
        ids_per_second,
    };
    encoder.figures("", SERVICE, &[(vec![], &service)])?;
    leases(encoder, "", &[(vec![], &service.status.all)])?;
    // A lost machine ID and a newly claimed one may be the same, so each slot has a number of its
    // own.
    let machines = service
        .machines
        .iter()
        .enumerate()
        .take(MOST)
        .map(|(slot, status)| {
            (
                vec![
                    ("slot", slot.to_string()),
                    ("machine", status.machine.to_string()),
                ],
                status,
            )
        });
    let machines: Vec<_> = machines.collect();
    encoder.figures("machine_", MACHINE, &machines)?;
    // Those of a single machine ID are the program's own.
    if machines.len() > 1 {
        leases(encoder, "machine_", &machines)?;
    }
    let usage = state.pool().into_iter().flatten();
    let usage = usage.map(|(state, count)| (labels([("state", state)]), count));
    encoder.family(
        Gauge,
        "pool_machine_ids",
        "Machine IDs of the pool by state",
        usage,
    )
}

/// Figures of leases, for the whole service or per machine ID.
fn leases(
    encoder: &mut Encoder<'_>,
    prefix: &str,
    leases: &[(Labels, &MachineStatus)],
) -> fmt::Result {
    encoder.figures(prefix, LEASE, leases)?;
    let help = "Renewals of leases by outcome";
    encoder.outcomes(&format!("{prefix}renewals"), help, leases, |lease| {
        (lease.renewals_ok, lease.renewals_failed)
    })?;
    let sealed = leases.iter().map(|(labels, lease)| {
        let reason = lease.sealed.as_deref();
        (
            with(labels, "reason", reason.unwrap_or_default()),
            u64::from(reason.is_some()),
        )
    });
    encoder.family(
        Gauge,
        &format!("{prefix}sealed"),
        "1 if the generator has stopped for good; the label is the reason",
        sealed,
    )
}

/// Tags of one kind: `segment` or `serial`.
fn tags(encoder: &mut Encoder<'_>, kind: &str, whole: &Whole, all: &[Tag]) -> fmt::Result {
    encoder.figures(kind, TAGS, &[(vec![], whole)])?;
    let tags = all.iter().enumerate().map(|(i, tag)| {
        let key = if i < MOST { &*tag.segment.key } else { "" };
        (labels([("tag", key)]), tag)
    });
    let tags: Vec<_> = tags.collect();
    encoder.figures(kind, TAG, &tags)?;
    let help = "Requests for ranges by outcome";
    encoder.outcomes(&format!("{kind}_fetches"), help, &tags, |tag| {
        (tag.segment.fetches_ok, tag.segment.fetches_failed)
    })?;
    encoder.figures(kind, STEP, &tags[..tags.len().min(MOST)])
}

/// Certificates and handshakes.
fn tls(encoder: &mut Encoder<'_>, security: &Security) -> fmt::Result {
    let listeners = || {
        security
            .listeners()
            .map(|(name, tls)| (labels([("listener", name)]), tls))
    };
    let help = "Expiry of a listener's certificate, in seconds since 1970";
    let ends = listeners().map(|(labels, tls)| (labels, tls.valid_until().0 / 1000));
    encoder.family(Gauge, "tls_certificate_expires", help, ends)?;
    let help = "Connections closed before the TLS handshake completed";
    let failed = listeners().map(|(labels, tls)| (labels, tls.handshakes_failed()));
    encoder.family(Counter, "tls_handshakes_failed", help, failed)
}
