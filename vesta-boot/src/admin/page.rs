//! The index page, for a person with a browser.

use std::time::Duration;

use vesta_service::Status;

use crate::Role;

pub(super) fn render(role: Role, status: Option<&Status>, not_ready: Option<String>) -> String {
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
<ul>
<li><a href="/status">/status</a>: layout, machine IDs and leases as JSON
<li><a href="/metrics">/metrics</a>: for Prometheus
<li><a href="/readyz">/readyz</a>: 200 if calls for IDs are expected to succeed, else 503 with the reason
<li><a href="/healthz">/healthz</a>: 200 unless only a restart can help
</ul>
</html>
"#,
        name = role.name(),
        version = env!("CARGO_PKG_VERSION"),
        rows = status.map(rows).unwrap_or_default(),
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

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
