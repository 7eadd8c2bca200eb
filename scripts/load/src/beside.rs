//! Single IDs beside callers of large batches that never pause: the latency of single IDs, and the
//! rate that is left for the batch callers.

use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use vesta_intf::MAX_RUN_IDS_PER_CALL;
use vesta_intf::grpc::v1::{GenIdRequest, GenRunsRequest};

use crate::Failure;
use crate::load::{Client, client, latencies};
use crate::programs::Programs;
use crate::report::{Bar, Cell, Limit, Row, Table};

/// Callers of single IDs. Each has one call due per interval; a late call does not postpone the
/// next.
const SINGLES: usize = 16;
const EVERY: Duration = Duration::from_millis(4);

/// The batch callers: their number, and the time after which each cancels its call.
const BATCHES: [(usize, Option<Duration>); 3] =
    [(0, None), (1, None), (6, Some(Duration::from_millis(4)))];

const P99_MILLIS: f64 = 20.0;

pub(crate) async fn measure(
    programs: &Programs,
    rounds: usize,
    length: Duration,
) -> Result<Table, Failure> {
    let mut table = Table {
        title: "Single IDs beside large batches",
        about: format!(
            "{SINGLES} callers of GenId, each every {} ms, beside callers of \
             GenRuns({MAX_RUN_IDS_PER_CALL}) that never pause. vesta-server, max-peak, default settings.",
            EVERY.as_millis()
        ),
        headings: vec![
            "batch callers",
            "batch IDs/s",
            "single IDs/s",
            "p50 of a single ID, ms",
            "p99, ms",
            "longest, ms",
            "refused/s",
        ],
        rows: vec![],
        bars: vec![],
    };
    for (batches, cancel) in BATCHES {
        let namespace = format!("beside-{batches}");
        let server = programs.server("max-peak", &["--namespace", &namespace], None)?;
        let mut columns: [Vec<f64>; 6] = Default::default();
        for number in 0..=rounds {
            let end = Instant::now() + length;
            let mut callers = JoinSet::new();
            for _ in 0..batches {
                callers.spawn(batch(client(server.address).await?, cancel, end));
            }
            let mut singles = JoinSet::new();
            for _ in 0..SINGLES {
                singles.spawn(single(client(server.address).await?, end));
            }
            let (mut latency, mut refused) = (latencies(), 0);
            for seen in singles.join_all().await {
                let (seen, not_served) = seen?;
                latency.add(seen)?;
                refused += not_served;
            }
            let ids = callers
                .join_all()
                .await
                .into_iter()
                .sum::<Result<u64, Failure>>()?;
            let (millis, seconds) = (
                |quantile| latency.value_at_quantile(quantile) as f64 / 1e6,
                length.as_secs_f64(),
            );
            let values = [
                ids as f64 / seconds,
                (latency.len() - refused) as f64 / seconds,
                millis(0.5),
                millis(0.99),
                millis(1.0),
                refused as f64 / seconds,
            ];
            // Round 0 is a warm-up.
            if number > 0 {
                columns
                    .iter_mut()
                    .zip(values)
                    .for_each(|(column, value)| column.push(value));
            }
        }
        let who = match cancel {
            Some(after) => format!("{batches}, which cancel after {} ms", after.as_millis()),
            None => batches.to_string(),
        };
        if batches > 0 {
            table.bars.push(Bar {
                what: format!("p99 of a single ID beside batch callers ({who}), ms"),
                values: columns[3].clone(),
                limit: Limit::AtMost(P99_MILLIS),
            });
        }
        let cells = columns.into_iter().map(|values| Cell(values, 2)).collect();
        table.rows.push(Row {
            labels: vec![who],
            cells,
        });
    }
    Ok(table)
}

/// IDs received by a caller that asks again at once.
async fn batch(mut client: Client, cancel: Option<Duration>, end: Instant) -> Result<u64, Failure> {
    let mut ids = 0;
    while Instant::now() < end {
        let call = client.gen_runs(GenRunsRequest {
            count: MAX_RUN_IDS_PER_CALL,
        });
        let answer = match cancel {
            Some(after) => timeout(after, call).await.ok(),
            None => Some(call.await),
        };
        match answer {
            Some(Ok(runs)) => {
                ids += runs
                    .into_inner()
                    .runs
                    .iter()
                    .map(|run| u64::from(run.count))
                    .sum::<u64>();
            }
            // A refused caller that honours its hint retries later.
            Some(Err(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
            None => {}
        }
    }
    Ok(ids)
}

/// Latencies of its answers, and the number of refusals among them.
async fn single(mut client: Client, end: Instant) -> Result<(Histogram<u64>, u64), Failure> {
    let (mut seen, mut refused) = (latencies(), 0);
    let mut turn = interval(EVERY);
    turn.set_missed_tick_behavior(MissedTickBehavior::Burst);
    loop {
        // Counted from the due time: a call that had to wait for the one before is late, too.
        let due = turn.tick().await;
        if due >= end {
            return Ok((seen, refused));
        }
        refused += u64::from(client.gen_id(GenIdRequest {}).await.is_err());
        seen.record(u64::try_from(due.elapsed().as_nanos())?)?;
    }
}
