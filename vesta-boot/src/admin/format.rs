//! Formats of `/metrics`: Prometheus' text format, which every scraper reads, and OpenMetrics for those that accept it.

use std::collections::HashSet;

use axum::http::{HeaderMap, HeaderValue, header};

/// Media type and text of metrics: OpenMetrics if `Accept` names it, as that of Prometheus does.
pub(super) fn negotiated(headers: &HeaderMap, metrics: String) -> (&'static str, String) {
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    let names = |accept: &HeaderValue| {
        let accept = accept.to_str().unwrap_or_default();
        accept
            .to_ascii_lowercase()
            .contains("application/openmetrics-text")
    };
    if accepted.any(names) {
        (
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            metrics,
        )
    } else {
        (
            "text/plain; version=0.0.4; charset=utf-8",
            as_text(&metrics),
        )
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
            (&[][..], true),
            (&["*/*"], true),
            (&["text/plain; version=0.0.4"], true),
            (&["text/html,application/xhtml+xml,*/*;q=0.8"], true),
            (&["application/openmetrics-text"], false),
            (&["Application/OpenMetrics-Text; version=0.0.1"], false),
            (&["text/plain", "application/openmetrics-text"], false),
            (
                &[
                    "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3",
                ],
                false,
            ),
        ] {
            let lines = accept
                .iter()
                .map(|it| (header::ACCEPT, it.parse().expect("a value")));
            let mut headers = HeaderMap::new();
            headers.extend(lines.map(|(name, value)| (Some(name), value)));
            let (media, text) = negotiated(&headers, METRICS.to_owned());
            let expected = if is_text {
                "text/plain; version=0.0.4"
            } else {
                "application/openmetrics-text; version=1.0.0"
            };
            assert!(media.starts_with(expected), "{accept:?}: {media}");
            assert_eq!(text.ends_with("# EOF\n"), !is_text, "{accept:?}");
        }
    }
}
