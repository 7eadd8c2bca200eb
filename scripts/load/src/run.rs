//! The whole comparison, in turns.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::block_in_place;
use vesta_intf::IdMeta;

use crate::child::Server;
use crate::cli::{Part, Settings};
use crate::load::{Plan, Protocol, round};
use crate::proc::Machine;
use crate::report::{BatchRow, Comparison, IdleRow, Results};
use crate::{Failure, batch, idle, peer, prefetch};

/// Runs it and prints the results. True if every bar that was asked for is met.
pub(crate) fn run(settings: &Settings) -> Result<bool, Failure> {
    let settings = settings.effective();
    if settings.rounds == 0 || settings.long_rounds == 0 || settings.levels.contains(&0) {
        return Err("--rounds, --long-rounds and --levels must be 1 or more".into());
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut results = Results::new(Machine::here(), &settings);
    let ended = runtime.block_on(async {
        let mut asked = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        // Whichever ends this drops the servers' guards, which stop them.
        tokio::select! {
            ended = everything(&settings, &mut results) => ended,
            _ = asked.recv() => Err("asked to stop".into()),
            _ = interrupted.recv() => Err("interrupted".into()),
        }
    });
    // What there is, even if it did not come to its end.
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
    let threads = results.threads;

    let servers = |protocol| -> Result<(Server, Server), Failure> {
        let first = match settings.calibrate {
            true => programs.bare(protocol)?,
            false => programs.vesta(protocol)?,
        };
        Ok((first, programs.bare(protocol)?))
    };
    for (part, protocol) in [(Part::Grpc, Protocol::Grpc), (Part::Rest, Protocol::Rest)] {
        if settings.does(part) {
            let (vesta, peer) = servers(protocol)?;
            for &in_flight in &settings.levels {
                let plan = Plan { protocol, in_flight, threads, duration: settings.round };
                results.unary.push(compare(plan, settings.rounds, &vesta, &peer)?);
            }
        }
    }
    if settings.does(Part::Batch) {
        for meta in [IdMeta::MAX_PEAK, IdMeta::MIN_GRANULARITY] {
            let server = programs.server(meta.name())?;
            for call in batch::Call::ALL {
                tell(&format!("{} in {}", call.name(), meta.name()));
                let (rounds, length) = (settings.long_rounds, settings.batch_round);
                let (address, pid) = (server.address, server.pid());
                let windows = batch::windows(address, pid, &meta, call, rounds, length).await;
                let windows = windows
                    .map_err(|failure| format!("{}, {}: {failure}", call.name(), meta.name()))?;
                results.batch.push(BatchRow::new(&meta, call.name(), windows));
            }
        }
    }
    if settings.does(Part::Idle) {
        for protocol in [Protocol::Grpc, Protocol::Rest] {
            for server in [programs.vesta(protocol)?, programs.bare(protocol)?] {
                tell(&format!("{}, idle", server.name));
                let (rounds, length) = (settings.long_rounds, settings.idle_round);
                let windows = idle::windows(&server, rounds, length).await?;
                results.idle.push(IdleRow { program: server.name, windows });
            }
        }
    }
    if settings.does(Part::Prefetch) {
        let server = programs.server("max-peak")?;
        tell("a prefetching client");
        let (rounds, length) = (settings.long_rounds, settings.batch_round);
        results.prefetch =
            Some(prefetch::measure(server.address, server.pid(), rounds, length).await?);
    }
    Ok(())
}

/// Rounds in turns. Who goes first changes with each pair, so that a machine that becomes slower
/// favours nobody.
fn compare(
    plan: Plan,
    rounds: usize,
    vesta: &Server,
    peer: &Server,
) -> Result<Comparison, Failure> {
    let Plan { protocol, in_flight, .. } = plan;
    let mut comparison = Comparison {
        protocol,
        in_flight,
        names: [vesta.name, peer.name],
        vesta: vec![],
        peer: vec![],
    };
    let one = |server: &Server| {
        block_in_place(|| round(plan, server.address, server.pid()))
            .map_err(|failure| format!("{}, {in_flight} in flight: {failure}", server.name))
    };
    for number in 0..=rounds {
        tell(&format!("{protocol:?}, {in_flight} in flight, round {number} of {rounds}"));
        let (ours, theirs) = if number % 2 == 0 {
            let ours = one(vesta)?;
            (ours, one(peer)?)
        } else {
            let theirs = one(peer)?;
            (one(vesta)?, theirs)
        };
        // Round 0 warms up.
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

/// Where the programs are, and a folder for what they write.
struct Programs {
    server: PathBuf,
    rest: PathBuf,
    peer: PathBuf,
    folder: TempDir,
}

impl Programs {
    fn find(settings: &Settings) -> Result<Self, Failure> {
        let this = std::env::current_exe()?;
        let beside = |name| this.with_file_name(name);
        let needs = |file: PathBuf| -> Result<PathBuf, Failure> {
            file.canonicalize().map_err(|error| {
                let file = file.display();
                format!("{file}: {error}; build it, or say where it is: see vesta-load run --help")
                    .into()
            })
        };
        let vesta = |given: &Option<PathBuf>, name| match given {
            // A calibration needs no Vesta.
            None if settings.calibrate => Ok(beside(name)),
            given => needs(given.clone().unwrap_or_else(|| beside(name))),
        };
        Ok(Self {
            server: vesta(&settings.server, "vesta-server")?,
            rest: vesta(&settings.rest, "vesta-rest")?,
            peer: needs(settings.peer.clone().unwrap_or_else(|| this.clone()))?,
            folder: TempDir::with_prefix("vesta-load-")?,
        })
    }

    fn bare(&self, protocol: Protocol) -> Result<Server, Failure> {
        let (name, subcommand) = match protocol {
            Protocol::Grpc => ("bare tonic", "echo-grpc"),
            Protocol::Rest => ("bare actix-web", "hello-rest"),
        };
        Server::start(name, peer::LABEL, self.command(&self.peer).arg(subcommand))
    }

    fn vesta(&self, protocol: Protocol) -> Result<Server, Failure> {
        match protocol {
            Protocol::Grpc => self.server("max-peak"),
            Protocol::Rest => {
                let mut command = self.command(&self.rest);
                Server::start("vesta-rest", "HTTP", command.args(VESTA))
            }
        }
    }

    fn server(&self, layout: &str) -> Result<Server, Failure> {
        let mut command = self.command(&self.server);
        // A namespace has one layout.
        let layout = ["--layout", layout, "--namespace", layout];
        Server::start("vesta-server", "gRPC", command.args(VESTA).args(layout))
    }

    /// Every server starts with its defaults: no setting comes from this program's environment.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("VESTA_") {
                command.env_remove(name);
            }
        }
        command
    }
}

/// Free ports, and quiet. The admin listener stays on, as it is where Vesta runs.
const VESTA: [&str; 6] =
    ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-level", "warn"];
