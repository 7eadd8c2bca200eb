//! Output of commands, and their confirmation prompt.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use vesta_intf::plain_lines;

use crate::error::Error;
use crate::output::Output;

/// Report of a command whose prompt was declined.
pub(crate) const UNCHANGED: &str = "Nothing was changed.\n";

type Ask = Box<dyn FnMut(&str) -> Result<bool, Error>>;

/// Output and prompt.
pub(crate) struct Console {
    pub(crate) say: Box<dyn FnMut(&str)>,
    pub(crate) ask: Ask,
}

impl Console {
    /// Console on standard output, or on standard error if programs read the output. Prompts if
    /// there is a terminal, unless `yes` answers.
    pub(crate) fn terminal(yes: bool, output: Output) -> Self {
        let ask = move |question: &str| {
            if yes {
                Ok(true)
            } else {
                ask_on_terminal(question)
            }
        };
        let say = if output == Output::Text {
            print
        } else {
            say_beside
        };
        Self {
            say: Box::new(say),
            ask: Box::new(ask),
        }
    }

    /// Prints the plan and asks for confirmation.
    pub(crate) fn agrees(&mut self, plan: &str, question: &str) -> Result<bool, Error> {
        (self.say)(plan);
        (self.ask)(question)
    }
}

/// Prints a report.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    // The reader may be gone; the command has already taken effect.
    let _ = out
        .write_all(plain_lines(text).as_bytes())
        .and_then(|()| out.flush());
}

/// Prints text that is not data, to standard error.
fn say_beside(text: &str) {
    let _ = io::stderr().lock().write_all(plain_lines(text).as_bytes());
}

fn ask_on_terminal(question: &str) -> Result<bool, Error> {
    if !io::stdin().is_terminal() {
        return Error::refuse("nothing changed: no terminal to confirm on; pass --yes");
    }
    let mut err = io::stderr().lock();
    let _ = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
