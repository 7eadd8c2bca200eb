//! Output: text for people, JSON and CSV for programs.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use clap::ValueEnum;
use serde_json::Value;
use vesta_boot::Error;
use vesta_intf::plain;

use crate::{Answer, Done};

/// Format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Text,
    /// One JSON value a line; IDs are strings
    Json,
    /// Comma-separated, with a line of names
    Csv,
}

impl Output {
    /// Prints what is for this format, and answers.
    pub(crate) fn answer(self, is_yes: bool, text: &str, json: &Value, csv: &str) -> Done {
        match self {
            Output::Text => print(text)?,
            Output::Json => print(&format!("{}\n", plain(&json.to_string())))?,
            Output::Csv => print(csv)?,
        };
        Ok(if is_yes { Answer::Yes } else { Answer::No })
    }
}

/// Rows with named columns; the first row are the names.
#[derive(Debug)]
pub(crate) struct Table(Vec<Vec<String>>);

impl Table {
    pub(crate) fn new<const N: usize>(names: [&str; N]) -> Self {
        Self(vec![names.map(str::to_owned).into()])
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.0[0].len());
        self.0.push(cells.into());
    }

    /// The table in a format; as text in columns as wide as their contents.
    pub(crate) fn render(&self, output: Output) -> String {
        let rows = self.0.iter();
        match output {
            Output::Text => {
                let width =
                    |column: usize| rows.clone().map(move |row| row[column].chars().count());
                let widths = (0..self.0[0].len()).map(|column| width(column).max().unwrap_or(0));
                let widths: Vec<_> = widths.collect();
                let line = |row: &Vec<String>| {
                    let cells = row.iter().zip(&widths);
                    let padded = cells.map(|(cell, width)| format!("{cell:<width$}"));
                    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
                };
                self.0.iter().map(line).collect()
            }
            Output::Json => {
                let object = |row: &Vec<String>| {
                    self.0[0].iter().cloned().zip(row.clone()).collect::<Value>()
                };
                rows.skip(1).map(|row| format!("{}\n", object(row))).collect()
            }
            Output::Csv => rows.map(|row| csv_line(row)).collect(),
        }
    }
}

/// Prints a record with names: a JSON object, two lines of CSV, or as text what it is given for that.
pub(crate) fn record<const N: usize>(
    output: Output,
    text: String,
    names: [&str; N],
    cells: [impl Display; N],
) -> Done {
    let mut table = Table::new(names);
    table.row(cells.map(|cell| cell.to_string()));
    print(&if output == Output::Text { text } else { table.render(output) })
}

/// A line of CSV (RFC 4180).
pub(crate) fn csv_line<S: AsRef<str>>(cells: &[S]) -> String {
    let cell = |cell: &S| match cell.as_ref() {
        plain if !plain.contains([',', '"', '\n', '\r']) => plain.to_owned(),
        other => format!("\"{}\"", other.replace('"', "\"\"")),
    };
    cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n"
}

/// Prints data, which answers the question. A reader that has gone, as `head` does, is no failure.
///
/// # Errors
/// [`Error::Software`] if standard output cannot be written.
pub(crate) fn print(text: &str) -> Done {
    written(io::stdout().lock().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()))?;
    Ok(Answer::Yes)
}

/// The outcome of writing to standard output.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::software("cannot write the output", error))
        }
        _ => Ok(()),
    }
}

/// Says something beside the data.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// True if standard output is a terminal that shows colours.
pub(crate) fn has_colour() -> bool {
    let asked_not_to = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !asked_not_to
}

/// `1,048,576`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}
