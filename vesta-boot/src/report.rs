//! Reports of commands.

use vesta_intf::IdError;
use vesta_service::lease::StoreError;

use crate::answers::Row;
use crate::error::Error;
use crate::output::{Output, Table};

/// Report of a command that changed something.
pub(crate) fn report(output: Output, said: String) -> String {
    let mut table = Table::new(["report"]);
    table.row([said.trim_end().into()]);
    match output {
        Output::Text => said,
        output => table.render(output),
    }
}

/// Outcome of a command: a sentence for people, the answer for programs.
pub(crate) fn told<R: Row>(output: Output, said: String, answer: &R) -> String {
    match output {
        Output::Text => said,
        output => Table::of(std::slice::from_ref(answer)).render(output),
    }
}

pub(crate) fn failed(store: &str, error: &StoreError) -> Error {
    Error::lasting(error.is_permanent(), format!("{store}: {error}"))
}

/// `1 tag`, `2 tags`.
pub(crate) fn counted(number: usize, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

/// A tag that exists with the requested definition.
pub(crate) fn exists(tag: &str, store: &str) -> String {
    format!("tag {tag} exists in {store} with this definition; nothing was changed\n")
}

/// A tag that exists with another definition: exit code 1.
pub(crate) fn other(error: IdError) -> Error {
    Error::No(error.to_string())
}

/// Renders a table of tags under the name of their store.
pub(crate) fn titled(store: &str, table: &Table, tags: usize) -> String {
    let rows = if tags == 0 {
        String::new()
    } else {
        format!("\n{}", table.render(Output::Text))
    };
    format!("{store}: {}\n{rows}", counted(tags, "tag"))
}
