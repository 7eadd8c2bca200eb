//! REST callers that together want more than the layout has: the latency of served calls, and the
//! longest time without any answer.

use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::task::JoinSet;
use tokio::time::Instant;
use vesta_intf::IdMeta;

use crate::Failure;
use crate::load::{Caller as _, latencies, rest};
use crate::programs::Programs;
use crate::report::{Bar, Cell, Limit, Row, Table};

/// Callers, each of which asks again at once.
const CALLERS: usize = 64;

/// A layout in seconds with so few IDs that the callers want several times as many.
const LAYOUT: IdMeta = IdMeta::JS_SAFE;

/// Limits with pacing, in milliseconds: of a served call beyond its fair share of waiting, and of a
/// time without any answer.
const BEYOND_SHARE: f64 = 10.0;
const WITHOUT_ANSWER: f64 = 20.0;

/// Answers received by one caller.
struct Seen {
    latency: Histogram<u64>,
    served: Vec<Instant>,
    refused: u32,
}

pub(crate) async fn measure(
    programs: &Programs,
    rounds: usize,
    length: Duration,
) -> Result<Table, Failure> {
    let capacity = LAYOUT.capacity_per_second() as f64;
    let share = CALLERS as f64 / capacity * 1000.0;
    let mut table = Table {
        title: "REST beyond the capacity of the layout",
        about: format!(
            "{CALLERS} callers of a layout with {capacity} IDs/s ({}), each of which asks again at once. \
             The fair share of waiting is {share:.1} ms a call.",
            LAYOUT.name()
        ),
        headings: vec![
            "pacing",
            "served, % of capacity",
            "p50, ms",
            "p99, ms",
            "p99.9, ms",
            "longest, ms",
            "longest time without any answer, ms",
            "refused/s",
        ],
        rows: vec![],
        bars: vec![],
    };
    for pacing in [false, true] {
        let columns = columns(programs, pacing, rounds, length).await?;
        if pacing {
            let [_, _, p99, _, _, gap, _] = &columns;
            for (what, values, limit) in [
                ("p99 of a call, ms", p99, share + BEYOND_SHARE),
                ("longest time without any answer, ms", gap, WITHOUT_ANSWER),
            ] {
                table.bars.push(Bar {
                    what: format!("REST beyond the capacity, pacing: {what}"),
                    values: values.clone(),
                    limit: Limit::AtMost(limit),
                });
            }
        }
        table.rows.push(Row {
            labels: vec![if pacing { "yes" } else { "no" }.to_owned()],
            cells: columns.into_iter().map(|values| Cell(values, 1)).collect(),
        });
    }
    Ok(table)
}

/// The columns of one server, round by round.
async fn columns(
    programs: &Programs,
    pacing: bool,
    rounds: usize,
    length: Duration,
) -> Result<[Vec<f64>; 7], Failure> {
    let capacity = LAYOUT.capacity_per_second() as f64;
    let pacing = pacing.then_some("--pacing=true");
    let flags = ["--layout", LAYOUT.name()]
        .into_iter()
        .chain(pacing)
        .collect::<Vec<_>>();
    let server = programs.rest(&flags, None)?;
    let mut columns: [Vec<f64>; 7] = Default::default();
    for number in 0..=rounds {
        let callers = rest::callers(rest::TEXT, server.address, CALLERS).await?;
        let began = Instant::now();
        let end = began + length;
        let tasks: JoinSet<Result<Seen, Failure>> = callers
            .into_iter()
            .map(|mut caller| async move {
                let mut seen = Seen {
                    latency: latencies(),
                    served: vec![],
                    refused: 0,
                };
                let mut sent = Instant::now();
                while sent < end {
                    let served = caller.call().await.is_ok();
                    let now = Instant::now();
                    if served {
                        seen.latency
                            .record(u64::try_from((now - sent).as_nanos())?)?;
                        seen.served.push(now);
                    } else {
                        seen.refused += 1;
                        caller.reopen().await?;
                    }
                    sent = now;
                }
                Ok(seen)
            })
            .collect();
        let (mut latency, mut served, mut refused) = (latencies(), vec![began], 0);
        for seen in tasks.join_all().await {
            let seen = seen?;
            latency.add(seen.latency)?;
            served.extend(seen.served);
            refused += seen.refused;
        }
        served.sort();
        let gap = served
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .max()
            .unwrap_or_default();
        // Round 0 is a warm-up.
        if number > 0 {
            // Whole seconds contain the same number of ticks, wherever they begin.
            let in_time = served.iter().filter(|at| **at <= end).count() as f64;
            let millis = |quantile| latency.value_at_quantile(quantile) as f64 / 1e6;
            for (column, value) in columns.iter_mut().zip([
                in_time / length.as_secs_f64() / capacity * 100.0,
                millis(0.5),
                millis(0.99),
                millis(0.999),
                millis(1.0),
                gap.as_secs_f64() * 1000.0,
                f64::from(refused) / length.as_secs_f64(),
            ]) {
                column.push(value);
            }
        }
    }
    Ok(columns)
}
