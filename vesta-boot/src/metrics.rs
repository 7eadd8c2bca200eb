//! Request and connection counters. The request path touches atomics that exist from the start: no
//! lock, no allocation.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use tokio::time::Instant;
use vesta_intf::{ErrorKind, IdError};

use crate::Role;

/// Upper bounds of the latency buckets, in microseconds; above the last one there is `+Inf`.
const BOUNDS: [u64; 15] = [
    10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    1_000_000, 2_500_000,
];

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer.
    Ok,
    /// With an error of this kind.
    Error(ErrorKind),
    /// The caller went away before there was an answer.
    Cancelled,
}

impl<T> From<&Result<T, IdError>> for Outcome {
    fn from(result: &Result<T, IdError>) -> Self {
        match result {
            Ok(_) => Outcome::Ok,
            Err(error) => Outcome::Error(error.kind()),
        }
    }
}

impl Outcome {
    fn all() -> impl Iterator<Item = Outcome> {
        [Outcome::Ok, Outcome::Cancelled].into_iter().chain(ErrorKind::all().map(Outcome::Error))
    }

    fn index(self) -> usize {
        match self {
            Outcome::Ok => 0,
            Outcome::Cancelled => 1,
            Outcome::Error(_) => Self::all().position(|it| it == self).unwrap_or(1),
        }
    }

    fn label(self) -> &'static str {
        match self {
            Outcome::Ok => "OK",
            Outcome::Cancelled => "CANCELLED",
            Outcome::Error(kind) => kind.name(),
        }
    }
}

/// The requests of one method with one outcome.
#[derive(Default)]
struct Series {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Series {
    fn observe(&self, elapsed: Duration) {
        let micros = elapsed.as_micros();
        let bucket = BOUNDS.iter().position(|bound| micros <= u128::from(*bound));
        // Relaxed: each number stands alone.
        self.buckets[bucket.unwrap_or(BOUNDS.len())].fetch_add(1, Relaxed);
        self.nanos.fetch_add(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Relaxed)).sum()
    }
}

/// Counters of a server: requests by method and outcome with their latency, IDs, connections.
pub struct Metrics {
    role: Role,
    methods: &'static [&'static str],
    series: Vec<Vec<Series>>,
    issued: AtomicU64,
    connections: AtomicU64,
    connections_closed: AtomicU64,
    connections_refused: AtomicU64,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("methods", &self.methods).finish_non_exhaustive()
    }
}

impl Metrics {
    /// Counters at zero. `methods` are the values of the label `method`; calls name them by index.
    pub fn new(role: Role, methods: &'static [&'static str]) -> Self {
        let series = || Outcome::all().map(|_| Series::default()).collect();
        Self {
            role,
            methods,
            series: methods.iter().map(|_| series()).collect(),
            issued: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            connections_closed: AtomicU64::new(0),
            connections_refused: AtomicU64::new(0),
        }
    }

    /// A request begins.
    pub fn start(&self, method: usize) -> Call<'_> {
        debug_assert!(method < self.methods.len());
        Call { metrics: self, method, began: Instant::now(), outcome: Outcome::Cancelled }
    }

    /// A request took this long. An unknown method is not counted.
    pub fn observe(&self, method: usize, outcome: Outcome, elapsed: Duration) {
        if let Some(series) = self.series.get(method) {
            series[outcome.index()].observe(elapsed);
        }
    }

    /// So many requests of a method had this outcome so far.
    pub fn requests(&self, method: usize, outcome: Outcome) -> u64 {
        self.series.get(method).map_or(0, |series| series[outcome.index()].count())
    }

    /// IDs were handed out.
    pub fn issued(&self, ids: u64) {
        self.issued.fetch_add(ids, Relaxed);
    }

    /// A connection was accepted.
    pub fn connection_opened(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    /// An accepted connection ended.
    pub fn connection_closed(&self) {
        self.connections_closed.fetch_add(1, Relaxed);
    }

    /// A connection was turned away because there were too many.
    pub fn connection_refused(&self) {
        self.connections_refused.fetch_add(1, Relaxed);
    }
}

/// A request under way. Dropped before [`done`](Call::done), it counts as cancelled.
#[derive(Debug)]
#[must_use = "dropped at once, it counts as cancelled"]
pub struct Call<'a> {
    metrics: &'a Metrics,
    method: usize,
    began: Instant,
    outcome: Outcome,
}

impl Call<'_> {
    /// The request ended.
    pub fn done(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.metrics.observe(self.method, self.outcome, self.began.elapsed());
    }
}

/// Collector of the counters at a scrape.
#[derive(Debug)]
pub(crate) struct Requests(pub(crate) Arc<Metrics>);

impl Requests {
    /// Every series with something in it, and the good outcome of every method, so that rates are
    /// known from the start.
    fn series(&self) -> impl Iterator<Item = (Labels, &Series)> {
        let methods = self.0.methods.iter().zip(&self.0.series);
        methods.flat_map(|(method, outcomes)| {
            Outcome::all().zip(outcomes).filter_map(|(outcome, series)| {
                let labels =
                    vec![("method", (*method).to_owned()), ("outcome", outcome.label().to_owned())];
                let seen = outcome == Outcome::Ok || series.count() > 0;
                seen.then_some((labels, series))
            })
        })
    }
}

impl Collector for Requests {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let metrics = &self.0;
        let mut encoder = Encoder(encoder);
        let counts = self.series().map(|(labels, series)| (labels, series.count()));
        encoder.family(Kind::Counter, "requests", "Requests by method and outcome", counts)?;

        let help = "Time from the decoded request to its answer";
        let unit = Some(&Unit::Seconds);
        let of_type = MetricType::Histogram;
        let mut family = encoder.0.encode_descriptor("request_duration", help, unit, of_type)?;
        for (labels, series) in self.series() {
            encode_latency(family.encode_family(&labels)?, series)?;
        }

        let opened = metrics.connections.load(Relaxed);
        let open = opened.saturating_sub(metrics.connections_closed.load(Relaxed));
        let refused = metrics.connections_refused.load(Relaxed);
        let issued = metrics.issued.load(Relaxed);
        encoder.one(Kind::Counter, "ids_issued", "IDs handed out", issued)?;
        encoder.one(Kind::Counter, "connections", "Connections accepted", opened)?;
        let help = "Connections turned away at the limit";
        encoder.one(Kind::Counter, "connections_refused", help, refused)?;
        encoder.one(Kind::Gauge, "open_connections", "Connections open now", open)?;
        let labels = [("program", metrics.role.name()), ("version", env!("CARGO_PKG_VERSION"))];
        let labels = labels.map(|(name, value)| (name, value.to_owned())).to_vec();
        encoder.family(Kind::Gauge, "build_info", "The program and its version", [(labels, 1)])
    }
}

#[allow(clippy::cast_precision_loss, reason = "seconds for a dashboard")]
fn encode_latency(mut encoder: MetricEncoder<'_>, series: &Series) -> fmt::Result {
    let bounds = BOUNDS.iter().map(|micros| *micros as f64 / 1e6).chain([f64::INFINITY]);
    let counts = series.buckets.iter().map(|bucket| bucket.load(Relaxed));
    let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
    let count = buckets.iter().map(|bucket| bucket.1).sum();
    let seconds = Duration::from_nanos(series.nanos.load(Relaxed)).as_secs_f64();
    encoder.encode_histogram::<[(&str, &str); 0]>(seconds, count, &buckets, None)
}

/// Writes families of metrics at a scrape.
pub(crate) struct Encoder<'a>(pub(crate) DescriptorEncoder<'a>);

pub(crate) type Labels = Vec<(&'static str, String)>;

/// Type of a metric.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    /// A gauge in seconds, of values in milliseconds.
    Seconds,
}

impl Kind {
    fn encode(self, value: u64, metric: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Kind::Counter => ConstCounter::new(value).encode(metric),
            Kind::Gauge => ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(metric),
            Kind::Seconds => {
                ConstGauge::new(Duration::from_millis(value).as_secs_f64()).encode(metric)
            }
        }
    }
}

impl Encoder<'_> {
    /// One metric without labels, if it has a value.
    pub(crate) fn one(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        value: impl Into<Option<u64>>,
    ) -> fmt::Result {
        self.family(kind, name, help, [(vec![], value)])
    }

    /// A family of metrics: those that have a value.
    pub(crate) fn family(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, impl Into<Option<u64>>)>,
    ) -> fmt::Result {
        let known = samples.into_iter().filter_map(|(labels, value)| Some((labels, value.into()?)));
        let mut known = known.peekable();
        if known.peek().is_none() {
            return Ok(());
        }
        let (unit, of_type) = match kind {
            Kind::Counter => (None, MetricType::Counter),
            Kind::Gauge => (None, MetricType::Gauge),
            Kind::Seconds => (Some(&Unit::Seconds), MetricType::Gauge),
        };
        let mut family = self.0.encode_descriptor(name, help, unit, of_type)?;
        for (labels, value) in known {
            if labels.is_empty() {
                return kind.encode(value, family);
            }
            kind.encode(value, family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// Counters with the label `outcome`: those that went well, and those that failed.
    pub(crate) fn outcomes(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, u64, u64)>,
    ) -> fmt::Result {
        let samples = samples.into_iter().flat_map(|(labels, ok, failed)| {
            [("ok", ok), ("failed", failed)].map(|(outcome, count)| {
                ([&labels[..], &[("outcome", outcome.to_owned())]].concat(), count)
            })
        });
        self.family(Kind::Counter, name, help, samples)
    }
}
