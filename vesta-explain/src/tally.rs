//! Properties of a whole column of IDs: rounded by a program, or each with a check digit.

use std::collections::BTreeSet;

use vesta_intf::{Field, IdFormat, IdMeta};

use crate::rounded::{in_javascript, is_double};

/// From here on a double loses at least four bits.
const WIDE: u64 = 1 << 56;

/// Digits that spreadsheets keep.
const KEPT: u32 = 15;

/// Evidence that lost bits of sequences are not 0 by chance, in bits.
const ENOUGH: u32 = 9;

/// Distinct sequences that are worth keeping.
const DISTINCT: usize = 16;

/// IDs that look rounded, by the way of rounding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Looking {
    /// IDs from which this way would take digits.
    of: u64,
    /// Those of them that look rounded.
    looking: u64,
    /// Those of these that would not look so by their lowest bits alone.
    rounded: u64,
    /// Of the latter, those whose last digit, without zeros, is odd.
    odd: u64,
}

impl Looking {
    fn add(&mut self, id: u64, looks_rounded: bool, is_rounded: bool) {
        self.of += 1;
        self.looking += u64::from(looks_rounded);
        self.rounded += u64::from(is_rounded);
        let mut digits = id;
        while is_rounded && digits.is_multiple_of(10) {
            digits /= 10;
        }
        self.odd += u64::from(is_rounded && digits % 2 == 1);
    }

    /// True if these are more than true IDs show: a quarter, and 2 / √n for the luck of n rows.
    ///
    /// At most one in eight of such IDs prints unchanged in JavaScript without being a double, at most one in five has 15
    /// digits and zeros, whichever of their lowest bits are always 0; at most one in sixteen is a double, if these bits
    /// are not always 0. By Hoeffding's bound chance reaches beyond this in one of 3,000 columns, of any length.
    fn is_too_often(&self) -> bool {
        let (rounded, of) = (self.rounded.saturating_mul(4), self.of);
        let above = rounded.saturating_sub(of);
        u128::from(above).pow(2) > 64 * u128::from(of)
    }

    /// True if their last digits are both odd and even. IDs made at a fixed time of each hour may all be multiples of 100,
    /// but then their lowest bits are the same.
    fn is_mixed(&self) -> bool {
        (self.rounded..=7 * self.rounded).contains(&(8 * self.odd))
    }
}

/// Counts the IDs of a column.
///
/// ```
/// use vesta_explain::Tally;
/// use vesta_intf::IdMeta;
///
/// let mut tally = Tally::default();
/// for id in (0..100).map(|n| 1_785_223_470_585_920_000 + n * 70_000) {
///     tally.add(id, &IdMeta::SNOWFLAKE);
/// }
/// let rounding = tally.rounding(false).expect("100 IDs of 15 digits");
/// assert_eq!((rounding.by, rounding.count), ("Excel", 100));
/// ```
#[derive(Debug, Clone)]
pub struct Tally {
    rows: u64,
    excel: Looking,
    javascript: Looking,
    double: Looking,
    /// Sequences of which a double would have kept the upper bits only, and how many bits it would have lost.
    halves: BTreeSet<(u64, u32)>,
    /// Formats with check digits that all rows fit.
    checked: Vec<IdFormat>,
}

/// Rounding of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnRounding {
    /// The program: `JavaScript`, `Excel`, or one that keeps numbers as doubles.
    pub by: &'static str,
    /// IDs that look rounded.
    pub count: u64,
    /// False if IDs with the same lowest bits would look alike, as those of machine 0 do in some layouts.
    pub is_sure: bool,
}

impl Default for Tally {
    fn default() -> Self {
        let checked = IdFormat::ALL.into_iter().filter(|format| {
            format
                .check()
                .is_some_and(|(_, body)| body == IdFormat::Decimal)
        });
        Self {
            rows: 0,
            excel: Looking::default(),
            javascript: Looking::default(),
            double: Looking::default(),
            halves: BTreeSet::new(),
            checked: checked.collect(),
        }
    }
}

impl Tally {
    /// Counts an ID of this layout.
    pub fn add(&mut self, id: u64, layout: &IdMeta) {
        self.check(id);
        let zeros = id.checked_ilog10().unwrap_or(0).saturating_sub(KEPT - 1);
        if zeros > 0 {
            let is_cut = id.is_multiple_of(10u64.pow(zeros));
            self.excel.add(id, is_cut, is_cut);
        }
        if id < WIDE {
            return;
        }
        let is_double = is_double(id);
        // JavaScript prints at most 17 digits, below 2^57 at most 16.
        let is_unchanged = id.is_multiple_of(10) && in_javascript(id) == id.to_string();
        self.javascript
            .add(id, is_unchanged, is_unchanged && !is_double);
        self.double.add(id, is_double, is_double);
        if is_double && self.halves.len() < DISTINCT {
            self.halves.extend(half(id, layout));
        }
    }

    /// Counts an ID of any layout, for its check digits alone.
    pub fn check(&mut self, id: u64) {
        self.rows += 1;
        let is_checked = |format: &IdFormat| {
            let digits = format.check().map_or(0, |(check, _)| check.count());
            let number = (0..digits).fold(id, |number, _| number / 10);
            format.format(number).as_str() == IdFormat::Decimal.format(id).as_str()
        };
        self.checked.retain(is_checked);
    }

    /// The way in which the column looks rounded, if it does. `has_repeated`: some of its IDs occur more than once.
    pub fn rounding(&self, has_repeated: bool) -> Option<ColumnRounding> {
        let Self {
            excel,
            javascript,
            double,
            ..
        } = self;
        let evidence: u32 = self.halves.iter().map(|(_, lost)| lost).sum();
        let is_sure = evidence >= ENOUGH;
        let found = |by, looking: &Looking, is_sure| ColumnRounding {
            by,
            count: looking.looking,
            is_sure,
        };
        let shows = |looking: &Looking| looking.is_too_often() && looking.is_mixed();
        if shows(excel) {
            return Some(found("Excel", excel, true));
        }
        if shows(javascript) {
            return Some(found("JavaScript", javascript, true));
        }
        let by = "a program that keeps numbers as doubles";
        (double.is_too_often() && (is_sure || has_repeated)).then(|| found(by, double, is_sure))
    }

    /// The format with check digits that each of the rows fits; of fewer than four rows, chance is too likely.
    pub fn checked(&self) -> Option<IdFormat> {
        self.checked.first().copied().filter(|_| self.rows >= 4)
    }
}

/// The sequence of an ID if a double would cut it in two and it is not 0, and how many of its bits would be lost.
/// True sequences have other values, too; machine IDs may be multiples by choice.
fn half(id: u64, layout: &IdMeta) -> Option<(u64, u32)> {
    let lost = (u64::BITS - id.leading_zeros()).saturating_sub(53);
    let (at, bits): (u32, u32) = (
        layout.shift(Field::Seq).into(),
        layout.bits(Field::Seq).into(),
    );
    let value = id >> at & layout.max(Field::Seq);
    let is_cut = at < lost && lost < at + bits;
    (is_cut && value > 0).then(|| (value, lost - at))
}
