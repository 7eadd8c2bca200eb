//! The program `vesta`: makes, explains, serves and checks 64-bit IDs.
//!
//! Data goes to standard output, messages go to standard error. Exit codes: 0, 1 if the answer is no, 64
//! for bad input, 69 if something cannot be reached, 70 for another failure.
#![forbid(unsafe_code)]

mod audit;
mod audit_report;
mod audit_table;
mod bench;
mod chaos;
mod cli;
mod csv_column;
mod doctor;
mod explain;
mod generate;
mod guessing;
mod http;
mod layout;
mod manual;
mod output;
mod plan;
mod reading;
mod sql;
mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches as _};
use vesta_boot::commands::Format;
use vesta_boot::{Api, Error, Front, Invocation, Parsed};

use cli::{AuditArgs, AuditCommand, Cli, Command, ServeArgs, ServeCommand};

// Small requests make and drop small allocations, for which this allocator is built.
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The answer of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Exit code 0.
    Yes,
    /// Exit code 1: the sets meet, the ID was not made here, or something needs attention.
    No,
}

type Done = Result<Answer, Error>;

/// The name of this program.
const NAME: &str = "vesta";

const FRONTS: [Front; 2] = [vesta_rest::FRONT, vesta_server::FRONT];

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|word| word == chaos::MEMBER) {
        return chaos::member(args.into_iter().skip(1));
    }
    match run(args) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) => error.report(NAME),
    }
}

fn run(args: Vec<OsString>) -> Done {
    let matches = match vesta_boot::parse(cli::tree(), args)? {
        Parsed::Matches(matches) => matches,
        Parsed::Help(help) => return output::written(help.print()).map(|()| Answer::Yes),
    };
    let Cli {
        format: Format { output },
        command,
        ..
    } = Cli::from_arg_matches(&matches).expect("clap has checked it");
    let (name, of_command) = matches.subcommand().expect("clap demands one");
    let name = if of_command.subcommand_name() == Some("table") {
        "audit table"
    } else {
        name
    };
    for option in ["config", "output"] {
        let is_typed = of_command.value_source(option) == Some(ValueSource::CommandLine);
        if is_typed && !cli::has_effect(option, name) {
            return Error::refuse(format!(
                "--{option} has no effect on vesta {name}; leave it out"
            ));
        }
    }
    // Read only by the commands that need them.
    let settings = || vesta_boot::values(&Api::ALL, of_command);
    match command {
        Command::Serve(ServeArgs { front }) => serve(front, of_command),
        Command::OfServers(command) => {
            let invocation = Invocation::command(&Api::ALL, command, of_command)?;
            vesta_boot::start(None, NAME, &[], invocation).map(|()| Answer::Yes)
        }
        Command::Gen(args) => generate::gen_ids(&args, settings, output),
        Command::Explain(args) => explain::explain(&args, output),
        Command::Make(args) => generate::make(&args, output),
        Command::Bound(args) => generate::bound(&args, output),
        Command::Layout(command) => layout::run(command, output),
        Command::Plan(command) => plan::run(&command, output),
        Command::Audit(AuditArgs {
            command: Some(AuditCommand::Table(args)),
            ..
        }) => audit_report::run(&args, output),
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

/// Serves both fronts, or one.
fn serve(front: Option<ServeCommand>, matches: &ArgMatches) -> Done {
    let fronts = match front {
        None => &FRONTS[..],
        Some(ServeCommand::Rest) => &FRONTS[..1],
        Some(ServeCommand::Grpc) => &FRONTS[1..],
    };
    let apis: Vec<_> = fronts.iter().map(|front| front.api).collect();
    let matches = matches
        .subcommand()
        .map_or(matches, |(_, of_front)| of_front);
    let invocation = Invocation::serving(&apis, matches)?;
    vesta_boot::start(None, NAME, fronts, invocation).map(|()| Answer::Yes)
}
