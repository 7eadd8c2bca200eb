//! Operations and their answers, as one table for every door: REST, gRPC and the command line. A door that lacks an
//! operation is named in its row; all others give the same answer, or the same kind of error.
//!
//! Rows run in order, at each door on new tags. IDs to explain and to make come from the original's converter;
//! bounds from arithmetic: 2026-01-01T00:00:00Z is 347,184,000 s after Vesta's epoch, 2^60 is one genMethod, 2^62 the
//! type, 2^63 the version; layouts and IDs of others from what these others publish.

mod grpc;
mod line;
mod rest;

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Value};

/// The answer of a door, or the kind of its error and its text; `None` if it lacks the operation.
type Answer = Option<Result<Value, (String, String)>>;

/// Arguments of an operation.
type Arguments = Map<String, Value>;

/// A door.
trait Door {
    fn ask(&mut self, operation: &str, arguments: &Arguments) -> Answer;

    /// Name of a kind of error at the door.
    fn told(&self, kind: &str) -> String {
        kind.to_owned()
    }
}

fn rows() -> Vec<Value> {
    serde_json::from_str(include_str!("table.json")).expect("a table")
}

/// An argument as text.
fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Asks a door for each row. `may_omit`: it leaves out members, because its messages have no place for them.
fn check(name: &str, door: &mut dyn Door, may_omit: bool) {
    let mut wrong = Vec::new();
    let mut asked = BTreeMap::<String, u32>::new();
    for mut row in rows() {
        let operation = text(&row["operation"]);
        let lacks = row["without"]
            .as_array()
            .is_some_and(|doors| doors.contains(&name.into()));
        let arguments = row["arguments"].as_object().expect("arguments").clone();
        if let Some(kind) = row["error"].as_str() {
            row["error"] = door.told(kind).into();
        }
        let answer = door.ask(&operation, &arguments);
        *asked.entry(operation.clone()).or_default() += u32::from(answer.is_some());
        if let Some(fault) = fault(&row, answer, lacks, may_omit) {
            wrong.push(format!("{operation} {arguments:?}: {fault}"));
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    assert!(asked.values().sum::<u32>() > 20, "{asked:?}");
}

/// First difference between a row and an answer.
fn fault(row: &Value, answer: Answer, lacks: bool, may_omit: bool) -> Option<String> {
    match (answer, row["error"].as_str()) {
        (None, _) => (!lacks).then(|| "the door lacks it, which the row does not say".to_owned()),
        (Some(_), _) if lacks => Some("the row says that the door lacks it".to_owned()),
        (Some(Ok(answer)), None) => different(&row["answer"], &answer, may_omit),
        (Some(Ok(answer)), Some(kind)) => Some(format!("{answer} in place of {kind}")),
        (Some(Err(error)), None) => Some(format!("{error:?}")),
        (Some(Err((kind, said))), Some(expected)) => {
            let detail = row["detail"].as_str().unwrap_or_default();
            let is_right = kind == expected && said.contains(detail);
            (!is_right).then(|| format!("{kind}: {said}"))
        }
    }
}

/// The members that differ. Numbers that JSON has as text are numbers in the protocol.
fn different(expected: &Value, answer: &Value, may_omit: bool) -> Option<String> {
    let (expected, answer) = match (expected, answer) {
        (Value::Object(expected), Value::Object(answer)) => (expected, answer),
        (Value::Array(expected), Value::Array(answer)) if expected.len() == answer.len() => {
            let mut pairs = expected.iter().zip(answer);
            return pairs.find_map(|(one, other)| different(one, other, may_omit));
        }
        (expected, answer) if text(expected) == text(answer) => return None,
        _ => return Some(format!("{answer} in place of {expected}")),
    };
    let names = expected.keys().chain(answer.keys());
    names.into_iter().find_map(|name| {
        let fault = match (expected.get(name), answer.get(name)) {
            (Some(expected), Some(answer)) => different(expected, answer, may_omit),
            (Some(_), None) if may_omit => None,
            (expected, answer) => Some(format!("{answer:?} in place of {expected:?}")),
        };
        fault.map(|fault| format!("{name}: {fault}"))
    })
}

#[test]
fn rest_answers_as_the_table_says() {
    check("rest", &mut rest::Rest::start(), false);
}

#[test]
fn grpc_answers_as_the_table_says() {
    check("grpc", &mut grpc::Grpc::start(), true);
}

#[test]
fn the_command_line_answers_as_the_table_says() {
    let folder = tempfile::tempdir().expect("a folder");
    check("line", &mut line::Line(Rc::new(folder)), false);
}

#[test]
fn a_wrong_answer_is_found() {
    let row = |text: &str| serde_json::from_str::<Value>(text).expect("a row");
    let of_numbers = row(r#"{"answer": {"id": "7", "once": 1}}"#);
    let answer = |text: &str| Some(Ok(row(text)));
    for (row, answer, lacks, may_omit, is_right) in [
        (
            &of_numbers,
            answer(r#"{"id": 7, "once": 1}"#),
            false,
            false,
            true,
        ),
        (
            &of_numbers,
            answer(r#"{"id": 8, "once": 1}"#),
            false,
            true,
            false,
        ),
        (&of_numbers, answer(r#"{"id": 7}"#), false, true, true),
        (&of_numbers, answer(r#"{"id": 7}"#), false, false, false),
        (
            &of_numbers,
            answer(r#"{"id": 7, "once": 1, "more": 1}"#),
            false,
            true,
            false,
        ),
        (&of_numbers, None, false, false, false),
        (&of_numbers, None, true, false, true),
        (&of_numbers, answer("{}"), true, true, false),
        (
            &row(r#"{"error": "INVALID", "detail": "a"}"#),
            answer("{}"),
            false,
            true,
            false,
        ),
        (
            &row(r#"{"error": "INVALID", "detail": "a"}"#),
            Some(Err(("INVALID".into(), "b".into()))),
            false,
            true,
            false,
        ),
    ] {
        assert_eq!(
            fault(row, answer, lacks, may_omit).is_none(),
            is_right,
            "{row}"
        );
    }
}
