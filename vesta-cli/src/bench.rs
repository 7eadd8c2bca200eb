//! `bench` and `top`: speed and activity of a server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::scope;
use std::time::Duration;

use serde_json::{Value, json};
use vesta_boot::Error;
use vesta_service::clock::{Clock as _, SystemClock};

use crate::cli::{BenchArgs, TopArgs};
use crate::generate::remote;
use crate::http::Http;
use crate::output::{Cell, Output, Table, answer, grouped, print, say};
use crate::{Answer, Done};

pub(crate) fn bench(args: &BenchArgs, output: Output) -> Done {
    let (over, done, failed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    // Fails here if the server is unreachable.
    remote(&args.server, &args.access)?(1)?;
    let clock = SystemClock::new();
    let began = clock.monotonic();
    let elapsed = || clock.monotonic() - began;
    let times = scope(|threads| {
        let caller = || -> Result<Vec<u128>, Error> {
            let mut take = remote(&args.server, &args.access)?;
            let mut times = Vec::new();
            while !over.load(Relaxed) {
                let start = clock.monotonic();
                match take(1) {
                    Ok(_) => times.push((clock.monotonic() - start).as_micros()),
                    Err(_) => _ = failed.fetch_add(1, Relaxed),
                }
                done.fetch_add(1, Relaxed);
            }
            Ok(times)
        };
        let callers: Vec<_> = (0..args.connections)
            .map(|_| threads.spawn(caller))
            .collect();
        let mut before = 0;
        while elapsed() < args.duration {
            clock.park(Duration::from_secs(1).min(args.duration.saturating_sub(elapsed())));
            let so_far = done.load(Relaxed);
            say(&format!(
                "{:3} s  {} requests/s",
                elapsed().as_secs(),
                grouped(so_far - before)
            ));
            before = so_far;
        }
        over.store(true, Relaxed);
        let times = callers.into_iter().map(|caller| {
            caller
                .join()
                .unwrap_or_else(|_| Err(Error::software("a caller", "it panicked")))
        });
        times.collect::<Result<Vec<_>, _>>()
    })?;
    let took = elapsed();
    let mut times: Vec<_> = times.into_iter().flatten().collect();
    times.sort_unstable();
    // Latency below which `part` of a thousand requests lie.
    let at = |part: usize| times.get(times.len() * part / 1000).copied().unwrap_or(0);
    let (p50, p99, p999) = (at(500), at(990), at(999));
    let seconds = took.as_secs_f64();
    let rate = (times.len() as f64 / seconds) as u64;
    let errors = failed.load(Relaxed);
    let text = format!(
        "{} requests/s, as many IDs/s, with {} connections for {seconds:.0} s\np50 {p50} µs  p99 {p99} µs  \
         p99.9 {p999} µs  errors {errors}\n",
        grouped(rate),
        args.connections
    );
    let json = json!({
        "requestsPerSecond": rate, "p50Micros": p50, "p99Micros": p99, "p999Micros": p999, "errors": errors
    });
    let names = "requests_per_second,p50_us,p99_us,p999_us,errors";
    let csv = format!("{names}\n{rate},{p50},{p99},{p999},{errors}\n");
    answer(output, errors == 0, &text, &json, &csv)
}

/// The counters of a server at one time.
#[derive(Debug, Default, Clone)]
struct Counters {
    issued: f64,
    requests: f64,
    /// Cumulative requests by latency in microseconds.
    buckets: BTreeMap<u64, f64>,
}

impl Counters {
    fn read(text: &str) -> Self {
        let mut counters = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let Ok(value) = value.parse::<f64>() else {
                continue;
            };
            if name.starts_with("vesta_ids_issued_total{") {
                counters.issued += value;
            } else if name.starts_with("vesta_requests_total{") {
                counters.requests += value;
            } else if name.starts_with("vesta_request_duration_seconds_bucket{") {
                let bound = name
                    .split("le=\"")
                    .nth(1)
                    .and_then(|rest| rest.split('"').next());
                let seconds: f64 = bound
                    .and_then(|bound| bound.parse().ok())
                    .unwrap_or(f64::INFINITY);
                let micros = (seconds * 1e6).round() as u64; // the largest number for +Inf
                *counters.buckets.entry(micros).or_default() += value;
            }
        }
        counters
    }

    /// Bucket in which the slowest hundredth of the requests since `before` begins, in microseconds.
    fn p99_since(&self, before: &Self) -> Option<u64> {
        let count = |bound: u64, all: &Self| all.buckets.get(&bound).copied().unwrap_or(0.0);
        let all = count(u64::MAX, self) - count(u64::MAX, before);
        let reached = |bound: &&u64| count(**bound, self) - count(**bound, before) >= 0.99 * all;
        if all > 0.0 {
            self.buckets.keys().find(reached).copied()
        } else {
            None
        }
    }
}

const NAMES: [&str; 9] = [
    "server",
    "ready",
    "IDs/s",
    "requests/s",
    "p99 µs",
    "machines",
    "window ms",
    "lead ms",
    "fenced",
];

pub(crate) fn top(args: &TopArgs, output: Output) -> Done {
    let servers = args.servers.iter().map(|url| Http::new(url, &args.access));
    let servers = servers.collect::<Result<Vec<_>, Error>>()?;
    let mut before: Vec<Option<Counters>> = vec![None; servers.len()];
    let (clock, mut round) = (SystemClock::new(), 0u64);
    let redraws = output == Output::Text && vesta_boot::output::is_terminal();
    while args.count.is_none_or(|count| round < count) {
        if round > 0 {
            clock.park(Duration::from_secs(1));
        }
        let (mut table, mut silent) = (Table::new(NAMES), Vec::new());
        for (http, before) in servers.iter().zip(&mut before) {
            match look(http) {
                Err(error) => silent.push(error),
                Ok((status, counters)) => {
                    let last = before
                        .replace(counters.clone())
                        .unwrap_or_else(|| counters.clone());
                    table.row(row(http, &status, &counters, &last));
                }
            }
        }
        if round == 0 && silent.len() == servers.len() {
            return Err(silent.swap_remove(0));
        }
        print(&screen(&table, output, redraws, round))?;
        silent.iter().for_each(|error| say(&error.to_string()));
        round += 1;
    }
    Ok(Answer::Yes)
}

/// Output of one round: on a terminal it replaces the previous one, otherwise it follows below. CSV has
/// one header line.
fn screen(table: &Table, output: Output, redraws: bool, round: u64) -> String {
    let text = table.render(output);
    match text.split_once('\n') {
        _ if redraws => format!("\u{1b}[H\u{1b}[J{text}"),
        Some((_, rows)) if round > 0 && output == Output::Csv => rows.to_owned(),
        _ => text,
    }
}

fn row(http: &Http, status: &Value, counters: &Counters, last: &Counters) -> [Cell; 9] {
    let text = |pointer: &str| match status.pointer(pointer) {
        Some(Value::Bool(truth)) => Cell::Truth(*truth),
        Some(Value::Number(number)) => number.as_u64().into(),
        _ => Cell::Missing,
    };
    [
        http.name().into(),
        text("/ready"),
        ((counters.issued - last.issued) as u64).into(),
        ((counters.requests - last.requests) as u64).into(),
        match counters.p99_since(last) {
            None => Cell::Missing,
            Some(u64::MAX) => "more".into(),
            Some(p99) => format!("<{p99}").into(),
        },
        text("/machine/held"),
        text("/lease/windowLeftMs"),
        text("/lease/leadMs"),
        text("/lease/fenced"),
    ]
}

fn look(http: &Http) -> Result<(Value, Counters), Error> {
    Ok((
        http.json("/status")?,
        Counters::read(&http.get("/metrics")?.1),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_redrawn_and_other_output_is_appended() {
        let mut table = Table::new(["server", "IDs/s"]);
        table.row(["a".into(), 7u64.into()]);
        let text = table.render(Output::Text);
        assert_eq!(
            screen(&table, Output::Text, true, 3),
            format!("\u{1b}[H\u{1b}[J{text}")
        );
        assert_eq!(screen(&table, Output::Text, false, 0), text);
        assert_eq!(screen(&table, Output::Csv, false, 1), "a,7\n");
        assert_eq!(screen(&table, Output::Text, false, 1), text);
        let json = "{\"server\":\"a\",\"idsPerSecond\":7}\n";
        assert_eq!(screen(&table, Output::Json, false, 1), json);
    }

    #[test]
    fn p99_covers_only_the_last_second() {
        let text = |fast: u32, slow: u32| {
            format!(
                "vesta_ids_issued_total{{token=\"\"}} {fast}\nvesta_requests_total{{method=\"/genid\",outcome=\"OK\"}} {slow}\n\
                 vesta_request_duration_seconds_bucket{{le=\"0.00001\",method=\"x\"}} {fast}\n\
                 vesta_request_duration_seconds_bucket{{le=\"0.001\",method=\"x\"}} {slow}\n\
                 vesta_request_duration_seconds_bucket{{le=\"+Inf\",method=\"x\"}} {slow}\n"
            )
        };
        let (first, second) = (
            Counters::read(&text(1000, 1000)),
            Counters::read(&text(1098, 1100)),
        );
        assert_eq!(
            second.p99_since(&first),
            Some(1000),
            "98 of 100 are faster than 10 µs"
        );
        assert_eq!(
            Counters::read(&text(1099, 1100)).p99_since(&first),
            Some(10)
        );
        assert_eq!(first.p99_since(&first), None);
        assert_eq!((second.issued, second.requests), (1098.0, 1100.0));
    }
}
