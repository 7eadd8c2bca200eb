//! Client and servers on the same cores: the default number of workers compared with others.

use tokio::task::block_in_place;

use crate::Failure;
use crate::child::Server;
use crate::load::{Plan, Protocol, Round, round};
use crate::programs::Programs;
use crate::report::{Bar, Cell, Limit, Row, Table};
use crate::stats::{Spread, ratios};

/// Numbers of connections.
const LEVELS: [usize; 2] = [8, 64];

/// Limits on the default, relative to the best number.
const LEAST_REQUESTS: f64 = 0.9;
const MOST_P99: f64 = 1.5;

/// Rounds of all servers in turns.
pub(crate) fn measure(
    programs: &Programs,
    protocol: Protocol,
    cores: usize,
    plan: impl Fn(Protocol, usize) -> Plan,
    rounds: usize,
) -> Result<Table, Failure> {
    let (front, title) = match protocol {
        Protocol::Grpc => ("gRPC", "gRPC on shared cores, by number of workers"),
        _ => ("REST", "REST on shared cores, by number of workers"),
    };
    let start = |workers: Option<usize>| -> Result<(String, Server), Failure> {
        let flag = workers.map(|workers| format!("--workers={workers}"));
        let name = workers.map_or("default".to_owned(), |workers| workers.to_string());
        let server = if protocol == Protocol::Grpc {
            let flags = ["--namespace=workers"].into_iter().chain(flag.as_deref());
            programs.server("max-peak", &flags.collect::<Vec<_>>(), None)?
        } else {
            programs.rest(flag.as_slice(), None)?
        };
        Ok((name, server))
    };
    let counts = (1..=cores).chain([cores * 2, cores * 4]).map(Some);
    let servers = [None]
        .into_iter()
        .chain(counts)
        .map(start)
        .collect::<Result<Vec<_>, _>>()?;
    let mut table = Table {
        title,
        about: "Client and server share all cores. The last columns are the default's requests/s and p99 divided by \
                those of this number, round by round."
            .to_owned(),
        headings: vec![
            "connections",
            "workers",
            "requests/s",
            "p50, µs",
            "p99, µs",
            "p99.9, µs",
            "default / this, requests/s",
            "default / this, p99",
        ],
        rows: vec![],
        bars: vec![],
    };
    for connections in LEVELS {
        let plan = plan(protocol, connections);
        let mut found: Vec<Vec<Round>> = vec![vec![]; servers.len()];
        for number in 0..=rounds {
            // Each round begins with another server: the end of one disturbs the next.
            for turn in number..number + servers.len() {
                let (_, server) = &servers[turn % servers.len()];
                let round = block_in_place(|| round(plan, server.address, server.pid()))?;
                // Round 0 is a warm-up.
                found[turn % servers.len()].extend((number > 0).then_some(round));
            }
        }
        let beside = |rounds: &[Round], field: fn(&Round) -> f64| {
            let pairs: Vec<_> = found[0]
                .iter()
                .zip(rounds)
                .map(|(own, it)| (field(own), field(it)))
                .collect();
            ratios(&pairs).collect::<Vec<_>>()
        };
        let (mut requests, mut tails) = (vec![], vec![]);
        for (rounds, (name, _)) in found.iter().zip(&servers) {
            let of = |field: fn(&Round) -> f64| rounds.iter().map(field).collect::<Vec<_>>();
            requests.push(beside(rounds, |round| round.per_second));
            tails.push(beside(rounds, |round| round.p99));
            table.rows.push(Row {
                labels: vec![connections.to_string(), name.clone()],
                cells: vec![
                    Cell(of(|round| round.per_second), 0),
                    Cell(of(|round| round.p50), 1),
                    Cell(of(|round| round.p99), 1),
                    Cell(of(|round| round.p999), 1),
                    Cell(requests[requests.len() - 1].clone(), 2),
                    Cell(tails[tails.len() - 1].clone(), 2),
                ],
            });
        }
        let median = |values: &Vec<f64>| Spread::of(values.iter().copied()).median;
        let by_median = |one: &Vec<f64>, other: &Vec<f64>| median(one).total_cmp(&median(other));
        let bar = |what, values: Option<Vec<f64>>, limit| Bar {
            what: format!(
                "{front} on shared cores, {connections} connections: {what}, default / best"
            ),
            values: values.unwrap_or_default(),
            limit,
        };
        let (fewest, longest) = (
            requests.into_iter().min_by(by_median),
            tails.into_iter().max_by(by_median),
        );
        table
            .bars
            .push(bar("requests/s", fewest, Limit::AtLeast(LEAST_REQUESTS)));
        table
            .bars
            .push(bar("p99", longest, Limit::AtMost(MOST_P99)));
    }
    Ok(table)
}
