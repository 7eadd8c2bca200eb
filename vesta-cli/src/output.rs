//! Output: text for people, JSON and CSV for programs.

use serde_json::Value;
use vesta_boot::output;
pub(crate) use vesta_boot::output::{Cell, Output, Table, csv_line, facts, say, written};

use crate::{Answer, Done};

/// Prints the form for this format, and returns the answer.
pub(crate) fn answer(output: Output, is_yes: bool, text: &str, json: &Value, csv: &str) -> Done {
    let printed = print(&output.pick(text, json, csv))?;
    Ok(if is_yes { printed } else { Answer::No })
}

/// Prints a record with names: a JSON object, two lines of CSV, or the given text.
pub(crate) fn record<const N: usize>(
    output: Output,
    text: String,
    names: [&'static str; N],
    cells: [Cell; N],
) -> Done {
    let mut table = Table::new(names);
    table.row(cells);
    print(&if output == Output::Text {
        text
    } else {
        table.render(output)
    })
}

/// Prints data, and answers yes.
///
/// # Errors
/// As [`vesta_boot::output::print`].
pub(crate) fn print(text: &str) -> Done {
    output::print(text).map(|()| Answer::Yes)
}

/// True if standard output is a terminal that shows colours.
pub(crate) fn has_colour() -> bool {
    let asked_not_to = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    output::is_terminal() && !asked_not_to
}

/// `1,048,576`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}
