//! Settings as typed: from flags, the environment and a TOML file, with where each came from.
//! Nothing is judged here but the shape of the file; `config` does the checking.

mod file;
mod flags;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

pub use file::{CustomLayout, Epoch, TokenTable};
use flags::Flags;

use crate::commands::{Command, TokenCommand};
use crate::{ConfigError, Role};

/// A setting that exists.
#[derive(Debug)]
pub struct Key {
    /// The name in the TOML file: `machine.id`.
    pub name: &'static str,
    /// Whether its value is quoted in TOML.
    pub is_text: bool,
    server: Option<&'static str>,
    rest: Option<&'static str>,
}

const fn text(name: &'static str, default: Option<&'static str>) -> Key {
    Key { name, is_text: true, server: default, rest: default }
}

const fn bare(name: &'static str, default: Option<&'static str>) -> Key {
    Key { is_text: false, ..text(name, default) }
}

impl Key {
    /// vesta-rest's default, where it differs.
    const fn but_rest(self, default: &'static str) -> Self {
        Self { rest: Some(default), ..self }
    }
}

/// Every setting, in the order in which `--print-config` shows them.
pub const KEYS: &[Key] = &[
    text("listen", Some("127.0.0.1:50051")).but_rest("127.0.0.1:8088"),
    text("layout", Some("max-peak")),
    text("populator", Some("lock")),
    bare("gen_method", Some("1")).but_rest("2"),
    bare("version", Some("0")),
    text("sequence_start", Some("zero")),
    text("namespace", Some("default")),
    text("state_dir", Some("vesta-data")),
    bare("stateless", Some("false")),
    bare("auto_init", Some("true")),
    bare("wait_for_store", Some("false")),
    bare("allow_plaintext", Some("false")),
    bare("max_wait_ms", Some("2000")),
    bare("request_timeout_ms", Some("2000")),
    bare("drain_limit_ms", Some("10000")),
    bare("max_connections", Some("4096")),
    bare("workers", None),
    text("tls.cert", None),
    text("tls.key", None),
    text("tls.client_ca", None),
    text("admin.listen", Some("127.0.0.1:50052")).but_rest("127.0.0.1:8089"),
    text("admin.tls.cert", None),
    text("admin.tls.key", None),
    text("admin.tls.client_ca", None),
    bare("machine.id", None),
    text("machine.ips", None),
    bare("machine.ordinal", Some("false")),
    text("machine.store", None),
    text("machine.range", None),
    bare("machine.count", Some("1")),
    text("machine.strategy", Some("lease")),
    text("machine.claim_order", Some("stable")),
    bare("machine.window_ms", None),
    bare("machine.renew_every_ms", None),
    bare("machine.request_timeout_ms", None),
    bare("machine.takeover_grace_ms", None),
    text("segment.store", None),
    text("segment.mode", Some("strict")),
    bare("segment.max_step", Some("1000000")),
    text("log.format", Some("human")),
    text("log.level", Some("info")),
];

/// The settings that also count behind `store …` and `segment …`; the others stand before it.
const OF_COMMANDS: &[&str] = &[
    "layout",
    "namespace",
    "state_dir",
    "machine.store",
    "machine.window_ms",
    "machine.request_timeout_ms",
    "auto_init",
    "segment.store",
    "log.format",
    "log.level",
];

impl Key {
    /// The value that holds if nobody says otherwise; `None` where it depends on other settings or
    /// on the machine.
    pub const fn default(&self, role: Role) -> Option<&'static str> {
        match role {
            Role::Server => self.server,
            Role::Rest => self.rest,
        }
    }

    /// What clap calls it. `--version` prints the program's version, so the ID's has another name.
    fn id(&self) -> String {
        match self.name {
            "version" => "id_version".to_owned(),
            name => name.replace('.', "_"),
        }
    }

    /// The flag: `--machine-id`.
    pub fn flag(&self) -> String {
        format!("--{}", self.id().replace('_', "-"))
    }

    /// The environment variable: `VESTA_MACHINE_ID`.
    pub fn env(&self) -> String {
        format!("VESTA_{}", self.id().to_uppercase())
    }
}

/// Where the value of a setting came from, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A command line flag.
    Flag,
    /// An environment variable.
    Env,
    /// The TOML file.
    File,
    /// Nobody said anything.
    Default,
}

/// The value of a setting as typed. `Debug` hides passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    /// The text.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL without `//` is one, too.
        let is_url = self.value.contains("://") || self.value.contains('@');
        let shown = if is_url { vesta_store::redact(&self.value) } else { self.value.clone() };
        write!(f, "{shown:?} ({:?})", self.origin)
    }
}

/// What was typed, put together by precedence: flag, then environment, then file, then default.
#[derive(Debug, Clone)]
pub struct Raw {
    /// Which program it is for.
    pub role: Role,
    given: BTreeMap<&'static str, Given>,
    /// `[layout.custom]`, used if `layout` is `custom`.
    pub custom: Option<CustomLayout>,
    /// `[[auth.tokens]]`.
    pub tokens: Vec<TokenTable>,
    /// The file that was read.
    pub file: Option<PathBuf>,
}

/// The request of a command line.
#[derive(Debug)]
pub enum Invocation {
    /// Run with these settings.
    Run(Raw),
    /// Show these settings and end.
    PrintConfig(Raw),
    /// Carry out a command with these settings and end.
    Command(Raw, Command),
    /// Make a token and end. Needs no settings.
    Token(TokenCommand),
}

/// The command line of a program, with its defaults filled in.
pub fn command(role: Role) -> clap::Command {
    Flags::command()
        .name(role.name())
        .bin_name(role.name())
        .about(role.about())
        .after_help(role.examples())
        .mut_args(|arg| {
            // The help would show what the environment holds, passwords too.
            let arg = arg.hide_env_values(true);
            let Some(key) = KEYS.iter().find(|key| arg.get_id() == key.id().as_str()) else {
                return arg;
            };
            let arg = arg.allow_negative_numbers(true); // so that -1 is refused with its range
            let arg = arg.global(OF_COMMANDS.contains(&key.name));
            match key.default(role) {
                Some(default) => arg.default_value(default),
                None => arg,
            }
        })
}

impl Raw {
    /// Reads flags (without the program's name), the environment, and the file they name.
    ///
    /// # Errors
    /// [`ConfigError::Usage`] for a command line that clap refuses, and for `--help` and
    /// `--version`; [`ConfigError::Refused`] for a file that cannot be read.
    pub fn read<I, S>(role: Role, args: I) -> Result<Invocation, ConfigError>
    where
        I: IntoIterator<Item = S>,
        S: Into<std::ffi::OsString> + Clone,
    {
        let mut command = command(role).no_binary_name(true);
        let matches = command.try_get_matches_from_mut(args).map_err(ConfigError::Usage)?;
        let asked = matches.subcommand().map(|_| Command::from_arg_matches(&matches)).transpose();
        let asked = asked.map_err(|error| ConfigError::Usage(error.format(&mut command)))?;
        if let Some(Command::Token(asked)) = asked {
            return Ok(Invocation::Token(asked));
        }
        let path = matches.get_one::<PathBuf>("config").filter(|p| !p.as_os_str().is_empty());
        let file = path.map(|path| file::read(path)).transpose()?.unwrap_or_default();
        let raw = Self::merge(role, &matches, file, path.map(PathBuf::as_path));
        if matches.get_flag("print_config") {
            return Ok(Invocation::PrintConfig(raw));
        }
        Ok(match asked {
            Some(command) => Invocation::Command(raw, command),
            None => Invocation::Run(raw),
        })
    }

    /// The settings of a program to which nobody said anything.
    pub fn defaults(role: Role) -> Self {
        let given = KEYS.iter().filter_map(|key| {
            let value = key.default(role)?.to_owned();
            Some((key.name, Given { value, origin: Origin::Default }))
        });
        Self { role, given: given.collect(), custom: None, tokens: Vec::new(), file: None }
    }

    fn merge(role: Role, matches: &ArgMatches, file: file::Settings, path: Option<&Path>) -> Self {
        let mut raw = Self::defaults(role);
        for key in KEYS {
            let id = key.id();
            let typed = matches.get_one::<String>(&id);
            let typed = match (matches.value_source(&id), typed) {
                (Some(ValueSource::CommandLine), Some(value)) => Some((value, Origin::Flag)),
                // `VESTA_X=` is how compose files say "not set".
                (Some(ValueSource::EnvVariable), Some(value)) if !value.is_empty() => {
                    Some((value, Origin::Env))
                }
                _ => file.values.get(key.name).map(|value| (value, Origin::File)),
            };
            if let Some((value, origin)) = typed {
                raw.given.insert(key.name, Given { value: value.clone(), origin });
            }
        }
        raw.custom = file.custom;
        raw.tokens = file.tokens;
        raw.file = path.map(Path::to_owned);
        raw
    }

    /// The value of a setting, if it has one.
    pub fn get(&self, name: &str) -> Option<&Given> {
        debug_assert!(KEYS.iter().any(|key| key.name == name), "{name} is no setting");
        self.given.get(name)
    }

    /// Whether somebody said something about a setting.
    pub fn is_explicit(&self, name: &str) -> bool {
        self.get(name).is_some_and(|given| given.origin != Origin::Default)
    }

    /// Where a setting came from, for people: `flag --listen`.
    pub fn origin_of(&self, key: &Key) -> String {
        match self.get(key.name).map_or(Origin::Default, |given| given.origin) {
            Origin::Flag => format!("flag {}", key.flag()),
            Origin::Env => format!("env {}", key.env()),
            Origin::File => match &self.file {
                Some(path) => format!("file {}", path.display()),
                None => "file".to_owned(),
            },
            Origin::Default => "default".to_owned(),
        }
    }
}

/// The `VESTA_` variables in `names` that are no setting: most likely misspelt. What Kubernetes sets
/// for a service called `vesta` is not meant for us and left out.
pub(crate) fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<String> {
    let known: Vec<String> = KEYS.iter().map(Key::env).chain(["VESTA_CONFIG".to_owned()]).collect();
    let of_kubernetes = |name: &str| name.contains("_SERVICE_") || name.contains("_PORT");
    let mut unknown: Vec<String> = names
        .filter(|name| name.starts_with("VESTA_") && !of_kubernetes(name) && !known.contains(name))
        .collect();
    unknown.sort();
    unknown
}
