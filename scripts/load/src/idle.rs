//! Idle servers, all at once: none disturbs the others.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::Failure;
use crate::child::Server;
use crate::load::Protocol;
use crate::proc::{bytes_written, cpu_seconds, voluntary_switches};
use crate::programs::Programs;
use crate::report::{Bar, Cell, Limit, Row, Table};

/// Bound on the kilobytes per second written to disk with a pool in SQLite, by number of machine
/// IDs.
const MOST_WRITTEN: [(u64, f64); 2] = [(1, 6.0), (64, 40.0)];

/// Resources that a process has used so far.
struct Used {
    cpu_seconds: f64,
    switches: u64,
    bytes: u64,
}

impl Used {
    fn by(server: &Server) -> Result<Self, Failure> {
        let pid = server.pid();
        Ok(Self {
            cpu_seconds: cpu_seconds(pid)?,
            switches: voluntary_switches(pid)?,
            bytes: bytes_written(pid)?,
        })
    }
}

struct Idler {
    server: Server,
    /// Machine IDs; none for a bare server.
    machines: Option<u64>,
    /// Of one core, in percent.
    cpu: Vec<f64>,
    /// Voluntary context switches per second: how often a thread of the process was woken.
    switches: Vec<f64>,
    /// Kilobytes per second.
    written: Vec<f64>,
}

pub(crate) async fn measure(
    programs: &Programs,
    rounds: usize,
    length: Duration,
) -> Result<Table, Failure> {
    let mut idlers = start(programs)?;
    for round in 0..=rounds {
        let before = idlers.iter().map(|idler| Used::by(&idler.server));
        let before = before.collect::<Result<Vec<_>, _>>()?;
        let began = Instant::now();
        sleep(length).await;
        let seconds = began.elapsed().as_secs_f64();
        for (idler, before) in idlers.iter_mut().zip(before) {
            let now = Used::by(&idler.server)?;
            // Round 0 is a warm-up.
            if round > 0 {
                let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
                let cpu = now.cpu_seconds - before.cpu_seconds;
                idler.cpu.push(cpu / seconds * 100.0);
                idler.switches.push(rate(now.switches, before.switches));
                idler.written.push(rate(now.bytes, before.bytes) / 1000.0);
            }
        }
    }
    Ok(report(idlers))
}

/// Each server has its own state directory, because in a shared one they would write to the same pages.
/// Each also has its own namespace, because servers of one host avoid one another's machine IDs.
fn start(programs: &Programs) -> Result<Vec<Idler>, Failure> {
    let idler = |server, machines| Idler {
        server,
        machines,
        cpu: vec![],
        switches: vec![],
        written: vec![],
    };
    let mut idlers = Vec::new();
    for (machines, _) in MOST_WRITTEN {
        let flags = [
            format!("--machine-count={machines}"),
            format!("--namespace=idle-{machines}"),
            format!("--state-dir=idle-{machines}"),
        ];
        let flags = flags.each_ref().map(String::as_str);
        let server = programs.server("max-peak", &flags, None)?;
        idlers.push(idler(server, Some(machines)));
    }
    idlers.push(idler(programs.bare(Protocol::Grpc, None)?, None));
    let server = programs.rest(&["--state-dir=idle-rest"], None)?;
    idlers.push(idler(server, Some(1)));
    idlers.push(idler(programs.bare(Protocol::Rest, None)?, None));
    Ok(idlers)
}

fn report(idlers: Vec<Idler>) -> Table {
    let mut table = Table {
        title: "Idle",
        about:
            "The servers get no requests. Bytes written are `write_bytes` of `/proc/PID/io`: whole \
                pages, with the pool in SQLite."
                .to_owned(),
        headings: vec![
            "program",
            "machine IDs",
            "CPU, % of a core",
            "voluntary context switches/s",
            "written, kB/s",
        ],
        rows: vec![],
        bars: vec![],
    };
    for idler in idlers {
        let name = idler.server.name;
        let most = |(machines, most)| (Some(machines) == idler.machines).then_some(most);
        if let Some(most) = MOST_WRITTEN.into_iter().find_map(most) {
            let machines = idler.machines.unwrap_or_default();
            table.bars.push(Bar {
                what: format!("idle {name}, machine IDs: {machines}: written, kB/s"),
                values: idler.written.clone(),
                limit: Limit::AtMost(most),
            });
        }
        let machines = idler.machines.map_or_else(String::new, |n| n.to_string());
        table.rows.push(Row {
            labels: vec![name.to_owned(), machines],
            cells: vec![
                Cell(idler.cpu, 2),
                Cell(idler.switches, 1),
                Cell(idler.written, 1),
            ],
        });
    }
    table
}
