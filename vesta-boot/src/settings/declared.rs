//! Declaration of the settings as clap arguments.

use std::sync::LazyLock;

use clap::{Arg, ArgAction};
use vesta_intf::IdMeta;

use super::limits::workers_on;
use super::section::Valid;
use super::values::Values;
use super::{Ids, Limits, Log, PoolServer, Segments, Serials, Store, ids, listeners, machine};
use crate::api::Api;
use crate::error::Error;

/// All settings, each parsed by its own parser.
#[derive(Debug)]
pub(super) struct Sections {
    pub(super) listeners: listeners::Section,
    pub(super) ids: Ids,
    pub(super) machine: machine::Section,
    pub(super) store: Store,
    pub(super) segments: Segments,
    pub(super) serials: Serials,
    pub(super) pool_server: PoolServer,
    pub(super) limits: Limits,
    pub(super) log: Log,
}

impl Sections {
    fn args() -> impl Iterator<Item = Arg> {
        [
            listeners::Section::args(),
            Ids::args(),
            machine::Section::args(),
            Store::args(),
            Segments::args(),
            Serials::args(),
            PoolServer::args(),
            Limits::args(),
            Log::args(),
        ]
        .into_iter()
        .flatten()
    }

    /// Valid values of each setting, in the order of the arguments.
    fn valid() -> impl Iterator<Item = Valid> {
        let (values, layout) = (&Values::defaults(&Api::ALL), &IdMeta::MAX_PEAK);
        [
            listeners::Section::valid(values, layout),
            Ids::valid(values, layout),
            machine::Section::valid(values, layout),
            Store::valid(values, layout),
            Segments::valid(values, layout),
            Serials::valid(values, layout),
            PoolServer::valid(values, layout),
            Limits::valid(values, layout),
            Log::valid(values, layout),
        ]
        .into_iter()
        .flatten()
    }

    /// Settings as they are declared, with their valid values.
    pub(super) fn declared() -> impl Iterator<Item = (Arg, Valid)> {
        Self::args().zip(Self::valid())
    }

    /// Parses each setting with its own parser, which may depend on the layout.
    pub(super) fn read(values: &Values) -> Result<Self, Error> {
        let layout = &machine::in_region(values, ids::layout(values)?)?;
        Ok(Self {
            listeners: listeners::Section::read(values, layout)?,
            ids: Ids::read(values, layout)?,
            machine: machine::Section::read(values, layout)?,
            store: Store::read(values, layout)?,
            segments: Segments::read(values, layout)?,
            serials: Serials::read(values, layout)?,
            pool_server: PoolServer::read(values, layout)?,
            limits: Limits::read(values, layout)?,
            log: Log::read(values, layout)?,
        })
    }
}

/// The settings as arguments: flag, environment variable, default, help and check.
pub fn settings() -> &'static clap::Command {
    // Built once: four parts of a start use them.
    static SETTINGS: LazyLock<clap::Command> =
        LazyLock::new(|| clap::Command::new("vesta").args(Sections::args().map(complete)));
    &SETTINGS
}

/// Adds the attributes that follow from name and type.
fn complete(arg: Arg) -> Arg {
    let name = arg.get_id().as_str();
    let flag = arg
        .get_long()
        .map_or_else(|| name.replace(['.', '_'], "-"), str::to_owned);
    let env = format!("VESTA_{}", flag.replace('-', "_").to_uppercase());
    let mut arg = arg
        .long(flag)
        .env(env.clone())
        .hide_env(true) // it would show values from the environment, including passwords
        .hide_default_value(true)
        .allow_negative_numbers(true) // so that -1 is refused with the valid range
        .required(false);
    if toml_type(&arg) == "boolean" {
        arg = arg.action(ArgAction::Set).num_args(0..=1);
        arg = arg.require_equals(true).default_missing_value("true");
    }
    let help = arg
        .get_long_help()
        .or(arg.get_help())
        .map(|help| help.ansi().to_string());
    let default = match arg.get_default_values() {
        [default, ..] => format!("[default: {}] ", default.display()),
        [] => String::new(),
    };
    arg.long_help(format!(
        "{}\n\n{default}[env: {env}]",
        help.unwrap_or_default()
    ))
}

/// The environment variable of a setting.
pub(super) fn variable(arg: &Arg) -> String {
    arg.get_env()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The default of a setting that depends on no other setting.
pub(super) fn default_of(arg: &Arg) -> Option<String> {
    if arg.get_id() == "workers" {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        return Some(workers_on(cpus).to_string());
    }
    arg.get_default_values()
        .first()?
        .to_str()
        .map(str::to_owned)
}

/// TOML type of a setting, by the name of its value.
pub(super) fn toml_type(arg: &Arg) -> &'static str {
    match arg
        .get_value_names()
        .and_then(<[_]>::first)
        .map(|name| name.as_str())
    {
        Some("BOOL") => "boolean",
        Some("MS" | "N" | "ID" | "0-3" | "0|1") => "integer",
        _ => "string",
    }
}
