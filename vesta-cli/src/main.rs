//! The program `vesta`: makes, explains, serves and checks 64-bit IDs.
//!
//! Data goes to standard output, words go to standard error. Exit codes: 0, 1 if the answer is no, 64
//! for bad input, 69 if something cannot be reached, 70 for another failure.
#![forbid(unsafe_code)]

mod audit;
mod audit_table;
mod bench;
mod chaos;
mod cli;
mod doctor;
mod explain;
mod generate;
mod http;
mod layout;
mod manual;
mod output;
mod plan;
mod sql;
mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches as _;
use vesta_boot::{Error, Front, Role};

use cli::{AuditArgs, AuditCommand, Cli, Command};

// Small requests make and drop small allocations; this allocator is made for that.
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The answer of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Exit code 0.
    Yes,
    /// Exit code 1: the sets meet, the ID was not made here, something needs attention.
    No,
}

type Done = Result<Answer, Error>;

const FRONTS: [Front; 2] = [vesta_rest::FRONT, vesta_server::FRONT];

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<_> = args.iter().take(2).map(|arg| arg.to_str().unwrap_or("")).collect();
    // What the servers do, they do by their own command lines.
    match words[..] {
        ["serve", "rest"] => vesta_boot::main(Role::Rest, &FRONTS[..1], args.into_iter().skip(2)),
        ["serve", "grpc"] => vesta_boot::main(Role::Server, &FRONTS[1..], args.into_iter().skip(2)),
        ["serve", ..] => vesta_boot::main(Role::Vesta, &FRONTS, args.into_iter().skip(1)),
        ["store" | "segment" | "serial" | "token", ..] => vesta_boot::main(Role::Vesta, &[], args),
        [chaos::MEMBER, ..] => chaos::member(args.into_iter().skip(1)),
        _ => match run() {
            Ok(Answer::Yes) => ExitCode::SUCCESS,
            Ok(Answer::No) => ExitCode::from(1),
            Err(error) => error.report("vesta"),
        },
    }
}

fn run() -> Done {
    let matches = cli::own().get_matches();
    let Cli { output, command } =
        Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // Read when a command asks for them.
    let settings = || {
        let matches = matches.subcommand().expect("clap demands one").1;
        vesta_boot::values(Role::Vesta, matches)
    };
    match command {
        Command::Gen(args) => generate::gen_ids(&args, settings, output),
        Command::Explain(args) => explain::explain(&args, output),
        Command::Make(args) => generate::make(&args, output),
        Command::Bound(args) => generate::bound(&args, output),
        Command::Layout(command) => layout::run(command, output),
        Command::Plan(command) => plan::run(&command, output),
        Command::Audit(AuditArgs { command: Some(AuditCommand::Table(args)), .. }) => {
            audit_table::run(&args, output)
        }
        Command::Audit(AuditArgs { id, .. }) => {
            audit::audit_id(&id.unwrap_or_default(), &settings()?, output)
        }
        Command::Doctor => doctor::run(settings(), output),
        Command::Healthcheck => doctor::healthcheck(&settings()?),
        Command::Bench(args) => bench::bench(&args, output),
        Command::Top(args) => bench::top(&args, output),
        Command::Chaos(args) => chaos::run(&args, output),
        Command::Sql(args) => sql::run(&args),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { folder } => manual::man(folder.as_deref()),
    }
}
