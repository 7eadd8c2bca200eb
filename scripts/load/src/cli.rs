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
    /// A bare tonic server: GenId returns a counter
    EchoGrpc {
        /// IP address and port; with port 0, a free port, printed in the first line of output
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
    /// A bare actix-web server: GET /genid returns a constant of 19 digits
    HelloRest {
        /// IP address and port; with port 0, a free port, printed in the first line of output
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
    /// Compare Vesta's servers with the bare ones and print Markdown
    Run(Box<Settings>),
}

/// A part of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Part {
    /// Unary GenId compared with a bare tonic echo
    Grpc,
    /// GET /genid compared with a bare actix-web hello
    Rest,
    /// GET /v1/id compared with GET /genid
    Json,
    /// GET /genid of vesta-rest with an OpenTelemetry collector, compared with one without: no caller is
    /// traced
    Traces,
    /// `vesta serve` compared with vesta-server: unary GenId
    Programs,
    /// Cost of idle servers
    Idle,
    /// A prefetching client compared with an embedded service
    Prefetch,
    /// All IDs over one connection, compared with the server of another generator
    Batches,
    /// REST and gRPC on shared cores, by number of workers
    Workers,
    /// REST callers that together want more than the layout has
    Cap,
    /// Single IDs beside callers of large batches
    Beside,
    /// A pool server with many members: claims, renewals, members that hold, a start of all at once
    Pool,
    /// From SIGTERM to the end of an idle server
    Stop,
    /// From the start of a program to its first ID
    Start,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Settings {
    /// The vesta-server program [default: next to this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) server: Option<PathBuf>,

    /// The vesta-rest program [default: next to this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) rest: Option<PathBuf>,

    /// The vesta program, for the parts `programs` and `start` [default: next to this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) vesta: Option<PathBuf>,

    /// The program with the bare servers [default: this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) peer: Option<PathBuf>,

    /// The program ferroid-tonic-server, for the part `batches`
    #[arg(long, value_name = "FILE")]
    pub(crate) ferroid: Option<PathBuf>,

    /// Additional flags of Vesta's servers, separated by spaces
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

    /// Number of counted rounds, after one that does not count. Many short rounds say more than a
    /// few long ones: each has new connections, and a new placement of client and server on the cores
    #[arg(long, value_name = "N", default_value_t = 21)]
    pub(crate) rounds: usize,

    /// Length of a round of requests
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds)]
    pub(crate) round: Duration,

    /// Rounds of idling, of prefetching, of single IDs beside batches and of a pool server, after one that does not count
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) long_rounds: usize,

    /// Length of a round of prefetching, of single IDs beside batches and of renewals
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds)]
    pub(crate) batch_round: Duration,

    /// Length of a round of idling, in which all idle servers run at once, and of members that hold
    #[arg(long, value_name = "SECONDS", default_value = "12", value_parser = seconds)]
    pub(crate) idle_round: Duration,

    /// Let servers and client share all cores. By default, when compared with bare servers, servers
    /// get one half of the cores and the client the other
    #[arg(long)]
    pub(crate) shared: bool,

    /// Threads that send requests, at most one per connection [default: one per core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Write every round to this file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Smoke run: levels 1 and 8, one short round each. Its numbers are meaningless
    #[arg(long)]
    pub(crate) quick: bool,

    /// Replace Vesta's servers by bare ones, to see how far apart two equal servers seem here
    #[arg(long)]
    pub(crate) calibrate: bool,

    /// Exit with code 1 if a bar is missed
    #[arg(long)]
    pub(crate) check: bool,
}

impl Settings {
    /// The settings, with the effects of `--quick` and `--calibrate` applied.
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
    fn the_command_line_is_consistent() {
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
    fn calibration_skips_parts_without_a_bare_server() {
        let cli = Cli::parse_from([
            "vesta-load",
            "run",
            "--calibrate",
            "--quick",
            "--only",
            "batches",
        ]);
        let Command::Run(settings) = cli.command else {
            panic!("{cli:?}")
        };
        let settings = settings.effective();
        assert_eq!(settings.only, [Part::Grpc, Part::Rest]);
        assert_eq!((settings.rounds, settings.levels), (1, vec![1, 8]));
    }
}
