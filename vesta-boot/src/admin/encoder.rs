//! Writer of metric families at a scrape.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use serde_json::Value;

pub(super) type Labels = Vec<(&'static str, String)>;

/// Kind, name and help of a metric, and its field in a status, as a JSON pointer.
pub(super) type Figure = (Kind, &'static str, &'static str, &'static str);

/// Name and help of counters, and the fields of those that went well and of those that failed.
pub(super) type Outcomes = (&'static str, &'static str, [&'static str; 2]);

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
    /// Figures of statuses, where they have them.
    pub(super) fn figures(
        &mut self,
        prefix: &str,
        figures: &[Figure],
        statuses: &[(Labels, &Value)],
    ) -> fmt::Result {
        figures.iter().try_for_each(|(kind, name, help, field)| {
            let samples = statuses
                .iter()
                .map(|(labels, status)| (labels.clone(), status.pointer(field).and_then(number)));
            self.family(*kind, &format!("{prefix}{name}"), help, samples)
        })
    }

    /// A metric without labels.
    pub(super) fn one(&mut self, kind: Kind, name: &str, help: &str, value: u64) -> fmt::Result {
        self.family(kind, name, help, [(vec![], value)])
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

    /// Counters with the label `outcome`.
    pub(super) fn outcomes(
        &mut self,
        prefix: &str,
        (name, help, fields): &Outcomes,
        statuses: &[(Labels, &Value)],
    ) -> fmt::Result {
        let samples = statuses.iter().flat_map(|(labels, status)| {
            ["ok", "failed"].into_iter().zip(fields).map(|(outcome, field)| {
                (with(labels, "outcome", outcome), status.pointer(field).and_then(number))
            })
        });
        self.family(Kind::Counter, &format!("{prefix}{name}"), help, samples)
    }
}

/// A field as a number: 1 is true.
pub(super) fn number(field: &Value) -> Option<u64> {
    field.as_u64().or(field.as_bool().map(u64::from))
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
