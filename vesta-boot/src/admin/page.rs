//! Index page, for a person with a browser.

use super::segments::{SegmentsStatus, TagStatus};
use super::status::{ProgramStatus, ServiceStatus};

pub(super) fn render(status: &ProgramStatus, segments: Option<&SegmentsStatus>) -> String {
    let ProgramStatus { program, version, not_ready_because, service, .. } = status;
    format!(
        r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{program}</title>
<style>body {{ font: 16px/1.5 sans-serif; margin: 2em auto; max-width: 40em }} td {{ padding-right: 2em }}</style>
<h1>{program} {version}</h1>
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
        state = readiness(not_ready_because.as_deref()),
        rows = service.as_ref().map(rows).unwrap_or_default(),
        tags = segments.map(tags).unwrap_or_default(),
    )
}

fn readiness(not_ready_because: Option<&str>) -> String {
    not_ready_because.map_or("ready".to_owned(), |reason| format!("not ready: {}", escape(reason)))
}

fn rows(status: &ServiceStatus) -> String {
    let ServiceStatus { machine, namespace, layout, lease, .. } = status;
    let machines: Vec<_> = machine.ids.iter().map(u64::to_string).collect();
    let window = lease.window_left_ms.map_or("no lease, no end".to_owned(), |left| {
        format!("{}.{} s", left / 1000, left / 100 % 10)
    });
    [
        ("Machine ID", format!("{} ({})", machines.join(", "), escape(&machine.source))),
        ("Namespace", escape(namespace)),
        ("Layout ends", layout.ends.clone()),
        ("Window left", window),
    ]
    .map(|(name, value)| format!("<tr><td>{name}<td>{value}\n"))
    .concat()
}

/// More tags than this are left to `/segments`.
const MOST_TAGS: usize = 100;

fn tags(status: &SegmentsStatus) -> String {
    let SegmentsStatus { store, not_ready_because, segments: tags, .. } = status;
    let mut out = format!(
        "<h2>Segments</h2>\n<p>{} in {}; {}\n<table>\n<tr><th>Tag<th>Range<th>Next \
         number<th>Used<th>At hand<th>Step<th>A second<th>State\n",
        tags.len(),
        escape(store),
        readiness(not_ready_because.as_deref()),
    );
    out.extend(tags.iter().take(MOST_TAGS).map(tag_row));
    out += "</table>\n";
    if let Some(more @ 1..) = tags.len().checked_sub(MOST_TAGS) {
        out += &format!("<p>and {more} more\n");
    }
    out
}

fn tag_row(tag: &TagStatus) -> String {
    let range = tag.current.as_ref();
    let range = range.map_or("none yet".to_owned(), |it| format!("{} to {}", it.from, it.last));
    let used = tag.used_percent.map_or("-".to_owned(), |percent| format!("{percent} %"));
    let state = tag.not_ready_because.as_deref().map_or("ready".to_owned(), escape);
    let TagStatus { key, position, left, step, per_second, .. } = tag;
    format!(
        "<tr><td>{}<td>{range}<td>{position}<td>{used}<td>{left}<td>{step}<td>{per_second}<td>\
         {state}\n",
        escape(key),
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
