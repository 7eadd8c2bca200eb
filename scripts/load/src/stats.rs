//! Rounds as three numbers.

use serde::Serialize;

/// The smallest, the middle and the largest of some values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of no values: not a number, which meets no bar.
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
        Self { min: at(0), median, max: at(values.len().wrapping_sub(1)) }
    }

    /// How `these` compare with `those`: the ratio of the medians, and the range of the ratios of
    /// rounds that ran one after the other.
    pub(crate) fn ratio(these: &[f64], those: &[f64]) -> Self {
        let pairs = Self::of(these.iter().zip(those).map(|(this, that)| this / that));
        let median =
            Self::of(these.iter().copied()).median / Self::of(those.iter().copied()).median;
        Self { median, ..pairs }
    }

    /// `median (min–max)`, with thousands separated and so many decimals.
    pub(crate) fn show(&self, decimals: usize) -> String {
        let Self { min, median, max } = *self;
        let number = |value| grouped(value, decimals);
        format!("{} ({}–{})", number(median), number(min), number(max))
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
    fn the_middle_is_in_the_middle() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { min: 1.0, median: 2.0, max: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]), Spread { min: 1.0, median: 2.5, max: 4.0 });
        assert_eq!(Spread::of([7.0]), Spread { min: 7.0, median: 7.0, max: 7.0 });
        assert!(Spread::of([]).median.is_nan());
    }

    #[test]
    fn a_ratio_compares_medians_and_ranges_over_pairs() {
        let ratio = Spread::ratio(&[10.0, 20.0, 30.0], &[10.0, 40.0, 20.0]);
        assert_eq!(ratio, Spread { min: 0.5, median: 1.0, max: 1.5 });
    }

    #[test]
    fn numbers_are_grouped_in_threes() {
        assert_eq!(grouped(1_048_576.4, 0), "1,048,576");
        assert_eq!(grouped(12_345.678, 1), "12,345.7");
        assert_eq!(grouped(1234.0, 0), "1234");
        assert_eq!(grouped(0.957, 2), "0.96");
    }
}
