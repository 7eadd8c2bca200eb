//! Output of commands: text for people, JSON and CSV for programs.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use clap::ValueEnum;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, TableStyle, Width};
use serde::Serialize;
use serde_json::Value;
use vesta_intf::plain;

use crate::answers::Row;
use crate::error::Error;

/// Format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// One JSON value per line.
    Json,
    /// Comma-separated, with a header line.
    Csv,
}

impl Output {
    /// Selects the report for this format.
    pub fn pick(self, text: &str, json: &Value, csv: &str) -> String {
        match self {
            Output::Text => text.to_owned(),
            Output::Json => format!("{}\n", plain(&json.to_string())),
            Output::Csv => csv.to_owned(),
        }
    }
}

/// Cell of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// Text, or a number that JSON must not round.
    Text(String),
    /// A number, at most 2^53.
    Number(u64),
    /// A boolean.
    Truth(bool),
    /// No value: `-`; in JSON, no member.
    Missing,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Cell::Number(number)
    }
}

impl From<&Value> for Cell {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Cell::Missing,
            Value::Bool(truth) => Cell::Truth(*truth),
            Value::String(text) => Cell::Text(text.clone()),
            other => other
                .as_u64()
                .map_or_else(|| Cell::Text(other.to_string()), Cell::Number),
        }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Missing, Into::into)
    }
}

impl Cell {
    /// True for cells that are right-aligned.
    fn is_number(&self) -> bool {
        match self {
            Cell::Text(text) => text.parse::<i128>().is_ok(),
            Cell::Truth(_) => false,
            Cell::Number(_) | Cell::Missing => true,
        }
    }

    fn text(&self, missing: &str) -> String {
        match self {
            Cell::Text(text) => plain(text),
            Cell::Number(number) => number.to_string(),
            Cell::Truth(truth) => truth.to_string(),
            Cell::Missing => missing.to_owned(),
        }
    }

    fn json(&self) -> Option<Value> {
        match self {
            Cell::Text(text) => Some(text.as_str().into()),
            Cell::Number(number) => Some((*number).into()),
            Cell::Truth(truth) => Some((*truth).into()),
            Cell::Missing => None,
        }
    }
}

/// An answer as JSON.
pub fn value(answer: &impl Serialize) -> Value {
    serde_json::to_value(answer).expect("strings and numbers always serialise")
}

/// Rows with named columns.
#[derive(Debug)]
pub struct Table {
    names: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    /// The rows as JSON, if they say more than the columns.
    answers: Option<Vec<Value>>,
}

/// Default width of the output in characters, without a terminal or COLUMNS.
const WIDTH: u16 = 80;
/// Minimum width to which a table is folded.
const NARROW: u16 = 40;
/// Spaces between two columns.
const GAP: u16 = 2;

impl Table {
    /// An empty table. The column `last change` becomes the key `lastChange` in JSON.
    pub fn new<const N: usize>(names: [&'static str; N]) -> Self {
        Self {
            names: names.into(),
            rows: Vec::new(),
            answers: None,
        }
    }

    /// Answers as rows of their columns; in JSON they are whole.
    pub fn of<R: Row>(rows: &[R]) -> Self {
        let names = R::COLUMNS.to_vec();
        let answers: Vec<_> = rows.iter().map(value).collect();
        let cells = |row: &Value| {
            let cell = |name: &&str| row.get(camel_case(name)).map(Cell::from).into();
            names.iter().map(cell).collect()
        };
        Self {
            rows: answers.iter().map(cells).collect(),
            names,
            answers: Some(answers),
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.names.len());
        self.rows.push(cells.into());
    }

    /// Renders the table in a format; text has columns, with long cells folded to the width of the
    /// terminal.
    pub fn render(&self, output: Output) -> String {
        match output {
            Output::Text => self.text(terminal_width()),
            Output::Json => self
                .objects()
                .iter()
                .map(|object| format!("{}\n", plain(&object.to_string())))
                .collect(),
            Output::Csv => {
                let rows = self
                    .rows
                    .iter()
                    .map(|row| row.iter().map(|cell| cell.text("")).collect());
                [self.keys()]
                    .into_iter()
                    .chain(rows)
                    .map(|row| csv_line(&row))
                    .collect()
            }
        }
    }

    /// The rows as JSON objects.
    fn objects(&self) -> Vec<Value> {
        let keys = self.keys();
        let object = |row: &Vec<Cell>| {
            let members = keys.iter().cloned().zip(row);
            members
                .filter_map(|(key, cell)| Some((key, cell.json()?)))
                .collect()
        };
        let rows = || self.rows.iter().map(object).collect();
        self.answers.clone().unwrap_or_else(rows)
    }

    fn keys(&self) -> Vec<String> {
        self.names.iter().map(|name| camel_case(name)).collect()
    }

    fn text(&self, width: u16) -> String {
        let names = self.names.iter().map(|name| (*name).to_owned()).collect();
        let rows = self
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.text("-")).collect());
        let is_number = |column: usize| self.rows.iter().all(|row| row[column].is_number());
        let numbers: Vec<_> = (0..self.names.len())
            .filter(|column| is_number(*column))
            .collect();
        grid(
            &[names].into_iter().chain(rows).collect::<Vec<_>>(),
            &numbers,
            width,
        )
    }
}

/// Rows in columns of this total width, folded between words; numbers are right-aligned.
fn grid(rows: &[Vec<String>], numbers: &[usize], width: u16) -> String {
    let mut grid = comfy_table::Table::new();
    grid.load_style(TableStyle::new())
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .add_rows(rows);
    for (index, column) in grid.column_iter_mut().enumerate() {
        let words = rows.iter().flat_map(|row| row[index].split(' '));
        let longest = words.map(|word| word.chars().count()).max().unwrap_or(0);
        let gap = if index == 0 { 0 } else { GAP };
        let lower = Width::Fixed(u16::try_from(longest).unwrap_or(width).saturating_add(gap));
        column
            .set_padding((gap, 0))
            .set_constraint(ColumnConstraint::LowerBoundary(lower));
        if numbers.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    grid.lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// `last change` as `lastChange`.
fn camel_case(name: &str) -> String {
    let words = name
        .replace("/s", " per second")
        .replace('µ', "micro")
        .to_lowercase();
    let word = |(index, word): (usize, &str)| match word.split_at_checked(1) {
        Some((first, rest)) if index > 0 => first.to_uppercase() + rest,
        _ => word.to_owned(),
    };
    words.split(' ').enumerate().map(word).collect()
}

/// Lines of labels and texts; a long text continues, indented, on the next line.
pub fn facts(facts: &[(&str, String)]) -> String {
    let rows = facts
        .iter()
        .map(|(label, text)| vec![(*label).to_owned(), plain(text)]);
    grid(&rows.collect::<Vec<_>>(), &[], terminal_width())
}

fn terminal_width() -> u16 {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let told = || std::env::var("COLUMNS").ok()?.parse().ok();
    size.map(|size| size.ws_col)
        .or_else(told)
        .unwrap_or(WIDTH)
        .max(NARROW)
}

/// One line of CSV (RFC 4180).
pub fn csv_line<S: AsRef<str>>(cells: &[S]) -> String {
    let cell = |cell: &S| match cell.as_ref() {
        plain if !plain.contains([',', '"', '\n', '\r']) => plain.to_owned(),
        other => format!("\"{}\"", other.replace('"', "\"\"")),
    };
    cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n"
}

/// Prints data. A closed reader, such as `head`, is not a failure.
///
/// # Errors
/// [`Error::Software`] if standard output cannot be written.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Result of writing to standard output.
///
/// # Errors
/// [`Error::Software`], unless the reader has closed the pipe.
pub fn written(result: io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::software("cannot write the output", error))
        }
        _ => Ok(()),
    }
}

/// Prints a note to standard error, apart from the data.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// True if standard output is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["machine ID", "last change", "said"]);
        table.row([7u64.into(), Cell::Missing, "a few words".into()]);
        table.row([
            1021u64.into(),
            "today".into(),
            "many words that are too long for a line".into(),
        ]);
        table
    }

    #[test]
    fn text_fits_its_width_and_numbers_are_right_aligned() {
        assert_eq!(
            table().text(80),
            "machine ID  last change  said\n         \
             7  -            a few words\n      \
             1021  today        many words that are too long for a line\n"
        );
        assert_eq!(
            table().text(45),
            "machine ID  last change  said\n         \
             7  -            a few words\n      \
             1021  today        many words that are\n                         \
             too long for a line\n"
        );
        let long = "x".repeat(50);
        let mut wide = Table::new(["a", "b"]);
        wide.row([long.as_str().into(), "1 2".into()]);
        assert!(wide.text(40).contains(&long), "no word is split");
    }

    #[test]
    fn json_has_camel_case_keys_and_numbers() {
        let first = table().objects()[0].to_string();
        assert_eq!(first, r#"{"machineId":7,"said":"a few words"}"#);
    }

    #[test]
    fn csv_quotes_only_when_needed() {
        assert_eq!(camel_case("IDs/s"), "idsPerSecond");
        assert_eq!(csv_line(&["a", "b,c", "d\"e"]), "a,\"b,c\",\"d\"\"e\"\n");
        assert_eq!(
            table().render(Output::Csv).lines().nth(1),
            Some("7,,a few words")
        );
    }
}
