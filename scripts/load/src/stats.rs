//! Statistics of rounds: each set of values as three numbers.

use serde::Serialize;

/// The smallest, the median and the largest of some values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Without values: not a number, which meets no bar.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |i: usize| values.get(i).copied().unwrap_or(f64::NAN);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            (at(middle.wrapping_sub(1)) + at(middle)) / 2.0
        } else {
            at(middle)
        };
        Self {
            min: at(0),
            median,
            max: at(values.len().wrapping_sub(1)),
        }
    }

    /// Compares `these` with `those` by the ratios of adjacent rounds, which are equally affected when
    /// the machine changes speed.
    pub(crate) fn of_ratios(pairs: &[(f64, f64)]) -> Self {
        Self::of(ratios(pairs))
    }

    /// `median (min–max)`, with thousands separators and this many decimals.
    pub(crate) fn show(&self, decimals: usize) -> String {
        let Self { min, median, max } = *self;
        let number = |value| grouped(value, decimals);
        format!("{} ({}–{})", number(median), number(min), number(max))
    }
}

pub(crate) fn ratios(pairs: &[(f64, f64)]) -> impl Iterator<Item = f64> {
    pairs.iter().map(|(this, that)| this / that)
}

/// Interval of the true median at a confidence of 95 % (94 % for 5 values): between two of the
/// values, whatever their distribution. `None` for fewer than 5 values.
pub(crate) fn interval_of_median(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n < 5 {
        return None;
    }
    // Each value is below the true median with the probability of a coin toss. How many values may
    // be cut off at each end before the rest misses the median in 5 % of all cases?
    let mut chance = 0.5_f64.powi(i32::try_from(n).ok()?);
    let (mut missed, mut cut) = (chance, 0);
    loop {
        chance *= (n - cut) as f64 / (cut + 1) as f64;
        missed += chance;
        if missed > 0.025 {
            return Some((values[cut], values[n - 1 - cut]));
        }
        cut += 1;
    }
}

fn grouped(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    let (whole, fraction) = match plain.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (plain.as_str(), None),
    };
    let mut text = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) && whole.len() > 4 {
            text.push(',');
        }
        text.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{text}.{fraction}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(
            Spread::of([3.0, 1.0, 2.0]),
            Spread {
                min: 1.0,
                median: 2.0,
                max: 3.0
            }
        );
        assert_eq!(
            Spread::of([4.0, 1.0, 2.0, 3.0]),
            Spread {
                min: 1.0,
                median: 2.5,
                max: 4.0
            }
        );
        assert_eq!(
            Spread::of([7.0]),
            Spread {
                min: 7.0,
                median: 7.0,
                max: 7.0
            }
        );
        assert!(Spread::of([]).median.is_nan());
    }

    #[test]
    fn a_ratio_compares_adjacent_rounds() {
        let ratio = Spread::of_ratios(&[(10.0, 10.0), (20.0, 40.0), (30.0, 20.0)]);
        assert_eq!(
            ratio,
            Spread {
                min: 0.5,
                median: 1.0,
                max: 1.5
            }
        );
    }

    #[test]
    fn the_interval_is_that_of_the_sign_test() {
        let interval = |n: u32| interval_of_median((1..=n).map(f64::from));
        assert_eq!(interval(4), None);
        // Values from tables of the sign test.
        for (n, from, to) in [(5, 1.0, 5.0), (6, 1.0, 6.0), (9, 2.0, 8.0), (21, 6.0, 16.0)] {
            assert_eq!(interval(n), Some((from, to)), "{n}");
        }
    }

    #[test]
    fn numbers_are_grouped_in_threes() {
        assert_eq!(grouped(1_048_576.4, 0), "1,048,576");
        assert_eq!(grouped(12_345.678, 1), "12,345.7");
        assert_eq!(grouped(1234.0, 0), "1234");
        assert_eq!(grouped(0.957, 2), "0.96");
    }
}
