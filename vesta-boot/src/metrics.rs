//! Request and connection counters. The request path uses only preallocated atomics: no lock, no
//! allocation.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::time::Instant;
use vesta_intf::{ErrorKind, IdError};
use vesta_net::{Caller, Connections};

/// Upper bounds of the latency buckets, in microseconds; above the last one is `+Inf`.
pub(crate) const BOUNDS: [u64; 15] = [
    10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    1_000_000, 2_500_000,
];

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A response was sent.
    Ok,
    /// An error of this kind was sent.
    Error(ErrorKind),
    /// The caller went away before the response.
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
        [Outcome::Ok, Outcome::Cancelled]
            .into_iter()
            .chain(ErrorKind::all().map(Outcome::Error))
    }

    fn index(self) -> usize {
        Self::all().position(|it| it == self).unwrap_or_default()
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
pub(crate) struct Series {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Series {
    pub(crate) fn observe(&self, elapsed: Duration) {
        let micros = elapsed.as_micros();
        let bucket = BOUNDS.iter().position(|bound| micros <= u128::from(*bound));
        // Relaxed: each number is independent.
        self.buckets[bucket.unwrap_or(BOUNDS.len())].fetch_add(1, Relaxed);
        self.nanos.fetch_add(
            u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            Relaxed,
        );
    }

    pub(crate) fn read(&self) -> Latency {
        Latency {
            buckets: self.buckets.each_ref().map(|bucket| bucket.load(Relaxed)),
            sum: Duration::from_nanos(self.nanos.load(Relaxed)),
        }
    }
}

/// Snapshot of a [`Series`]: the count per bucket, and the total time.
#[derive(Debug)]
pub(crate) struct Latency {
    pub(crate) buckets: [u64; BOUNDS.len() + 1],
    pub(crate) sum: Duration,
}

impl Latency {
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Counters of a server: requests by method and outcome with their latency, IDs, connections.
#[derive(Default)]
pub struct Metrics {
    methods: &'static [&'static str],
    series: Vec<Vec<Series>>,
    /// IDs handed out: first to callers without a token, then per token.
    issued: Vec<Counter>,
    /// Changes that the pool server refused, in the same order.
    refused_changes: Vec<Counter>,
    /// Connections of the public listeners.
    pub connections: Arc<Connections>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("methods", &self.methods)
            .finish_non_exhaustive()
    }
}

impl Metrics {
    /// Counters at zero. `methods` are the values of the label `method`; calls name a method by its
    /// index.
    pub fn new(methods: &'static [&'static str]) -> Self {
        let series = || Outcome::all().map(|_| Series::default()).collect();
        let series = methods.iter().map(|_| series()).collect();
        Self {
            methods,
            series,
            issued: vec![Counter::default()],
            refused_changes: vec![Counter::default()],
            ..Self::default()
        }
    }

    /// Like [`new`](Self::new), for a server with this many tokens.
    #[must_use]
    pub fn of_tokens(mut self, tokens: usize) -> Self {
        for counters in [&mut self.issued, &mut self.refused_changes] {
            counters.resize_with(tokens + 1, Counter::default);
        }
        self
    }

    /// Counts IDs handed out to a caller.
    pub fn issue(&self, caller: Caller, count: u64) {
        let counter = self.issued.get(caller.0.map_or(0, |token| token + 1));
        debug_assert!(counter.is_some());
        if let Some(counter) = counter {
            counter.inc_by(count);
        }
    }

    /// IDs handed out so far, to each caller.
    pub fn issued(&self) -> impl Iterator<Item = (Caller, u64)> {
        let callers = std::iter::once(Caller(None)).chain((0..).map(|token| Caller(Some(token))));
        callers.zip(self.issued.iter().map(|counter| counter.get()))
    }

    /// Counts a change of a caller that the pool server refused.
    pub fn refuse_change(&self, caller: Caller) {
        if let Some(counter) = self
            .refused_changes
            .get(caller.0.map_or(0, |token| token + 1))
        {
            counter.inc();
        }
    }

    /// Changes that the pool server refused so far, of each caller.
    pub fn refused_changes(&self) -> impl Iterator<Item = (Caller, u64)> {
        let callers = std::iter::once(Caller(None)).chain((0..).map(|token| Caller(Some(token))));
        callers.zip(self.refused_changes.iter().map(|counter| counter.get()))
    }

    /// Starts timing a request.
    pub fn start(&self, method: usize) -> Call<'_> {
        debug_assert!(method < self.methods.len());
        Call {
            metrics: self,
            method,
            began: Instant::now(),
            outcome: Outcome::Cancelled,
        }
    }

    /// Records the duration of a request. An unknown method is not counted.
    pub fn observe(&self, method: usize, outcome: Outcome, elapsed: Duration) {
        if let Some(series) = self.series.get(method) {
            series[outcome.index()].observe(elapsed);
        }
    }

    /// Number of requests of a method with this outcome.
    pub fn requests(&self, method: usize, outcome: Outcome) -> u64 {
        self.series
            .get(method)
            .map_or(0, |series| series[outcome.index()].read().count())
    }

    /// Every method with every outcome.
    pub(crate) fn latencies(&self) -> impl Iterator<Item = (&str, &str, Latency)> {
        self.methods
            .iter()
            .zip(&self.series)
            .flat_map(|(method, outcomes)| {
                let outcomes = Outcome::all().zip(outcomes);
                outcomes.map(|(outcome, series)| (*method, outcome.label(), series.read()))
            })
    }
}

/// A request in flight. If dropped before [`done`](Call::done), it counts as cancelled.
#[derive(Debug)]
#[must_use = "dropped at once, it counts as cancelled"]
pub struct Call<'a> {
    metrics: &'a Metrics,
    method: usize,
    began: Instant,
    outcome: Outcome,
}

impl Call<'_> {
    /// Records the outcome of the request.
    pub fn done(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.metrics
            .observe(self.method, self.outcome, self.began.elapsed());
    }
}
