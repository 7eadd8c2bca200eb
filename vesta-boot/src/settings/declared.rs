//! Declaration of the settings as clap arguments, and the command line around them.

use std::any::TypeId;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, Args};
use vesta_intf::GenMethod;

use super::{ids, limits, listeners, log, machine, segments, store};
use crate::commands::Command;
use crate::role::Role;

/// All settings. Each field of a section declares one: its name, type, default, help and check.
#[derive(Debug, Args)]
pub(super) struct Sections {
    #[command(flatten)]
    pub(super) listeners: listeners::Section,
    #[command(flatten)]
    pub(super) ids: ids::Ids,
    #[command(flatten)]
    pub(super) machine: machine::Section,
    #[command(flatten)]
    pub(super) store: store::Section,
    #[command(flatten)]
    pub(super) segments: segments::Section,
    #[command(flatten)]
    pub(super) limits: limits::Limits,
    #[command(flatten)]
    pub(super) log: log::Log,
}

/// The flags that are no settings, and the commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "General")]
struct General {
    /// TOML file with any of these settings
    ///
    /// Flags and the environment win over it. [env: VESTA_CONFIG]
    #[arg(long, short, value_name = "FILE", env = "VESTA_CONFIG", hide_env = true, global = true)]
    config: Option<PathBuf>,

    /// Show the resulting settings and end
    ///
    /// As TOML, with the origin of each and passwords hidden.
    #[arg(long)]
    print_config: bool,

    /// Show the settings; --help has more, with examples
    #[arg(long, short, action = ArgAction::Help, global = true)]
    help: Option<bool>,

    /// Show the version
    #[arg(id = "print_version", long = "version", short = 'V', action = ArgAction::Version)]
    version: Option<bool>,

    #[command(subcommand)]
    command: Option<Command>,
}

/// The command line of a program, as its help shows it. Values stay text.
pub fn command(role: Role) -> clap::Command {
    let settings = settings(role).mut_args(|arg| arg.value_parser(ValueParser::string()));
    General::augment_args(settings)
        .version(env!("CARGO_PKG_VERSION"))
        .about(role.about())
        .after_help(
            "Each flag is also an environment variable: --max-wait-ms is VESTA_MAX_WAIT_MS.",
        )
        .after_long_help(role.examples())
        .max_term_width(100)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .subcommand_value_name("COMMAND")
}

/// The settings of a program as arguments with flag, environment variable, default, help and check.
pub fn settings(role: Role) -> clap::Command {
    Sections::augment_args(clap::Command::new(role.name())).mut_args(|arg| complete(arg, role))
}

/// Adds what follows from the name, the type and the role.
fn complete(arg: Arg, role: Role) -> Arg {
    let name = arg.get_id().as_str();
    let default = role.default(name);
    let flag = arg.get_long().map_or_else(|| name.replace(['.', '_'], "-"), str::to_owned);
    let env = format!("VESTA_{}", flag.replace('-', "_").to_uppercase());
    let mut arg = arg
        .long(flag)
        .env(env.clone())
        .hide_env(true) // it would show what the environment holds, passwords too
        .hide_default_value(true)
        .allow_negative_numbers(true) // so that -1 is refused with its range
        .required(false);
    if let Some(default) = default {
        arg = arg.default_value(default);
    }
    if toml_type(&arg) == "boolean" {
        arg = arg.action(ArgAction::Set).num_args(0..=1);
        arg = arg.require_equals(true).default_missing_value("true");
    }
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let default = match arg.get_default_values() {
        [default, ..] => format!("[default: {}] ", default.display()),
        [] => String::new(),
    };
    arg.long_help(format!("{help}\n\n{default}[env: {env}]"))
}

/// The environment variable of a setting.
pub(super) fn variable(arg: &Arg) -> String {
    arg.get_env().unwrap_or_default().to_string_lossy().into_owned()
}

/// The default of a setting, if it depends on no other one.
pub(super) fn default_of(arg: &Arg) -> Option<String> {
    if arg.get_id() == "workers" {
        return Some(std::thread::available_parallelism().map_or(1, usize::from).to_string());
    }
    arg.get_default_values().first()?.to_str().map(str::to_owned)
}

/// The type of a setting in TOML.
pub(super) fn toml_type(arg: &Arg) -> &'static str {
    let parsed = arg.get_value_parser().type_id();
    let integers = [
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<Duration>(),
        TypeId::of::<GenMethod>(),
    ];
    match parsed {
        boolean if boolean == TypeId::of::<bool>() => "boolean",
        integer if integers.iter().any(|id| integer == *id) => "integer",
        _ => "string",
    }
}
