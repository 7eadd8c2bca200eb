//! Output of commands, and their confirmation prompt.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use vesta_intf::plain_lines;

use crate::error::Error;

/// The outcome of a command that was declined.
pub(super) const UNCHANGED: &str = "Nothing was changed.\n";

type Ask = Box<dyn FnMut(&str) -> Result<bool, Error>>;

/// Output and prompt.
pub(super) struct Console {
    pub(super) say: Box<dyn FnMut(&str)>,
    pub(super) ask: Ask,
}

impl Console {
    /// Standard output, and a prompt if there is a terminal, unless `yes` answers it.
    pub(super) fn terminal(yes: bool) -> Self {
        let ask = move |question: &str| if yes { Ok(true) } else { ask_on_terminal(question) };
        Self { say: Box::new(print), ask: Box::new(ask) }
    }

    /// Says what is about to happen, and asks for confirmation.
    pub(super) fn agrees(&mut self, plan: &str, question: &str) -> Result<bool, Error> {
        (self.say)(plan);
        (self.ask)(question)
    }
}

pub(super) fn print(text: &str) {
    let mut out = io::stdout().lock();
    // The reader may be gone; what was done is done.
    let _ = out.write_all(plain_lines(text).as_bytes()).and_then(|()| out.flush());
}

fn ask_on_terminal(question: &str) -> Result<bool, Error> {
    if !io::stdin().is_terminal() {
        return Error::refuse(
            "nothing was changed: there is no terminal to ask on; add --yes to do it",
        );
    }
    let mut err = io::stderr().lock();
    let _ = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Rows in columns as wide as their contents; those of numbers are aligned to the right.
pub(super) fn columns<const N: usize>(rows: &[[String; N]], numbers: &[usize]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let line = |row: &[String; N]| {
        let cell = |column: usize| match (&row[column], widths[column]) {
            (cell, width) if numbers.contains(&column) => format!("{cell:>width$}"),
            (cell, width) => format!("{cell:<width$}"),
        };
        let cells: [String; N] = std::array::from_fn(cell);
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
