//! Metric families in the text of a scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::iter;
use std::time::Duration;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use crate::metrics::{BOUNDS, Latency};
use Kind::{Counter, Gauge, Seconds};

/// Type of a metric.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
    /// A gauge in seconds; its values are milliseconds.
    Seconds,
}

/// Kind, name and help of a metric, and the getter of its value; `known` precedes a getter that returns an
/// `Option`.
pub(super) type Figure<T> = (Kind, &'static str, &'static str, fn(&T) -> Option<u64>);

/// Names and values.
pub(super) type Labels = Vec<(&'static str, String)>;

type NoLabels = [(&'static str, &'static str); 0];

/// Labels of one series.
pub(super) fn labels<const N: usize>(labels: [(&'static str, &str); N]) -> Labels {
    labels.map(|(name, value)| (name, value.to_owned())).into()
}

/// These labels plus another one.
pub(super) fn with(labels: &Labels, name: &'static str, value: &str) -> Labels {
    [&labels[..], &[(name, value.to_owned())]].concat()
}

/// Encoder of metric families.
#[derive(Debug)]
pub(super) struct Encoder<'a>(pub(super) DescriptorEncoder<'a>);

impl Encoder<'_> {
    /// Figures of statuses; missing values are left out.
    pub(super) fn figures<T>(
        &mut self,
        prefix: &str,
        figures: &[Figure<T>],
        statuses: &[(Labels, &T)],
    ) -> fmt::Result {
        figures.iter().try_for_each(|(kind, name, help, value)| {
            let samples = statuses
                .iter()
                .map(|(labels, status)| (labels.clone(), value(status)));
            self.family(*kind, &format!("{prefix}{name}"), help, samples)
        })
    }

    /// A counter with the outcomes ok and failed.
    pub(super) fn outcomes<T>(
        &mut self,
        name: &str,
        help: &str,
        statuses: &[(Labels, &T)],
        of: fn(&T) -> (u64, u64),
    ) -> fmt::Result {
        let samples = statuses.iter().flat_map(|(labels, status)| {
            let (ok, failed) = of(status);
            [("ok", ok), ("failed", failed)]
                .map(|(outcome, count)| (with(labels, "outcome", outcome), count))
        });
        self.family(Counter, name, help, samples)
    }

    /// A histogram of durations, with buckets up to these [`BOUNDS`].
    pub(super) fn durations(
        &mut self,
        name: &str,
        help: &str,
        bounds: &[u64],
        all: &[(Labels, Latency)],
    ) -> fmt::Result {
        if all.is_empty() {
            return Ok(());
        }
        let of_type = MetricType::Histogram;
        let mut family = self
            .0
            .encode_descriptor(name, help, Some(&Unit::Seconds), of_type)?;
        let seconds = |micros: u64| Duration::from_micros(micros).as_secs_f64();
        all.iter().try_for_each(|(labels, latency)| {
            let (sum, count) = (latency.sum.as_secs_f64(), latency.count());
            let mut counts = BOUNDS
                .into_iter()
                .chain([u64::MAX])
                .zip(latency.buckets)
                .peekable();
            let buckets = bounds.iter().copied().chain([u64::MAX]).map(|bound| {
                let below = iter::from_fn(|| counts.next_if(|(at_most, _)| *at_most <= bound));
                let upper = if bound == u64::MAX {
                    f64::INFINITY
                } else {
                    seconds(bound)
                };
                (upper, below.map(|(_, count)| count).sum())
            });
            let buckets: Vec<_> = buckets.collect();
            family
                .encode_family(labels)?
                .encode_histogram::<NoLabels>(sum, count, &buckets, None)
        })
    }

    /// A metric family of all present values. Values with the same labels are added up.
    pub(super) fn family(
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
        values
            .iter()
            .try_for_each(|(labels, value)| match labels[..] {
                [] => encode(&mut family, value),
                _ => encode(&mut family.encode_family(labels)?, value),
            })
    }
}
