//! End-to-end load: the cost of a request to Vesta, compared with a server that does nothing.
//!
//! `vesta-load run` starts `vesta-server`, `vesta-rest`, a bare tonic echo and a bare actix-web
//! hello on loopback, and calls them in turns. The two bare servers are subcommands of this
//! program.
#![forbid(unsafe_code)]

mod batches;
mod beside;
mod cap;
mod child;
mod cli;
mod cores;
mod idle;
mod load;
mod meter;
mod peer;
mod pool;
mod prefetch;
mod proc;
mod programs;
mod report;
mod run;
mod start;
mod stats;
mod stop;
mod workers;

use std::process::ExitCode;

use clap::Parser as _;

/// The allocator of the Vesta servers, so that the bare ones are not at a disadvantage.
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An error: a sentence for the user of the benchmark.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let done = match cli::Cli::parse().command {
        cli::Command::EchoGrpc { listen } => peer::echo_grpc(listen).map(|()| true),
        cli::Command::HelloRest { listen } => peer::hello_rest(listen).map(|()| true),
        cli::Command::Run(settings) => run::run(&settings),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            eprintln!("vesta-load: {failure}");
            ExitCode::from(2)
        }
    }
}
