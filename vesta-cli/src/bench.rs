//! `bench` and `top`: how fast a server is, and what it is doing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::scope;
use std::time::Duration;

use serde_json::json;
use vesta_boot::Error;
use vesta_service::{Clock as _, SystemClock};

use crate::cli::{BenchArgs, TopArgs};
use crate::generate::one_by_one;
use crate::http::Http;
use crate::output::{Output, csv_line, grouped, print, say};
use crate::{Answer, Done};

pub(crate) fn bench(args: &BenchArgs, output: Output) -> Done {
    let (over, done, failed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    // Fails here if there is no server.
    one_by_one(&args.server, &args.access)?()?;
    let clock = SystemClock::new();
    let began = clock.monotonic();
    let elapsed = || clock.monotonic() - began;
    let times = scope(|threads| {
        let caller = || -> Result<Vec<u32>, Error> {
            let mut call = one_by_one(&args.server, &args.access)?;
            let mut times = Vec::new();
            while !over.load(Relaxed) {
                let start = clock.monotonic();
                match call() {
                    Ok(_) => times.push(
                        u32::try_from((clock.monotonic() - start).as_micros()).unwrap_or(u32::MAX),
                    ),
                    Err(_) => _ = failed.fetch_add(1, Relaxed),
                }
                done.fetch_add(1, Relaxed);
            }
            Ok(times)
        };
        let callers: Vec<_> = (0..args.connections).map(|_| threads.spawn(caller)).collect();
        let mut before = 0;
        while elapsed() < args.duration {
            clock.park(Duration::from_secs(1).min(args.duration.saturating_sub(elapsed())));
            let so_far = done.load(Relaxed);
            say(&format!("{:3} s  {} requests/s", elapsed().as_secs(), grouped(so_far - before)));
            before = so_far;
        }
        over.store(true, Relaxed);
        let times = callers.into_iter().map(|caller| {
            caller.join().unwrap_or_else(|_| Err(Error::software("a caller", "it panicked")))
        });
        times.collect::<Result<Vec<_>, _>>()
    })?;
    let seconds = elapsed().as_secs_f64();
    let mut times: Vec<_> = times.into_iter().flatten().collect();
    times.sort_unstable();
    let at = |part: f64| {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let index = (times.len() as f64 * part) as usize;
        times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or(0)
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    let rate = (times.len() as f64 / seconds) as u64;
    let (p50, p99, p999) = (at(0.5), at(0.99), at(0.999));
    let errors = failed.load(Relaxed);
    print(&match output {
        Output::Text => format!(
            "{} requests/s, as many IDs/s, with {} connections for {seconds:.0} s\np50 {p50} µs  p99 {p99} µs  \
             p99.9 {p999} µs  errors {errors}\n",
            grouped(rate),
            args.connections
        ),
        Output::Json => {
            let json = json!({ "requestsPerSecond": rate, "p50Micros": p50, "p99Micros": p99, "p999Micros": p999, "errors": errors });
            format!("{json}\n")
        }
        Output::Csv => format!(
            "requests_per_second,p50_us,p99_us,p999_us,errors\n{rate},{p50},{p99},{p999},{errors}\n"
        ),
    })?;
    Ok(if errors == 0 { Answer::Yes } else { Answer::No })
}

/// The counters of a server at some time.
#[derive(Debug, Default, Clone)]
struct Counters {
    issued: f64,
    requests: f64,
    /// Requests up to each number of microseconds.
    buckets: BTreeMap<u64, f64>,
}

impl Counters {
    fn read(text: &str) -> Self {
        let mut counters = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            if name == "vesta_ids_issued_total" {
                counters.issued = value;
            } else if name.starts_with("vesta_requests_total{") {
                counters.requests += value;
            } else if name.starts_with("vesta_request_duration_seconds_bucket{") {
                let bound = name.split("le=\"").nth(1).and_then(|rest| rest.split('"').next());
                let seconds: f64 =
                    bound.and_then(|bound| bound.parse().ok()).unwrap_or(f64::INFINITY);
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let micros = (seconds * 1e6).round() as u64; // the largest number for +Inf
                *counters.buckets.entry(micros).or_default() += value;
            }
        }
        counters
    }

    /// The bucket in which the slowest hundredth of the requests since `before` begins, in microseconds.
    fn p99_since(&self, before: &Self) -> Option<u64> {
        let count = |bound: u64, all: &Self| all.buckets.get(&bound).copied().unwrap_or(0.0);
        let all = count(u64::MAX, self) - count(u64::MAX, before);
        let reached = |bound: &&u64| count(**bound, self) - count(**bound, before) >= 0.99 * all;
        if all > 0.0 { self.buckets.keys().find(reached).copied() } else { None }
    }
}

const NAMES: [&str; 9] = [
    "server",
    "ready",
    "IDs/s",
    "requests/s",
    "p99 µs",
    "machines",
    "window s",
    "lead ms",
    "fenced",
];

pub(crate) fn top(args: &TopArgs, output: Output) -> Done {
    let servers = args.servers.iter().map(|url| Ok((url, Http::new(url, &args.access)?)));
    let servers = servers.collect::<Result<Vec<_>, Error>>()?;
    let mut before: Vec<Option<Counters>> = vec![None; servers.len()];
    let widths = NAMES.map(|name| name.chars().count().max(8));
    let line = |cells: &[String]| match output {
        Output::Csv => csv_line(cells),
        _ => {
            let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}"));
            cells.collect::<Vec<_>>().join("  ") + "\n"
        }
    };
    if output != Output::Json {
        print(&line(&NAMES.map(str::to_owned)))?;
    }
    let (clock, mut round) = (SystemClock::new(), 0u64);
    while args.count.is_none_or(|count| round < count) {
        for ((url, http), before) in servers.iter().zip(&mut before) {
            let row = match look(http) {
                Err(error) => {
                    say(&error.to_string());
                    continue;
                }
                Ok((status, counters)) => {
                    let last = before.replace(counters.clone()).unwrap_or_else(|| counters.clone());
                    let text = |pointer: &str| match status.pointer(pointer) {
                        None | Some(serde_json::Value::Null) => "-".to_owned(),
                        Some(value) => value.to_string(),
                    };
                    let window =
                        status.pointer("/lease/windowLeftMs").and_then(serde_json::Value::as_u64);
                    let p99 = counters.p99_since(&last);
                    [
                        url.split("//").last().unwrap_or(url).to_owned(),
                        text("/ready"),
                        format!("{:.0}", counters.issued - last.issued),
                        format!("{:.0}", counters.requests - last.requests),
                        p99.map_or("-".to_owned(), |p99| {
                            if p99 == u64::MAX { "more".to_owned() } else { format!("<{p99}") }
                        }),
                        text("/machine/held"),
                        window.map_or("-".to_owned(), |left| (left / 1000).to_string()),
                        text("/lease/leadMs"),
                        text("/lease/fenced"),
                    ]
                }
            };
            print(&match output {
                Output::Json => {
                    let object: serde_json::Map<_, _> = NAMES
                        .iter()
                        .zip(&row)
                        .map(|(name, cell)| ((*name).to_owned(), cell.clone().into()))
                        .collect();
                    format!("{}\n", serde_json::Value::Object(object))
                }
                _ => line(&row),
            })?;
        }
        round += 1;
        if args.count.is_none_or(|count| round < count) {
            clock.park(Duration::from_secs(1));
        }
    }
    Ok(Answer::Yes)
}

fn look(http: &Http) -> Result<(serde_json::Value, Counters), Error> {
    Ok((http.json("/status")?, Counters::read(&http.get("/metrics")?.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_hundredth_is_that_of_the_last_second() {
        let text = |fast: u32, slow: u32| {
            format!(
                "vesta_ids_issued_total {fast}\nvesta_requests_total{{method=\"/genid\",outcome=\"OK\"}} {slow}\n\
                 vesta_request_duration_seconds_bucket{{le=\"0.00001\",method=\"x\"}} {fast}\n\
                 vesta_request_duration_seconds_bucket{{le=\"0.001\",method=\"x\"}} {slow}\n\
                 vesta_request_duration_seconds_bucket{{le=\"+Inf\",method=\"x\"}} {slow}\n"
            )
        };
        let (first, second) =
            (Counters::read(&text(1000, 1000)), Counters::read(&text(1098, 1100)));
        assert_eq!(second.p99_since(&first), Some(1000), "98 of 100 are faster than 10 µs");
        assert_eq!(Counters::read(&text(1099, 1100)).p99_since(&first), Some(10));
        assert_eq!(first.p99_since(&first), None);
        assert_eq!((second.issued, second.requests), (1098.0, 1100.0));
    }
}
