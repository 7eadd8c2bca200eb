//! Declaration of the settings as clap arguments.

use std::any::TypeId;
use std::error::Error as _;
use std::sync::LazyLock;
use std::time::Duration;

use clap::builder::{OsStr, Resettable};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Args, FromArgMatches as _};
use vesta_intf::GenMethod;

use super::values::Values;
use super::{ids, limits, listeners, log, machine, segments, serials, store};
use crate::settings::role::Role;
use crate::start::error::Error;

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
    pub(super) store: store::Store,
    #[command(flatten)]
    pub(super) segments: segments::Segments,
    #[command(flatten)]
    pub(super) serials: serials::Serials,
    #[command(flatten)]
    pub(super) limits: limits::Limits,
    #[command(flatten)]
    pub(super) log: log::Log,
}

/// The settings of a program as arguments with flag, environment variable, default, help and check.
pub fn settings(role: Role) -> &'static clap::Command {
    // Made once: four parts of a start ask for them.
    static SERVER: LazyLock<clap::Command> = LazyLock::new(|| declare(Role::Server));
    static REST: LazyLock<clap::Command> = LazyLock::new(|| declare(Role::Rest));
    static VESTA: LazyLock<clap::Command> = LazyLock::new(|| declare(Role::Vesta));
    match role {
        Role::Server => &SERVER,
        Role::Rest => &REST,
        Role::Vesta => &VESTA,
    }
}

fn declare(role: Role) -> clap::Command {
    Sections::augment_args(clap::Command::new(role.name())).mut_args(|arg| complete(arg, role))
}

/// Checks each setting by its own parser.
pub(super) fn check(values: &Values) -> Result<Sections, Error> {
    let layout = machine::in_region(values, ids::layout(values)?)?;
    // The values are the defaults of a command line that names none.
    let mut settings = settings(values.role).clone().no_binary_name(true).mut_args(|arg| {
        let text = values.get(arg.get_id().as_str()).map(|value| OsStr::from(value.text.clone()));
        let arg = ids::bounded(machine::bounded(arg, layout), layout, values);
        arg.env(Resettable::Reset).default_value(Resettable::from(text))
    });
    let sections = settings
        .try_get_matches_from_mut([] as [&str; 0])
        .and_then(|matches| Sections::from_arg_matches(&matches));
    sections.map_err(|error| {
        let flag = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(flag)) => flag.as_str(),
            _ => "",
        };
        let arg = settings.get_arguments().find(|arg| arg.to_string() == flag);
        match (arg, error.source()) {
            (Some(arg), Some(must)) => values.refuse(arg.get_id().as_str(), must),
            _ => Error::setting(error.to_string()),
        }
    })
}

/// Adds what follows from the name, the type and the role.
fn complete(arg: Arg, role: Role) -> Arg {
    let name = arg.get_id().as_str();
    let default = role.default(name);
    let flag = arg.get_long().map_or_else(|| name.replace(['.', '_'], "-"), str::to_owned);
    let env = format!("VESTA_{}", flag.replace('-', "_").to_uppercase());
    let of_another = match name {
        "grpc.listen" | "grpc.gen_method" => role != Role::Vesta,
        "compat" => role == Role::Server,
        _ => false,
    };
    let mut arg = arg
        .hide(of_another)
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
    let help = arg.get_long_help().or(arg.get_help()).map(|help| help.ansi().to_string());
    let default = match arg.get_default_values() {
        [default, ..] => format!("[default: {}] ", default.display()),
        [] => String::new(),
    };
    arg.long_help(format!("{}\n\n{default}[env: {env}]", help.unwrap_or_default()))
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
