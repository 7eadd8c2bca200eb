//! REST with client and servers on the same cores: the default number of workers compared with
//! others.

use tokio::task::block_in_place;

use crate::Failure;
use crate::child::Server;
use crate::load::{Plan, Protocol, Round, round};
use crate::programs::Programs;
use crate::report::{Bar, Cell, Limit, Row, Table};
use crate::stats::Spread;

/// Numbers of connections.
const LEVELS: [usize; 2] = [8, 64];

/// Limit on the p99 of the default, relative to that of the best number.
const MOST: f64 = 1.5;

/// Rounds of all servers in turns.
pub(crate) fn measure(
    programs: &Programs,
    cores: usize,
    plan: impl Fn(Protocol, usize) -> Plan,
    rounds: usize,
) -> Result<Table, Failure> {
    let start = |workers: Option<usize>| -> Result<(String, Server), Failure> {
        let flags = workers.map(|workers| format!("--workers={workers}"));
        let name = workers.map_or("default".to_owned(), |workers| workers.to_string());
        Ok((name, programs.rest(flags.as_slice(), None)?))
    };
    let counts = (1..=cores).chain([cores * 2, cores * 4]).map(Some);
    let servers = [None]
        .into_iter()
        .chain(counts)
        .map(start)
        .collect::<Result<Vec<_>, _>>()?;
    let mut table = Table {
        title: "REST on shared cores, by number of workers",
        about: "Client and server share all cores. The last column is the p99 of the default divided by \
                that of this number, round by round."
            .to_owned(),
        headings: vec![
            "connections",
            "workers",
            "requests/s",
            "p50, µs",
            "p99, µs",
            "p99.9, µs",
            "default / this, p99",
        ],
        rows: vec![],
        bars: vec![],
    };
    for connections in LEVELS {
        let plan = plan(Protocol::Rest, connections);
        let mut found: Vec<Vec<Round>> = vec![vec![]; servers.len()];
        for number in 0..=rounds {
            for (found, (_, server)) in found.iter_mut().zip(&servers) {
                let round = block_in_place(|| round(plan, server.address, server.pid()))?;
                // Round 0 is a warm-up.
                found.extend((number > 0).then_some(round));
            }
        }
        let default: Vec<f64> = found[0].iter().map(|round| round.p99).collect();
        let mut worst: Option<Vec<f64>> = None;
        for (rounds, (name, _)) in found.iter().zip(&servers) {
            let of = |field: fn(&Round) -> f64| rounds.iter().map(field).collect::<Vec<_>>();
            let ratio: Vec<f64> = default
                .iter()
                .zip(of(|round| round.p99))
                .map(|(own, p99)| own / p99)
                .collect();
            table.rows.push(Row {
                labels: vec![connections.to_string(), name.clone()],
                cells: vec![
                    Cell(of(|round| round.per_second), 0),
                    Cell(of(|round| round.p50), 1),
                    Cell(of(|round| round.p99), 1),
                    Cell(of(|round| round.p999), 1),
                    Cell(ratio.clone(), 2),
                ],
            });
            let median = |values: &[f64]| Spread::of(values.iter().copied()).median;
            if worst
                .as_ref()
                .is_none_or(|worst| median(worst) < median(&ratio))
            {
                worst = Some(ratio);
            }
        }
        table.bars.push(Bar {
            what: format!("REST on shared cores, {connections} connections: p99, default / best"),
            values: worst.unwrap_or_default(),
            limit: Limit::AtMost(MOST),
        });
    }
    Ok(table)
}
