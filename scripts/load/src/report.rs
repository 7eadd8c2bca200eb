//! The results as Markdown and as JSON, and the bars that they are held against.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use vesta_intf::IdMeta;

use crate::cli::Settings;
use crate::load::{Protocol, Round};
use crate::proc::Machine;
use crate::stats::Spread;
use crate::{batch, idle, prefetch};

/// Everything that was measured, round by round.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    machine: Machine,
    rounds: usize,
    round: Duration,
    /// That make requests.
    pub(crate) threads: usize,
    calibration: bool,
    pub(crate) unary: Vec<Comparison>,
    pub(crate) batch: Vec<BatchRow>,
    pub(crate) idle: Vec<IdleRow>,
    pub(crate) prefetch: Option<prefetch::Found>,
}

/// Vesta and a server that does nothing, round by round.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) protocol: Protocol,
    pub(crate) in_flight: usize,
    pub(crate) names: [&'static str; 2],
    pub(crate) vesta: Vec<Round>,
    pub(crate) peer: Vec<Round>,
}

/// One way to take many IDs over one connection.
#[derive(Debug, Serialize)]
pub(crate) struct BatchRow {
    layout: String,
    call: &'static str,
    /// IDs/s that the layout has.
    capacity: u64,
    windows: Vec<batch::Window>,
}

/// One server that nobody asks.
#[derive(Debug, Serialize)]
pub(crate) struct IdleRow {
    pub(crate) program: &'static str,
    pub(crate) windows: Vec<idle::Window>,
}

/// A number and the limit it must keep.
#[derive(Debug)]
pub(crate) struct Bar {
    what: String,
    value: f64,
    limit: Limit,
}

#[derive(Debug)]
enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

impl Bar {
    pub(crate) fn met(&self) -> bool {
        match self.limit {
            Limit::AtLeast(limit) => self.value >= limit,
            Limit::AtMost(limit) => self.value <= limit,
        }
    }
}

impl Comparison {
    fn ratio(&self, field: fn(&Round) -> f64) -> Spread {
        let values = |rounds: &[Round]| rounds.iter().map(field).collect::<Vec<_>>();
        Spread::ratio(&values(&self.vesta), &values(&self.peer))
    }
}

impl BatchRow {
    pub(crate) fn new(meta: &IdMeta, call: &'static str, windows: Vec<batch::Window>) -> Self {
        let (layout, capacity) = (meta.name().to_owned(), meta.capacity_per_second());
        Self { layout, call, capacity, windows }
    }

    fn of_capacity(&self) -> Spread {
        let share = |window: &batch::Window| window.ids_per_second / self.capacity as f64 * 100.0;
        Spread::of(self.windows.iter().map(share))
    }

    fn server_cpu(&self) -> Spread {
        Spread::of(self.windows.iter().map(|window| window.server_cpu))
    }
}

/// Vesta against the bare server, and the other way round for times.
const PARITY: f64 = 0.95;
/// Percent.
const OF_CAPACITY: f64 = 99.5;
/// Percent of a core.
const BATCH_CPU: f64 = 10.0;

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
    pub(crate) fn new(machine: Machine, settings: &Settings) -> Self {
        Self {
            threads: settings.threads.unwrap_or(machine.cores),
            machine,
            rounds: settings.rounds,
            round: settings.round,
            calibration: settings.calibrate,
            unary: Vec::new(),
            batch: Vec::new(),
            idle: Vec::new(),
            prefetch: None,
        }
    }

    /// What must hold of these results.
    pub(crate) fn bars(&self) -> Vec<Bar> {
        let mut bars = Vec::new();
        let mut bar = |what: String, value, limit| bars.push(Bar { what, value, limit });
        for row in &self.unary {
            let what = |of| format!("{:?}, {} in flight: {of}", row.protocol, row.in_flight);
            let rate = row.ratio(|round| round.per_second).median;
            bar(what("requests/s"), rate, Limit::AtLeast(PARITY));
            bar(what("p99"), row.ratio(|round| round.p99).median, Limit::AtMost(1.0 / PARITY));
        }
        for row in &self.batch {
            let what = |of| format!("{}, {}: {of}", row.layout, row.call);
            bar(what("% of capacity"), row.of_capacity().median, Limit::AtLeast(OF_CAPACITY));
            bar(what("server, % of a core"), row.server_cpu().median, Limit::AtMost(BATCH_CPU));
        }
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
            "Each number is the median of {} rounds, with the smallest and the largest. A ratio is \
             that of the medians, with the range of the pairs of rounds. Rounds of requests take \
             {round} s, from {} threads of one client on the same machine, in turns with the bare \
             server; all servers use the same allocator.",
            self.rounds, self.threads
        )?;
        if self.calibration {
            writeln!(out, "\n**A calibration: both servers are the bare one.**")?;
        }
        self.write_unary(out)?;
        self.write_batch(out)?;
        self.write_idle(out)?;
        self.write_prefetch(out)?;
        self.write_bars(out)
    }

    fn write_unary(&self, out: &mut String) -> std::fmt::Result {
        for (protocol, title) in
            [(Protocol::Grpc, "gRPC, unary `GenId`"), (Protocol::Rest, "REST, `GET /genid`")]
        {
            let mut rows = self.unary.iter().filter(|row| row.protocol == protocol).peekable();
            if rows.peek().is_none() {
                continue;
            }
            let headings = COLUMNS.map(|(heading, ..)| heading);
            table(out, title, ["in flight", "server"].into_iter().chain(headings))?;
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
                    write!(out, " **{}** |", row.ratio(value).show(3))?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }

    fn write_batch(&self, out: &mut String) -> std::fmt::Result {
        if self.batch.is_empty() {
            return Ok(());
        }
        let headings = ["layout", "call", "IDs/s", "% of capacity", "server CPU, % of a core"];
        table(out, "Batches over one connection", headings)?;
        for row in &self.batch {
            let rate = Spread::of(row.windows.iter().map(|window| window.ids_per_second));
            writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                row.layout,
                row.call,
                rate.show(0),
                row.of_capacity().show(2),
                row.server_cpu().show(1)
            )?;
        }
        Ok(())
    }

    fn write_idle(&self, out: &mut String) -> std::fmt::Result {
        if self.idle.is_empty() {
            return Ok(());
        }
        table(out, "Idle", ["program", "CPU, % of a core", "voluntary context switches/s"])?;
        for row in &self.idle {
            let cpu = Spread::of(row.windows.iter().map(|window| window.cpu));
            let switches = Spread::of(row.windows.iter().map(|window| window.switches_per_second));
            writeln!(out, "| {} | {} | {} |", row.program, cpu.show(2), switches.show(1))?;
        }
        Ok(())
    }

    fn write_prefetch(&self, out: &mut String) -> std::fmt::Result {
        let Some(found) = &self.prefetch else { return Ok(()) };
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        table(out, "A prefetching client of vesta-server", ["what", ""])?;
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
        table(out, "Bars", ["what", "value", "limit", "met"])?;
        for bar in self.bars() {
            let (sign, limit) = match bar.limit {
                Limit::AtLeast(limit) => ("≥", limit),
                Limit::AtMost(limit) => ("≤", limit),
            };
            let met = if bar.met() { "yes" } else { "**no**" };
            writeln!(out, "| {} | {:.3} | {sign} {limit:.3} | {met} |", bar.what, bar.value)?;
        }
        Ok(())
    }
}

fn table<'a>(
    out: &mut String,
    title: &str,
    headings: impl IntoIterator<Item = &'a str>,
) -> std::fmt::Result {
    let headings: Vec<_> = headings.into_iter().collect();
    writeln!(out, "\n## {title}\n\n| {} |", headings.join(" | "))?;
    writeln!(out, "|{}", "---|".repeat(headings.len()))
}
