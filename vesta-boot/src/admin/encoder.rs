//! Writer of metric families at a scrape.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

pub(super) type Labels = Vec<(&'static str, String)>;

/// Kind, name and help of a metric, and its value.
pub(super) type Figure<V> = (Kind, &'static str, &'static str, V);

/// Type of a metric.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
    /// A gauge in seconds, of values in milliseconds.
    Seconds,
}

pub(super) struct Encoder<'a>(pub(super) DescriptorEncoder<'a>);

impl Encoder<'_> {
    /// Metrics without labels.
    pub(super) fn figures<const N: usize>(&mut self, figures: [Figure<u64>; N]) -> fmt::Result {
        figures.into_iter().try_for_each(|(kind, name, help, value)| {
            self.family(kind, name, help, [(vec![], value)])
        })
    }

    /// A family of metrics: those that have a value.
    pub(super) fn family(
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
    pub(super) fn outcomes(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, u64, u64)>,
    ) -> fmt::Result {
        let samples = samples.into_iter().flat_map(|(labels, ok, failed)| {
            [("ok", ok), ("failed", failed)]
                .map(|(outcome, count)| (with(&labels, "outcome", outcome), count))
        });
        self.family(Kind::Counter, name, help, samples)
    }
}

/// These labels and another one.
pub(super) fn with(labels: &Labels, name: &'static str, value: &str) -> Labels {
    [&labels[..], &[(name, value.to_owned())]].concat()
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
