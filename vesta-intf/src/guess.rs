//! Guessing the layout of an ID from its bits.

use std::ops::RangeInclusive;

use crate::{Field, Id, IdMeta, UnixMillis};

/// A layout that an ID may have.
#[derive(Debug, Clone, PartialEq)]
pub struct Guess {
    /// The layout.
    pub layout: IdMeta,
    /// The probability among all layouts that have a name, 0 to 1.
    pub probability: f64,
    /// The fields of the ID in it.
    pub id: Id,
    /// The moment at which it was made, by its time field.
    pub moment: UnixMillis,
}

/// Milliseconds of a year.
const YEAR: f64 = 31_557_600_000.0;

/// Mean age of an ID that somebody asks about, in years.
const AGE: f64 = 4.0;

/// Clocks of those who made an ID may be this far ahead, in milliseconds.
const AHEAD: u64 = 86_400_000;

/// The layouts that an ID may have, the likeliest first; none if nothing fits. Probabilities add up to 1.
///
/// A guess is no proof: from the bits alone the right layout comes first in about seven of ten cases. With
/// `made`, the month in which it was made, it nearly always does; layouts that say another time are then
/// left out.
///
/// The score of a layout is its prior, times the probability of this time (IDs that somebody asks about are
/// rather young than old), of this machine and this sequence number (small ones are common).
///
/// ```
/// use vesta_intf::{UnixMillis, guess};
///
/// let now = UnixMillis(1_795_305_600_000); // 2026-11-22
/// let found = guess(2_407_837_855_670_862_845, now, None);
/// assert_eq!(found[0].layout.name(), "max-peak");
/// ```
pub fn guess(raw: u64, now: UnixMillis, made: Option<RangeInclusive<UnixMillis>>) -> Vec<Guess> {
    let candidates = IdMeta::all_known().filter_map(|layout| {
        let id = layout.unpack(raw).ok()?;
        let moment = layout.moment_of(id.time).ok()?;
        let (first_year, prior) = layout.prior()?;
        let other_type = layout.bits(Field::Type) > 0 && id.id_type != layout.id_type();
        // A version bit is in use by Vesta alone.
        let negative = id.version > 0 && layout.bits(Field::Type) == 0;
        let in_time = year(moment) >= first_year && moment.0 <= now.0.saturating_add(AHEAD);
        let in_time = in_time && made.as_ref().is_none_or(|made| made.contains(&moment));
        (!other_type && !negative && in_time).then(|| {
            let score = score(&layout, &id, now.0.saturating_sub(moment.0)) + prior.ln();
            Guess { layout, probability: score, id, moment }
        })
    });
    let mut found: Vec<_> = candidates.collect();
    found.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let best = found.first().map_or(0.0, |first| first.probability);
    for guess in &mut found {
        guess.probability = (guess.probability - best).exp();
    }
    let sum: f64 = found.iter().map(|guess| guess.probability).sum();
    for guess in &mut found {
        guess.probability /= sum;
    }
    found
}

fn year(moment: UnixMillis) -> u64 {
    moment.to_string().split('-').next().and_then(|year| year.parse().ok()).unwrap_or(0)
}

/// The logarithm of the probability that an ID of a layout has these fields.
#[allow(clippy::cast_precision_loss, reason = "probabilities need few digits")]
fn score(layout: &IdMeta, id: &Id, age: u64) -> f64 {
    let tick = layout.spec().unit.micros() as f64 / 1000.0 / YEAR / AGE;
    let mut score = tick.ln() - age as f64 / YEAR / AGE;
    // Log-uniform to this part, else uniform.
    let mass = |value: u64, field: Field, log: f64| {
        let values = f64::from(layout.bits(field)).exp2();
        (log / ((value as f64 + 1.0) * (values + 1.0).ln()) + (1.0 - log) / values).ln()
    };
    if layout.bits(Field::Machine) > 0 {
        score += mass(id.machine, Field::Machine, 0.5);
    }
    if layout.bits(Field::Seq) > 0 {
        let hashed = layout.name() == "mastodon";
        score += mass(id.seq, Field::Seq, if hashed { 0.0 } else { 0.8 });
    }
    if layout.bits(Field::GenMethod) > 0 {
        score -= 4f64.ln();
    }
    score
}
