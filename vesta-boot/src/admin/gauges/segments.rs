//! The state of segment mode as metrics.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use vesta_service::SegmentStatus;

use super::{Encoder, outcomes};
use crate::admin::View;
use crate::admin::segments::left;

#[derive(Debug)]
pub(in crate::admin) struct SegmentGauges(pub(in crate::admin) View);

/// Tags with series of their own. Those that come after them by name are added up under an empty
/// key, which no tag has.
const MOST: usize = 100;

type Of = fn(&SegmentStatus) -> u64;

/// What grows, and what is summed up for the tags without series of their own.
const COUNTERS: [(&str, &str, Of); 2] = [
    ("segment_taken", "Numbers of the tag that were given out", |tag| tag.taken_total),
    ("segment_lost", "Numbers taken for batches that failed", |tag| tag.lost_total),
];
const SUMS: [(&str, &str, Of); 3] = [
    ("segment_ready", "1 if numbers of the tag are expected", |tag| {
        u64::from(tag.not_ready_because.is_none())
    }),
    ("segment_left", "Numbers of the tag at hand", left),
    ("segment_rate", "Numbers of the tag given out a second", |tag| tag.rate),
];

impl Collector for SegmentGauges {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(segments) = self.0.segments() else { return Ok(()) };
        let mut encoder = Encoder(encoder);
        let ready = u64::from(segments.not_ready_because().is_none());
        encoder.number("segments_ready", "1 if the tags were read and are served", ready)?;
        if let Some(age) = segments.last_refresh_age() {
            let (help, unit) = ("Time since the tags were read", Some(&Unit::Seconds));
            let name = "segments_refresh_age";
            let metric = encoder.0.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            ConstGauge::new(age.as_secs_f64()).encode(metric)?;
        }
        tags(&mut encoder, &segments.status())
    }
}

fn tags(encoder: &mut Encoder<'_>, tags: &[SegmentStatus]) -> fmt::Result {
    let count = u64::try_from(tags.len()).unwrap_or(u64::MAX);
    encoder.number("segment_tags", "Tags in the table", count)?;
    let (shown, others) = tags.split_at(tags.len().min(MOST));
    let label = |key: &str| [("key", key.to_owned())];
    let sums = |of: Of| {
        let sum = others.iter().map(of).fold(0, u64::saturating_add);
        let rest = (!others.is_empty()).then(|| (label(""), sum));
        let own: Vec<_> = shown.iter().map(|tag| (label(&tag.key), of(tag))).collect();
        own.into_iter().chain(rest)
    };
    for (name, help, of) in COUNTERS {
        encoder.counters(name, help, sums(of))?;
    }
    for (name, help, of) in SUMS {
        encoder.numbers(name, help, sums(of))?;
    }
    // Nothing is said by the sum of steps.
    let steps = shown.iter().map(|tag| (label(&tag.key), tag.step));
    encoder.numbers("segment_step", "The step of the next fetch", steps)?;

    let both = sums(|tag| tag.fetches_ok).zip(sums(|tag| tag.fetches_failed));
    let fetches = both.flat_map(|(([key], ok), (_, failed))| {
        outcomes(ok, failed)
            .map(|(outcome, count)| ([key.clone(), ("outcome", outcome.to_owned())], count))
    });
    encoder.counters("segment_fetches", "Requests for ranges by outcome", fetches)
}
