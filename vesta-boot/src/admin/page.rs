//! The index page, for a person with a browser.

use std::time::Duration;

use vesta_service::{SegmentService, SegmentStatus, Status};

use super::segments::{left, used_percent};
use crate::{Role, secret};

pub(super) fn render(
    role: Role,
    status: Option<&Status>,
    not_ready: Option<String>,
    segments: Option<&SegmentService>,
) -> String {
    let state = match &not_ready {
        None => "ready".to_owned(),
        Some(reason) => format!("not ready: {}", escape(reason)),
    };
    format!(
        r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{name}</title>
<style>body {{ font: 16px/1.5 sans-serif; margin: 2em auto; max-width: 40em }} td {{ padding-right: 2em }}</style>
<h1>{name} {version}</h1>
<table>
<tr><td>State<td>{state}
{rows}</table>
{tags}<ul>
<li><a href="/status">/status</a>: layout, machine IDs and leases as JSON
<li><a href="/segments">/segments</a>: the tags of segment mode as JSON; POST {{"key":"orders","step":1000}} adds one
<li><a href="/metrics">/metrics</a>: for Prometheus
<li><a href="/readyz">/readyz</a>: 200 if calls for IDs are expected to succeed, else 503 with the reason
<li><a href="/healthz">/healthz</a>: 200 unless only a restart can help
</ul>
</html>
"#,
        name = role.name(),
        version = env!("CARGO_PKG_VERSION"),
        rows = status.map(rows).unwrap_or_default(),
        tags = segments.map(tags).unwrap_or_default(),
    )
}

fn rows(status: &Status) -> String {
    let machines: Vec<_> = status.machines.iter().map(u64::to_string).collect();
    let window = match status.window_left {
        Duration::MAX => "no lease, no end".to_owned(),
        left => format!("{:.1} s", left.as_secs_f64()),
    };
    [
        ("Machine ID", format!("{} ({})", machines.join(", "), escape(&status.machine_source))),
        ("Namespace", escape(&status.namespace)),
        ("Layout ends", status.layout_ends.to_string()),
        ("Window left", window),
    ]
    .map(|(name, value)| format!("<tr><td>{name}<td>{value}\n"))
    .concat()
}

/// More tags than this are left to `/segments`.
const MOST_TAGS: usize = 100;

fn tags(segments: &SegmentService) -> String {
    let state = match segments.not_ready_because() {
        None => "ready".to_owned(),
        Some(reason) => format!("not ready: {}", escape(&secret::hide(&reason))),
    };
    let tags = segments.status();
    let mut out = format!(
        "<h2>Segments</h2>\n<p>{} in {}; {state}\n<table>\n<tr><th>Tag<th>Range<th>Next \
         number<th>Used<th>At hand<th>Step<th>A second<th>State\n",
        tags.len(),
        escape(&segments.describe()),
    );
    tags.iter().take(MOST_TAGS).for_each(|tag| out += &tag_row(tag));
    out += "</table>\n";
    if let Some(more @ 1..) = tags.len().checked_sub(MOST_TAGS) {
        out += &format!("<p>and {more} more\n");
    }
    out
}

fn tag_row(tag: &SegmentStatus) -> String {
    let range = tag.current.as_ref().map_or("none yet".to_owned(), |range| {
        format!("{} to {}", range.start, range.end.saturating_sub(1))
    });
    let used = used_percent(tag).map_or("-".to_owned(), |percent| format!("{percent} %"));
    let state = match &tag.not_ready_because {
        None => "ready".to_owned(),
        Some(reason) => escape(&secret::hide(reason)),
    };
    format!(
        "<tr><td>{}<td>{range}<td>{}<td>{used}<td>{}<td>{}<td>{}<td>{state}\n",
        escape(&tag.key),
        tag.position,
        left(tag),
        tag.step,
        tag.rate,
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
