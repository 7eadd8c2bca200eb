//! Guesses the layout of an ID from its bits.

use std::ops::RangeInclusive;

use vesta_intf::inside::civil_from_days;
use vesta_intf::{Field, Id, IdMeta, UnixMillis};

use crate::layouts;
use crate::layouts::known::{Known, Spread, known};

/// Result of a guess.
#[derive(Debug, Clone, PartialEq)]
pub struct Guesses {
    /// The layouts that fit, the likeliest first.
    pub candidates: Vec<Guess>,
    /// Probability that another system made the ID. Together with those of the candidates it adds up to 1.
    pub other: f64,
}

impl Guesses {
    /// The likeliest layout; `None` if even that is unlikely: its probability is below 5 %.
    pub fn likeliest(&self) -> Option<&Guess> {
        let first = self.candidates.first();
        first.filter(|it| it.probability >= LIKELY)
    }
}

/// A layout that an ID may have.
#[derive(Debug, Clone, PartialEq)]
pub struct Guess {
    /// The layout.
    pub layout: IdMeta,
    /// Its probability, 0 to 1.
    pub probability: f64,
    /// The fields of the ID in this layout.
    pub id: Id,
    /// The moment at which the ID was made, by its time field.
    pub moment: UnixMillis,
}

/// Below this probability a guess says more about the list of layouts than about the ID.
const LIKELY: f64 = 0.05;

/// Milliseconds of a day.
const DAY: u64 = 86_400_000;

/// Milliseconds of a year.
const YEAR: f64 = 31_557_600_000.0;

/// Mean age of an ID to be guessed, in milliseconds.
const AGE: f64 = 6.0 * YEAR;

/// Clocks of generators may be ahead by up to this much, in milliseconds.
const AHEAD: u64 = DAY;

/// Weight of another system with the bits of a layout, relative to that of the layout itself for an ID made now.
/// Such a system has another epoch, so its weight is the same for every time. Hence, from the bits alone, no
/// layout gets more than `1 / (1 + TWIN)`, 60 %.
const TWIN: f64 = 2.0 / 3.0;

/// Weight of numbers of any kind, relative to the priors of the layouts.
const ANY_NUMBER: f64 = 20.0;

/// Guesses the layouts that an ID may have, and the probability that it has none of them.
///
/// A guess is not a proof: from the bits alone no layout gets more than 60 %. `made` is the day or month in
/// which the ID was made. It rules out layouts that yield another time, and makes it unlikely that a layout
/// yields this time by chance.
///
/// The score of a layout is its prior, times the probabilities of this time (younger IDs are
/// likelier), this machine and this sequence number. Other systems get the score of the layout that
/// fits best regardless of the time, plus a share for numbers of any size.
///
/// ```
/// use vesta_explain::guess;
/// use vesta_intf::UnixMillis;
///
/// let now = UnixMillis(1_795_305_600_000); // 2026-11-22
/// let found = guess(2_407_837_855_670_862_845, now, None);
/// assert_eq!(found.candidates[0].layout.name(), "max-peak");
/// assert!(found.other > 0.4);
/// ```
pub fn guess(raw: u64, now: UnixMillis, made: Option<RangeInclusive<UnixMillis>>) -> Guesses {
    let latest = now.0.saturating_add(AHEAD);
    let mut twin = 0f64;
    let mut candidates = Vec::new();
    for (layout, known) in layouts::all().filter_map(|it| known(&it).map(|of| (it, of))) {
        let Some(id) = layout.unpack(raw).ok().filter(|id| is_usual(&layout, id)) else {
            continue;
        };
        let score = score(&layout, known, &id);
        let Ok(moment) = layout.moment_of(id.time) else {
            continue;
        };
        // A system that begins in 1970 or later may have made it.
        if moment.0 - layout.spec().epoch.0 <= latest {
            twin = twin.max(TWIN * score);
        }
        let in_time = civil_from_days(moment.0 / DAY).0 >= known.1 && moment.0 <= latest;
        if in_time && made.as_ref().is_none_or(|made| made.contains(&moment)) {
            let probability = score * youth(moment, now);
            candidates.push(Guess {
                layout,
                probability,
                id,
                moment,
            });
        }
    }
    let mut other = twin + ANY_NUMBER / (float(raw) + 1.0) / 2f64.powi(64).ln();
    if let Some(made) = made {
        // Probability that an ID of any system is from this time.
        let length = made
            .end()
            .0
            .saturating_sub(made.start().0)
            .saturating_add(1);
        other *= (float(length) / AGE * youth(*made.end(), now)).min(1.0);
    }
    let sum = other + candidates.iter().map(|it| it.probability).sum::<f64>();
    candidates.iter_mut().for_each(|it| it.probability /= sum);
    candidates.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    Guesses {
        candidates,
        other: other / sum,
    }
}

#[allow(clippy::cast_precision_loss, reason = "probabilities need few digits")]
const fn float(number: u64) -> f64 {
    number as f64
}

/// True if the fields that hardly vary have their usual values: the type is that of the layout, and the
/// version bit is used by Vesta only.
fn is_usual(layout: &IdMeta, id: &Id) -> bool {
    match layout.bits(Field::Type) {
        0 => id.version == 0,
        _ => id.id_type == layout.id_type(),
    }
}

/// Relative frequency of IDs of this age, compared with those made now.
fn youth(moment: UnixMillis, now: UnixMillis) -> f64 {
    (-float(now.0.saturating_sub(moment.0)) / AGE).exp()
}

/// The probability that an ID has this layout and these fields, if it was made now.
fn score(layout: &IdMeta, known: &Known, id: &Id) -> f64 {
    let tick = float(layout.spec().unit.micros()) / 1000.0 / AGE;
    let mass = |field, spread| mass(id.get(field), layout.bits(field), spread);
    let upper = mass(Field::GenMethod, Spread::Any);
    let &(_, _, prior, [machine, seq], _) = known;
    prior * tick * upper * mass(Field::Machine, machine) * mass(Field::Seq, seq)
}

/// The probability of a value of a field. Whatever the spread, one value in five is assumed to be arbitrary.
fn mass(value: u64, bits: u8, spread: Spread) -> f64 {
    let values = f64::from(bits).exp2();
    let place = float(value) + 1.0;
    let usual = match spread {
        _ if bits == 0 => 1.0,
        Spread::Few => 6.0 / (std::f64::consts::PI * place).powi(2),
        Spread::Log => 1.0 / (place * (values + 1.0).ln()),
        Spread::Any => 1.0 / values,
    };
    0.8 * usual + 0.2 / values
}
