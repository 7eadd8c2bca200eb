//! Tables of medians.

use std::fmt::Write;

use serde::Serialize;

use super::Bar;
use crate::stats::Spread;

/// A table with its bars: the result of a part.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) title: &'static str,
    /// A sentence about it.
    pub(crate) about: String,
    pub(crate) headings: Vec<&'static str>,
    pub(crate) rows: Vec<Row>,
    #[serde(skip)]
    pub(crate) bars: Vec<Bar>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// The first cells.
    pub(crate) labels: Vec<String>,
    pub(crate) cells: Vec<Cell>,
}

/// The values of all rounds, and the decimals to show.
#[derive(Debug, Serialize)]
pub(crate) struct Cell(pub(crate) Vec<f64>, pub(crate) usize);

impl Table {
    pub(super) fn write(&self, out: &mut String) -> std::fmt::Result {
        head(out, self.title, self.headings.iter().copied())?;
        for Row { labels, cells } in &self.rows {
            write!(out, "| {} |", labels.join(" | "))?;
            for Cell(values, decimals) in cells {
                write!(
                    out,
                    " {} |",
                    Spread::of(values.iter().copied()).show(*decimals)
                )?;
            }
            writeln!(out)?;
        }
        writeln!(out, "\n{}", self.about)
    }
}

/// The title and the first two lines of a table.
pub(super) fn head<'a>(
    out: &mut String,
    title: &str,
    headings: impl IntoIterator<Item = &'a str>,
) -> std::fmt::Result {
    let headings: Vec<_> = headings.into_iter().collect();
    writeln!(out, "\n## {title}\n\n| {} |", headings.join(" | "))?;
    writeln!(out, "|{}", "---|".repeat(headings.len()))
}
