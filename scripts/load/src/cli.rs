//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;

#[derive(Debug, Parser)]
#[command(
    version,
    about = "End-to-end load: Vesta's servers beside servers that do nothing"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// A bare tonic server: GenId answers with a counter
    EchoGrpc {
        /// IP address and port; port 0 takes a free one, which the first line of output tells
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
    /// A bare actix-web server: GET /genid answers with a constant of 19 digits
    HelloRest {
        /// IP address and port; port 0 takes a free one, which the first line of output tells
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
    /// Compares Vesta's servers with the bare ones and prints Markdown
    Run(Box<Settings>),
}

/// A part of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Part {
    /// Unary GenId beside a bare tonic echo
    Grpc,
    /// GET /genid beside a bare actix-web hello
    Rest,
    /// GET /v1/id beside GET /genid
    Json,
    /// GET /genid of vesta-rest with a collector of OpenTelemetry, beside one without: nobody is traced
    Traces,
    /// `vesta serve` beside vesta-server: unary GenId
    Programs,
    /// Cost of the servers while nobody asks
    Idle,
    /// A prefetching client beside an embedded service
    Prefetch,
    /// All IDs over one connection, beside the server of another generator
    Stream,
    /// REST on shared cores, by number of workers
    Workers,
    /// REST callers who together want more than the layout has
    Cap,
    /// Single IDs beside callers of large batches
    Beside,
    /// From SIGTERM to the end of an idle server
    Stop,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Settings {
    /// The vesta-server program [default: beside this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) server: Option<PathBuf>,

    /// The vesta-rest program [default: beside this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) rest: Option<PathBuf>,

    /// The vesta program, for the part `programs` [default: beside this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) vesta: Option<PathBuf>,

    /// The program with the bare servers [default: this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) peer: Option<PathBuf>,

    /// The program ferroid-tonic-server, for the part `stream`
    #[arg(long, value_name = "FILE")]
    pub(crate) ferroid: Option<PathBuf>,

    /// Further flags of Vesta's servers, separated by spaces
    #[arg(
        long,
        value_name = "FLAGS",
        default_value = "",
        allow_hyphen_values = true
    )]
    pub(crate) server_flags: String,

    /// Only these parts [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<Part>,

    /// Requests in flight
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_values_t = [1, 8, 64, 256])]
    pub(crate) levels: Vec<usize>,

    /// Rounds that count; one more before them does not. Many short ones say more than a few long
    /// ones: each has new connections, and finds client and server placed anew on the cores
    #[arg(long, value_name = "N", default_value_t = 21)]
    pub(crate) rounds: usize,

    /// Length of a round of requests
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds)]
    pub(crate) round: Duration,

    /// Rounds of idling, of prefetching and of single IDs beside batches; one more before them does not count
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) long_rounds: usize,

    /// Length of a round of prefetching and of single IDs beside batches
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds)]
    pub(crate) batch_round: Duration,

    /// Length of a round of idling, in which all idle servers run at once
    #[arg(long, value_name = "SECONDS", default_value = "12", value_parser = seconds)]
    pub(crate) idle_round: Duration,

    /// Let servers and client share all cores. By default, servers beside bare servers get one half
    /// of the cores and the client the other
    #[arg(long)]
    pub(crate) shared: bool,

    /// Threads that make requests, at most one for each connection [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Write every round to this file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// A smoke run: levels 1 and 8, one short round each. Its numbers mean nothing
    #[arg(long)]
    pub(crate) quick: bool,

    /// Put the bare servers in the place of Vesta's: how far do two equal servers seem apart here?
    #[arg(long)]
    pub(crate) calibrate: bool,

    /// End with exit code 1 if a bar is missed
    #[arg(long)]
    pub(crate) check: bool,
}

impl Settings {
    /// The settings, with what `--quick` and `--calibrate` mean put in.
    pub(crate) fn effective(&self) -> Self {
        let mut settings = self.clone();
        if self.quick {
            settings.levels = vec![1, 8];
            (settings.rounds, settings.long_rounds) = (1, 1);
            settings.round = Duration::from_millis(300);
            settings.batch_round = Duration::from_millis(300);
            settings.idle_round = Duration::from_millis(300);
        }
        if self.calibrate {
            settings
                .only
                .retain(|part| matches!(part, Part::Grpc | Part::Rest));
            if settings.only.is_empty() {
                settings.only = vec![Part::Grpc, Part::Rest];
            }
        }
        settings
    }

    pub(crate) fn does(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| *duration >= Duration::from_millis(10))
        .ok_or_else(|| "must be a number of seconds, 0.01 or more".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
        let cli = Cli::parse_from(["vesta-load", "run", "--round", "0.5", "--levels", "1,4"]);
        let Command::Run(settings) = cli.command else {
            panic!("{cli:?}")
        };
        assert_eq!(settings.round, Duration::from_millis(500));
        assert_eq!(settings.levels, [1, 4]);
        assert!(
            Part::value_variants()
                .iter()
                .all(|part| settings.does(*part))
        );
        assert!(Cli::try_parse_from(["vesta-load", "run", "--round", "0"]).is_err());
    }

    #[test]
    fn calibration_leaves_out_what_has_no_bare_server() {
        let cli = Cli::parse_from([
            "vesta-load",
            "run",
            "--calibrate",
            "--quick",
            "--only",
            "stream",
        ]);
        let Command::Run(settings) = cli.command else {
            panic!("{cli:?}")
        };
        let settings = settings.effective();
        assert_eq!(settings.only, [Part::Grpc, Part::Rest]);
        assert_eq!((settings.rounds, settings.levels), (1, vec![1, 8]));
    }
}
