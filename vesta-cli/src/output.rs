//! Output: text for people, JSON and CSV for programs.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use clap::ValueEnum;
use serde_json::{Map, Value};
use vesta_boot::Error;

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

/// Rows with named columns.
#[derive(Debug)]
pub(crate) struct Table {
    names: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(names: impl Into<Vec<&'static str>>) -> Self {
        Self { names: names.into(), rows: Vec::new() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.names.len());
        self.rows.push(cells.into());
    }

    /// The table in a format; as text in columns as wide as their contents.
    pub(crate) fn render(&self, output: Output) -> String {
        match output {
            Output::Text => self.columns(),
            Output::Json => {
                let object = |row: &Vec<String>| {
                    let cells = row.iter().map(|cell| Value::String(cell.clone()));
                    let names = self.names.iter().map(|name| (*name).to_owned());
                    Value::Object(names.zip(cells).collect::<Map<_, _>>())
                };
                self.rows.iter().map(|row| format!("{}\n", object(row))).collect()
            }
            Output::Csv => {
                let head = self.names.iter().map(|name| (*name).to_owned()).collect();
                let rows = [&head].into_iter().chain(&self.rows);
                rows.map(|row: &Vec<String>| csv_line(row)).collect()
            }
        }
    }

    fn columns(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.names[column].len()]).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.names.len()).map(width).collect();
        let line = |cells: Vec<&str>| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        let rows = self.rows.iter().map(|row| row.iter().map(String::as_str).collect());
        [self.names.clone()].into_iter().chain(rows).map(line).collect()
    }
}

/// A line of CSV (RFC 4180).
pub(crate) fn csv_line<S: AsRef<str>>(cells: &[S]) -> String {
    let cell = |cell: &S| match cell.as_ref() {
        plain if !plain.contains([',', '"', '\n', '\r']) => plain.to_owned(),
        other => format!("\"{}\"", other.replace('"', "\"\"")),
    };
    cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n"
}

/// Prints data. A reader that has gone, as `head` does, is no failure.
///
/// # Errors
/// [`Error::Software`] if standard output cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    written(io::stdout().lock().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()))
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
