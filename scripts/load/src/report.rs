//! The results as Markdown and as JSON, and the bars that they are checked against.

mod table;

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::cli::Settings;
use crate::cores::Halves;
use crate::load::{Plan, Protocol, Round};
use crate::prefetch;
use crate::proc::Machine;
use crate::stats::{Spread, interval_of_median, ratios};
use table::head as table;
pub(crate) use table::{Cell, Row, Table};

/// Everything that was measured, round by round.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    rounds: usize,
    round: Duration,
    long_rounds: usize,
    /// Threads that send requests.
    pub(crate) threads: usize,
    /// Cores of servers and client in the comparisons with bare servers.
    #[serde(skip)]
    pub(crate) halves: Option<Halves>,
    cores: String,
    calibration: bool,
    pub(crate) unary: Vec<Comparison>,
    pub(crate) prefetch: Option<prefetch::Found>,
    pub(crate) tables: Vec<Table>,
}

/// Vesta and a bare server, round by round.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) protocol: Protocol,
    pub(crate) in_flight: usize,
    pub(crate) names: [&'static str; 2],
    pub(crate) vesta: Vec<Round>,
    pub(crate) peer: Vec<Round>,
}

/// Numbers whose median must keep a limit.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    pub(crate) what: String,
    pub(crate) values: Vec<f64>,
    pub(crate) limit: Limit,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

impl Limit {
    fn keeps(self, value: f64) -> bool {
        match self {
            Limit::AtLeast(limit) => value >= limit,
            Limit::AtMost(limit) => value <= limit,
        }
    }
}

impl Bar {
    fn median(&self) -> f64 {
        Spread::of(self.values.iter().copied()).median
    }

    pub(crate) fn met(&self) -> bool {
        self.limit.keeps(self.median())
    }

    /// True if the median's confidence interval is on one side of the limit.
    fn sure(&self) -> bool {
        interval_of_median(self.values.iter().copied())
            .is_some_and(|(from, to)| self.limit.keeps(from) == self.limit.keeps(to))
    }
}

impl Comparison {
    /// Adjacent rounds: Vesta's value and the other's.
    fn pairs(&self, field: fn(&Round) -> f64) -> Vec<(f64, f64)> {
        self.vesta
            .iter()
            .map(field)
            .zip(self.peer.iter().map(field))
            .collect()
    }
}

/// Requests/s of Vesta, divided by those of the bare server.
const PARITY: f64 = 0.98;
/// The same ratio for `/v1/id` and `/genid`.
const JSON_PARITY: f64 = 0.95;
/// Limit on the CPU of an untraced request to a server that would trace it, relative to one that would
/// not.
const UNTRACED: f64 = 1.01;
/// Limit on the CPU of a call to `vesta serve`, relative to one to vesta-server.
const PROGRAMS: f64 = 1.02;
/// Limit on the latency of one, relative to the other.
const LATENCY: f64 = 1.05;
/// The columns of a comparison: heading, value, decimals.
type Column = (&'static str, fn(&Round) -> f64, usize);
const COLUMNS: [Column; 5] = [
    ("requests/s", |round| round.per_second, 0),
    ("p50, µs", |round| round.p50, 1),
    ("p99, µs", |round| round.p99, 1),
    ("p99.9, µs", |round| round.p999, 1),
    ("server CPU, µs/request", |round| round.server_cpu, 2),
];

impl Results {
    pub(crate) fn new(machine: Machine, settings: &Settings, halves: Option<Halves>) -> Self {
        let (threads, cores) = match &halves {
            None => (
                machine.cores,
                "client and servers share all cores".to_owned(),
            ),
            Some(Halves { servers, client }) => {
                let (servers, client) = (servers.count(), client.count());
                let cores = format!("servers have {servers} of the cores, the client has {client}");
                (client as usize, cores)
            }
        };
        Self {
            threads: settings.threads.unwrap_or(threads),
            halves,
            cores,
            machine,
            rounds: settings.rounds,
            round: settings.round,
            long_rounds: settings.long_rounds,
            calibration: settings.calibrate,
            unary: Vec::new(),
            prefetch: None,
            tables: Vec::new(),
        }
    }

    /// A round of requests with this many in flight.
    pub(crate) fn plan(&self, settings: &Settings, in_flight: usize) -> Plan {
        Plan {
            protocol: Protocol::Grpc,
            in_flight,
            threads: self.threads,
            duration: settings.round,
            cores: self.halves.map(|halves| halves.client),
        }
    }

    /// The limits for these results.
    pub(crate) fn bars(&self) -> Vec<Bar> {
        let mut bars = Vec::new();
        let mut bar = |what: String, values: Vec<f64>, limit| {
            bars.push(Bar {
                what,
                values,
                limit,
            });
        };
        for row in &self.unary {
            let [server, beside] = row.names;
            let what = |of| format!("{server} / {beside}, {} in flight: {of}", row.in_flight);
            let ratio = |field| ratios(&row.pairs(field)).collect();
            let parity = if row.protocol == Protocol::Json {
                JSON_PARITY
            } else {
                PARITY
            };
            let most_cpu = match row.protocol {
                Protocol::Traces => Some(UNTRACED),
                Protocol::Programs => Some(PROGRAMS),
                _ => None,
            };
            if let Some(most) = most_cpu {
                let cpu = ratio(|round| round.server_cpu);
                bar(what("server CPU of a request"), cpu, Limit::AtMost(most));
                continue;
            }
            bar(
                what("requests/s"),
                ratio(|round| round.per_second),
                Limit::AtLeast(parity),
            );
            bar(
                what("p99"),
                ratio(|round| round.p99),
                Limit::AtMost(LATENCY),
            );
        }
        bars.extend(
            self.tables
                .iter()
                .flat_map(|table| table.bars.iter().cloned()),
        );
        bars
    }

    pub(crate) fn markdown(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "{}.\n", self.machine)?;
        let round = self.round.as_secs_f64();
        writeln!(
            out,
            "Each number is the median of {} rounds (of {} for idling, prefetching and single IDs beside batches), with \
             the smallest and the largest. A ratio is the median of the ratios of rounds next to each \
             other. Rounds of requests take {round} s, in turns with the bare server, from {} of one \
             client on the same machine; there, {}. All servers use the same allocator, and a \
             runtime of one thread for each core.",
            self.rounds,
            self.long_rounds,
            if self.threads == 1 {
                "1 thread".to_owned()
            } else {
                format!("{} threads", self.threads)
            },
            self.cores,
        )?;
        let others = self
            .unary
            .iter()
            .flat_map(|row| row.vesta.iter().chain(&row.peer));
        let others = Spread::of(others.map(|round| round.others));
        if !self.unary.is_empty() {
            writeln!(
                out,
                "\nOther work on this machine took {} cores meanwhile.",
                others.show(2)
            )?;
        }
        if self.calibration {
            writeln!(out, "\n**A calibration: both servers are the bare one.**")?;
        }
        self.write_unary(out)?;
        self.write_prefetch(out)?;
        self.tables.iter().try_for_each(|table| table.write(out))?;
        self.write_bars(out)
    }

    fn write_unary(&self, out: &mut String) -> std::fmt::Result {
        for (protocol, title) in [
            (Protocol::Grpc, "gRPC, unary `GenId`"),
            (
                Protocol::Programs,
                "gRPC, unary `GenId` of `vesta serve` beside `vesta-server`",
            ),
            (Protocol::Rest, "REST, `GET /genid`"),
            (Protocol::Json, "REST, `GET /v1/id` beside `GET /genid`"),
            (
                Protocol::Traces,
                "REST, `GET /genid` of callers that are not traced",
            ),
        ] {
            let mut rows = self
                .unary
                .iter()
                .filter(|row| row.protocol == protocol)
                .peekable();
            if rows.peek().is_none() {
                continue;
            }
            let headings = COLUMNS.map(|(heading, ..)| heading);
            table(
                out,
                title,
                ["in flight", "server"].into_iter().chain(headings),
            )?;
            for row in rows {
                for (name, rounds) in row.names.iter().zip([&row.vesta, &row.peer]) {
                    write!(out, "| {} | {name} |", row.in_flight)?;
                    for (_, value, decimals) in COLUMNS {
                        let spread = Spread::of(rounds.iter().map(value));
                        write!(out, " {} |", spread.show(decimals))?;
                    }
                    writeln!(out)?;
                }
                write!(out, "| {} | **ratio** |", row.in_flight)?;
                for (_, value, _) in COLUMNS {
                    write!(
                        out,
                        " **{}** |",
                        Spread::of_ratios(&row.pairs(value)).show(3)
                    )?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }

    fn write_prefetch(&self, out: &mut String) -> std::fmt::Result {
        let Some(found) = &self.prefetch else {
            return Ok(());
        };
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        table(
            out,
            "A prefetching client of vesta-server",
            ["what", "figure"],
        )?;
        for (what, values, decimals) in [
            ("one ID from memory, ns", &found.client, 2),
            ("one ID from an embedded service, ns", &found.embedded, 2),
            ("IDs/s of a caller that never stops", &found.sustained, 0),
            ("server CPU meanwhile, % of a core", &found.server_cpu, 1),
        ] {
            writeln!(out, "| {what} | {} |", of(values).show(decimals))?;
        }
        Ok(())
    }

    fn write_bars(&self, out: &mut String) -> std::fmt::Result {
        table(
            out,
            "Bars",
            ["what", "median", "where it is by 95 %", "limit", "met"],
        )?;
        for bar in self.bars() {
            let (sign, limit) = match bar.limit {
                Limit::AtLeast(limit) => ("≥", limit),
                Limit::AtMost(limit) => ("≤", limit),
            };
            let interval = match interval_of_median(bar.values.iter().copied()) {
                Some((from, to)) => format!("{from:.3}–{to:.3}"),
                None => "too few rounds".to_owned(),
            };
            let met = match (bar.met(), bar.sure()) {
                (true, true) => "yes",
                (true, false) => "yes, within the noise",
                (false, false) => "no, within the noise",
                (false, true) => "**no**",
            };
            let (what, median) = (&bar.what, bar.median());
            writeln!(
                out,
                "| {what} | {median:.3} | {interval} | {sign} {limit:.3} | {met} |"
            )?;
        }
        Ok(())
    }
}
