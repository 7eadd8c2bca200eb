//! Formats of `/metrics`: OpenMetrics, and Prometheus' text format for scrapers that accept nothing
//! else.

use std::collections::HashSet;

use axum::http::{HeaderMap, header};

/// Media type and text of metrics, negotiated by `Accept`. A scraper that names both formats, as Prometheus
/// does, gets OpenMetrics.
pub(super) fn negotiated(headers: &HeaderMap, metrics: String) -> (&'static str, String) {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    match accept.unwrap_or_default() {
        accept if accept.contains("text/plain") && !accept.contains("openmetrics") => (
            "text/plain; version=0.0.4; charset=utf-8",
            as_text(&metrics),
        ),
        _ => (
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            metrics,
        ),
    }
}

/// The same metrics in the text format: no units, no end marker, and counters named like their samples.
fn as_text(metrics: &str) -> String {
    let types = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let counters: HashSet<_> = types.filter_map(|it| it.strip_suffix(" counter")).collect();
    let line = |line| match str::splitn(line, 4, ' ').collect::<Vec<_>>()[..] {
        ["#", "EOF"] | ["#", "UNIT", ..] => String::new(),
        ["#", what, name, rest] if counters.contains(name) => {
            format!("# {what} {name}_total {rest}\n")
        }
        _ => format!("{line}\n"),
    };
    metrics.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "# HELP v_requests Requests made.\n# TYPE v_requests counter\n\
        v_requests_total{a=\"b c\"} 1\n# HELP v_left_seconds Time.\n# TYPE v_left_seconds gauge\n\
        # UNIT v_left_seconds seconds\nv_left_seconds 0.5\n# EOF\n";

    #[test]
    fn the_text_format_has_no_units_or_end_and_names_counters_like_samples() {
        let expected = "# HELP v_requests_total Requests made.\n# TYPE v_requests_total counter\n\
            v_requests_total{a=\"b c\"} 1\n# HELP v_left_seconds Time.\n\
            # TYPE v_left_seconds gauge\nv_left_seconds 0.5\n";
        assert_eq!(as_text(METRICS), expected);
    }

    #[test]
    fn a_scraper_gets_the_format_that_it_accepts() {
        for (accept, is_text) in [
            ("text/plain; version=0.0.4", true),
            ("text/plain", true),
            ("*/*", false),
            (
                "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3",
                false,
            ),
        ] {
            let headers =
                HeaderMap::from_iter([(header::ACCEPT, accept.parse().expect("a value"))]);
            let (media, text) = negotiated(&headers, METRICS.to_owned());
            assert_eq!(
                media.starts_with("text/plain; version=0.0.4"),
                is_text,
                "{accept}"
            );
            assert_eq!(text.ends_with("# EOF\n"), !is_text, "{accept}");
        }
        assert!(
            negotiated(&HeaderMap::new(), METRICS.to_owned())
                .0
                .contains("openmetrics")
        );
    }
}
