//! The whole comparison, in turns.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::block_in_place;
use tokio::time::sleep;

use crate::child::Server;
use crate::cli::{Part, Settings};
use crate::cores::Halves;
use crate::load::{Plan, Protocol, round};
use crate::proc::Machine;
use crate::programs::Programs;
use crate::report::{Comparison, Results};
use crate::{Failure, batches, beside, cap, idle, pool, prefetch, start, stop, workers};

const SETTLE: Duration = Duration::from_millis(50);

/// Runs the comparison and prints the results. True if every requested bar is met.
pub(crate) fn run(settings: &Settings) -> Result<bool, Failure> {
    let settings = settings.effective();
    if settings.rounds == 0 || settings.long_rounds == 0 || settings.levels.contains(&0) {
        return Err("--rounds, --long-rounds and --levels must be 1 or more".into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let halves = if settings.shared {
        None
    } else {
        Halves::of_all()?
    };
    let mut results = Results::new(Machine::here(), &settings, halves);
    let ended = runtime.block_on(async {
        let mut asked = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        // Whichever branch ends, the servers' guards are dropped, which stops them.
        tokio::select! {
            ended = everything(&settings, &mut results) => ended,
            _ = asked.recv() => Err("asked to stop".into()),
            _ = interrupted.recv() => Err("interrupted".into()),
        }
    });
    // Prints the results so far, even if the run did not finish.
    print!("{}", results.markdown());
    if let Some(file) = &settings.json {
        let text = serde_json::to_string_pretty(&results)?;
        std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    ended?;
    Ok(!settings.check || results.bars().iter().all(|bar| bar.met()))
}

async fn everything(settings: &Settings, results: &mut Results) -> Result<(), Failure> {
    let programs = Programs::find(settings)?;
    for (part, protocol) in [(Part::Grpc, Protocol::Grpc), (Part::Rest, Protocol::Rest)] {
        if settings.does(part) {
            unary(settings, &programs, protocol, results).await?;
        }
    }
    if settings.does(Part::Json) {
        json(settings, &programs, results).await?;
    }
    if settings.does(Part::Traces) {
        traces(settings, &programs, results).await?;
    }
    if settings.does(Part::Programs) {
        same_server(settings, &programs, results).await?;
    }
    let (rounds, long_rounds) = (settings.rounds, settings.long_rounds);
    if settings.does(Part::Idle) {
        tell("idle servers");
        results
            .tables
            .push(idle::measure(&programs, long_rounds, settings.idle_round).await?);
    }
    if settings.does(Part::Batches) {
        tell("all IDs over one connection");
        results
            .tables
            .push(batches::measure(&programs, rounds).await?);
    }
    if settings.does(Part::Workers) {
        let (threads, cores) = (results.machine.cores, None);
        let plan = |protocol, in_flight| Plan {
            protocol,
            in_flight,
            threads,
            duration: settings.round,
            cores,
        };
        for protocol in [Protocol::Rest, Protocol::Grpc] {
            tell("number of workers");
            let table = workers::measure(&programs, protocol, threads, plan, rounds)?;
            results.tables.push(table);
        }
    }
    if settings.does(Part::Cap) {
        tell("REST beyond the capacity");
        results
            .tables
            .push(cap::measure(&programs, long_rounds, settings.batch_round).await?);
    }
    if settings.does(Part::Beside) {
        tell("single IDs beside large batches");
        results
            .tables
            .push(beside::measure(&programs, long_rounds, settings.batch_round).await?);
    }
    if settings.does(Part::Pool) {
        tell("a pool server");
        let (sizes, lengths) = (
            pool::Sizes::of(settings.quick),
            (settings.batch_round, settings.idle_round),
        );
        results
            .tables
            .push(pool::measure(&programs, sizes, long_rounds, lengths).await?);
    }
    if settings.does(Part::Stop) {
        tell("stops");
        results
            .tables
            .push(stop::measure(&programs, long_rounds).await?);
    }
    if settings.does(Part::Start) {
        tell("starts");
        results.tables.push(start::measure(&programs, rounds)?);
    }
    if settings.does(Part::Prefetch) {
        let server = programs.server("max-peak", &["--namespace", "max-peak"], None)?;
        tell("a prefetching client");
        let (rounds, length) = (settings.long_rounds, settings.batch_round);
        results.prefetch =
            Some(prefetch::measure(server.address, server.pid(), rounds, length).await?);
    }
    Ok(())
}

async fn unary(
    settings: &Settings,
    programs: &Programs,
    protocol: Protocol,
    results: &mut Results,
) -> Result<(), Failure> {
    let cores = results.halves.as_ref().map(|halves| &halves.servers);
    let peer = programs.bare(protocol, cores)?;
    let vesta = match settings.calibrate {
        true => programs.bare(protocol, cores)?,
        false => programs.vesta(protocol, cores)?,
    };
    for &in_flight in &settings.levels {
        let plan = results.plan(settings, in_flight);
        let sides = [(protocol, &vesta, vesta.name), (protocol, &peer, peer.name)];
        results
            .unary
            .push(compare(plan, settings.rounds, sides).await?);
    }
    Ok(())
}

/// Two endpoints of one server.
async fn json(
    settings: &Settings,
    programs: &Programs,
    results: &mut Results,
) -> Result<(), Failure> {
    let cores = results.halves.as_ref().map(|halves| &halves.servers);
    let server = programs.vesta(Protocol::Rest, cores)?;
    for &in_flight in &settings.levels {
        let plan = results.plan(settings, in_flight);
        let sides = [
            (Protocol::Json, &server, "GET /v1/id"),
            (Protocol::Rest, &server, "GET /genid"),
        ];
        results
            .unary
            .push(compare(plan, settings.rounds, sides).await?);
    }
    Ok(())
}

/// One server that would trace its callers, and one that would not.
async fn traces(
    settings: &Settings,
    programs: &Programs,
    results: &mut Results,
) -> Result<(), Failure> {
    let cores = results.halves.as_ref().map(|halves| &halves.servers);
    let (with, without) = (
        programs.tracing(cores)?,
        programs.vesta(Protocol::Rest, cores)?,
    );
    for &in_flight in &settings.levels {
        let plan = results.plan(settings, in_flight);
        let sides = [
            (Protocol::Traces, &with, "with a collector"),
            (Protocol::Traces, &without, "without"),
        ];
        results
            .unary
            .push(compare(plan, settings.rounds, sides).await?);
    }
    Ok(())
}

/// The same server in both programs.
async fn same_server(
    settings: &Settings,
    programs: &Programs,
    results: &mut Results,
) -> Result<(), Failure> {
    let cores = results.halves.as_ref().map(|halves| &halves.servers);
    let (vesta, server) = (
        programs.vesta_serve(cores)?,
        programs.vesta(Protocol::Grpc, cores)?,
    );
    let sides = [
        (Protocol::Programs, &vesta, vesta.name),
        (Protocol::Programs, &server, server.name),
    ];
    let plan = results.plan(settings, PROGRAMS_IN_FLIGHT);
    results
        .unary
        .push(compare(plan, settings.rounds, sides).await?);
    Ok(())
}

/// Calls in flight to the two programs.
const PROGRAMS_IN_FLIGHT: usize = 64;

/// Rounds in turns. The order alternates with each pair, so that a machine that slows down favours
/// neither.
async fn compare(
    plan: Plan,
    rounds: usize,
    sides: [(Protocol, &Server, &'static str); 2],
) -> Result<Comparison, Failure> {
    let in_flight = plan.in_flight;
    let [(protocol, _, ours), (_, _, theirs)] = sides;
    let names = [ours, theirs];
    let mut comparison = Comparison {
        protocol,
        in_flight,
        names,
        vesta: vec![],
        peer: vec![],
    };
    let one = |(protocol, server, name): (Protocol, &Server, &str)| {
        block_in_place(|| round(Plan { protocol, ..plan }, server.address, server.pid()))
            .map_err(|failure| format!("{name}, {in_flight} in flight: {failure}"))
    };
    for number in 0..=rounds {
        tell(&format!(
            "{ours}, {in_flight} in flight, round {number} of {rounds}"
        ));
        // Until the servers have seen the end of the previous connections.
        sleep(SETTLE).await;
        let (ours, theirs) = if number % 2 == 0 {
            let ours = one(sides[0])?;
            (ours, one(sides[1])?)
        } else {
            let theirs = one(sides[1])?;
            (one(sides[0])?, theirs)
        };
        // Round 0 is a warm-up.
        if number > 0 {
            comparison.vesta.push(ours);
            comparison.peer.push(theirs);
        }
    }
    Ok(comparison)
}

fn tell(progress: &str) {
    eprintln!("vesta-load: {progress}");
}
