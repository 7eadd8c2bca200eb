//! Reports of commands.

use vesta_service::lease::StoreError;

use crate::answers::Row;
use crate::error::Error;
use crate::output::{Output, Table};

/// Report of a command that changed something.
pub(super) fn report(output: Output, said: String) -> String {
    let mut table = Table::new(["report"]);
    table.row([said.trim_end().into()]);
    match output {
        Output::Text => said,
        output => table.render(output),
    }
}

/// What a command did: a sentence for people, and the answer for programs.
pub(super) fn told<R: Row>(output: Output, said: String, answer: &R) -> String {
    match output {
        Output::Text => said,
        output => Table::of(std::slice::from_ref(answer)).render(output),
    }
}

pub(super) fn failed(store: &str, error: &StoreError) -> Error {
    Error::lasting(error.is_permanent(), format!("{store}: {error}"))
}

/// `1 tag`, `2 tags`.
pub(super) fn counted(number: usize, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}
