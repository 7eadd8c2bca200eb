//! Index page, for a person with a browser.

use vesta_service::{LocalIdService, SegmentService, SegmentStatus};

use super::segments::{hidden, left, used_percent};
use super::state::AdminState;
use super::status::window_left;

pub(super) fn render(state: &AdminState) -> String {
    format!(
        r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{program}</title>
<style>body {{ font: 16px/1.5 sans-serif; margin: 2em auto; max-width: 40em }} td {{ padding-right: 2em }}</style>
<h1>{program} {version}</h1>
<table>
<tr><td>State<td>{readiness}
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
        program = state.role.name(),
        version = env!("CARGO_PKG_VERSION"),
        readiness = readiness(state.not_ready_because()),
        rows = state.service().map(rows).unwrap_or_default(),
        tags = state.segments().map(|segments| tags(segments)).unwrap_or_default(),
    )
}

fn readiness(not_ready_because: Option<String>) -> String {
    not_ready_because.map_or("ready".to_owned(), |reason| format!("not ready: {}", escape(&reason)))
}

fn rows(service: &LocalIdService) -> String {
    let status = service.status();
    let machines: Vec<_> = status.machines.iter().map(u64::to_string).collect();
    let window = window_left(status.window_left).map_or("no lease, no end".to_owned(), |left| {
        format!("{}.{} s", left / 1000, left / 100 % 10)
    });
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
    let tags = segments.status();
    let mut out = format!(
        "<h2>Segments</h2>\n<p>{} in {}; {}\n<table>\n<tr><th>Tag<th>Range<th>Next \
         number<th>Used<th>At hand<th>Step<th>A second<th>State\n",
        tags.len(),
        escape(&segments.describe()),
        readiness(hidden(segments.not_ready_because())),
    );
    out.extend(tags.iter().take(MOST_TAGS).map(tag_row));
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
    let state = hidden(tag.not_ready_because.clone());
    let state = state.as_deref().map_or("ready".to_owned(), escape);
    let SegmentStatus { key, position, step, rate, .. } = tag;
    format!(
        "<tr><td>{}<td>{range}<td>{position}<td>{used}<td>{}<td>{step}<td>{rate}<td>{state}\n",
        escape(key),
        left(tag),
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
