//! Output of commands, and their confirmation prompt.

use std::fmt;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::error::Error;

type Ask = Box<dyn FnMut(&str) -> Result<bool, Error>>;

/// Output and prompt.
pub(super) struct Console {
    say: Box<dyn FnMut(&str)>,
    ask: Ask,
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Console")
    }
}

impl Console {
    /// Standard output, and a prompt if there is a terminal.
    pub(super) fn terminal() -> Self {
        Self {
            say: Box::new(|text| {
                let mut out = io::stdout().lock();
                // The reader may be gone; what was done is done.
                let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            }),
            ask: Box::new(ask_on_terminal),
        }
    }

    #[cfg(test)]
    pub(super) fn new(
        say: impl FnMut(&str) + 'static,
        ask: impl FnMut(&str) -> Result<bool, Error> + 'static,
    ) -> Self {
        Self { say: Box::new(say), ask: Box::new(ask) }
    }

    /// Skips the prompt if `yes`.
    pub(super) fn sure(self, yes: bool) -> Self {
        if yes { Self { ask: Box::new(|_| Ok(true)), ..self } } else { self }
    }

    pub(super) fn say(&mut self, text: &str) {
        (self.say)(text);
    }

    /// Asks for confirmation; without it, reports that nothing was changed.
    pub(super) fn agrees(&mut self, question: &str) -> Result<bool, Error> {
        let agreed = (self.ask)(question)?;
        if !agreed {
            self.say("Nothing was changed.\n");
        }
        Ok(agreed)
    }
}

/// Rows in columns as wide as their contents; those of numbers are aligned to the right.
pub(super) fn columns<const N: usize>(rows: &[[String; N]], numbers: &[usize]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match numbers
            .contains(&column)
        {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        out += cells.collect::<Vec<_>>().join("  ").trim_end();
        out.push('\n');
    }
    out
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
