//! Index page, for a person with a browser.

use serde_json::Value;

use super::state::AdminState;
use super::{segments, status};

/// Title of a row or a column, and its field in a status.
type Field = (&'static str, &'static str);

const PROGRAM: [Field; 7] = [
    ("Ready", "/ready"),
    ("Not ready", "/notReadyBecause"),
    ("Machine IDs", "/machine/ids"),
    ("Their source", "/machine/source"),
    ("Namespace", "/namespace"),
    ("Layout ends", "/layout/ends"),
    ("Window left, ms", "/lease/windowLeftMs"),
];

const SEGMENTS: [Field; 4] = [
    ("Store", "/store"),
    ("Tags", "/tags"),
    ("Ready", "/ready"),
    ("Not ready", "/notReadyBecause"),
];

const TAG: [Field; 9] = [
    ("Tag", "/key"),
    ("From", "/current/from"),
    ("Below", "/current/below"),
    ("Next number", "/position"),
    ("Used, %", "/usedPercent"),
    ("At hand", "/left"),
    ("Step", "/step"),
    ("A second", "/perSecond"),
    ("Not ready", "/notReadyBecause"),
];

/// More tags than this are left to `/segments`.
const MOST_TAGS: usize = 100;

pub(super) fn render(state: &AdminState) -> String {
    format!(
        r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{program}</title>
<style>body {{ font: 16px/1.5 sans-serif; margin: 2em auto; max-width: 40em }} td {{ padding-right: 2em }}</style>
<h1>{program} {version}</h1>
{rows}{tags}<ul>
<li><a href="/status">/status</a>: layout, machine IDs and leases as JSON
<li><a href="/segments">/segments</a>: the tags of segment mode as JSON; POST {{"key":"orders","step":1000}} adds one
<li><a href="/metrics">/metrics</a>: for Prometheus
<li><a href="/readyz">/readyz</a>: 200 if calls for IDs are expected to succeed, else 503 with the reason
<li><a href="/healthz">/healthz</a>: 200 unless only a restart can help
</ul>
</html>
"#,
        program = state.role.name(),
        version = env!("CARGO_PKG_VERSION"),
        rows = rows(&PROGRAM, &status::status(state)),
        tags = state.segments().map(|it| tags(&segments::status(it))).unwrap_or_default(),
    )
}

fn rows(fields: &[Field], status: &Value) -> String {
    let row =
        |(title, field): &Field| Some(format!("<tr><td>{title}<td>{}\n", cell(status, field)?));
    format!("<table>\n{}</table>\n", fields.iter().filter_map(row).collect::<String>())
}

fn tags(status: &Value) -> String {
    let tags = status["segments"].as_array().into_iter().flatten().take(MOST_TAGS);
    let cells = |tag| TAG.map(|(_, field)| format!("<td>{}", cell(tag, field).unwrap_or_default()));
    format!(
        "<h2>Segments</h2>\n{}<table>\n<tr>{}\n{}</table>\n",
        rows(&SEGMENTS, status),
        TAG.map(|(title, _)| format!("<th>{title}")).concat(),
        tags.map(|tag| format!("<tr>{}\n", cells(tag).concat())).collect::<String>()
    )
}

/// A field as HTML; `None` if there is nothing in it.
fn cell(status: &Value, field: &str) -> Option<String> {
    let text = match status.pointer(field)? {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}
