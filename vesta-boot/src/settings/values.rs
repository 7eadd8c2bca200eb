//! Settings as given: text from flags, the environment, the file and the defaults, with its origin.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches as _};

use super::declared::{Sections, command, default_of, settings, variable};
use super::file::{self, CustomLayout};
use super::tokens::TokenTable;
use super::{ids, machine};
use crate::commands::{Command, TokenCommand};
use crate::error::Error;
use crate::role::Role;
use crate::secret;

/// The origin of a value that no one set.
const DEFAULT: &str = "default";

/// The value of a setting as given. `Debug` hides passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct Value {
    /// The text.
    pub text: String,
    /// `flag --listen`, `env VESTA_LISTEN`, `file vesta.toml line 1` or `default`.
    pub origin: String,
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({})", shown("", &self.text), self.origin)
    }
}

/// The text of a setting without passwords.
pub(super) fn shown(name: &str, text: &str) -> String {
    match name.ends_with(".store") || secret::may_be_url(text) {
        true => vesta_store::redact(text),
        false => text.to_owned(),
    }
}

/// The settings of a program as given: flags before environment before file before defaults.
#[derive(Debug, Clone)]
pub struct Values {
    /// The program.
    pub role: Role,
    values: BTreeMap<String, Value>,
    pub(super) custom: Option<CustomLayout>,
    pub(super) tokens: Vec<TokenTable>,
}

/// The request of a command line.
#[derive(Debug)]
pub enum Invocation {
    /// Serve with these settings.
    Run(Values),
    /// Show these settings and end.
    PrintConfig(Values),
    /// Carry out a command with these settings and end.
    Command(Values, Command),
    /// Show the help or the version and end.
    Help(clap::Error),
    /// Make a token and end. Needs no settings.
    Token(TokenCommand),
}

impl Invocation {
    /// Reads flags (without the program's name), the environment, and the file they name.
    ///
    /// # Errors
    /// [`Error::Usage`] for a command line that clap refuses, [`Error::Setting`] for a file that
    /// cannot be read.
    pub fn read<I, S>(role: Role, args: I) -> Result<Self, Error>
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString> + Clone,
    {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        let mut command = command(role).no_binary_name(true);
        let matches = match command.try_get_matches_from_mut(&args) {
            Ok(matches) => matches,
            Err(help) if !help.use_stderr() => return Ok(Invocation::Help(help)),
            Err(error) => return Err(usage(&error, args)),
        };
        let task = matches.subcommand().map(|_| Command::from_arg_matches(&matches)).transpose();
        let task = task.map_err(|error| usage(&error.format(&mut command), args))?;
        if let Some(Command::Token(command)) = task {
            return Ok(Invocation::Token(command));
        }
        let path = matches.get_one::<PathBuf>("config").filter(|path| !path.as_os_str().is_empty());
        let values = Values::merge(role, Some(&matches), path.map(PathBuf::as_path))?;
        Ok(match task {
            _ if matches.get_flag("print_config") => Invocation::PrintConfig(values),
            Some(command) => Invocation::Command(values, command),
            None => Invocation::Run(values),
        })
    }
}

/// The explanation of a refused command line. It quotes what was typed, or a variable holds.
fn usage(error: &clap::Error, args: Vec<OsString>) -> Error {
    let variable = std::env::var_os("VESTA_IMPORT_FROM");
    let typed = args.into_iter().chain(variable).filter_map(|text| text.into_string().ok());
    Error::Usage(secret::hide_typed(&error.render().to_string(), typed))
}

impl Values {
    /// The defaults of a program.
    pub fn defaults(role: Role) -> Self {
        Self::merge(role, None, None).expect("there is no file")
    }

    fn merge(role: Role, matches: Option<&ArgMatches>, path: Option<&Path>) -> Result<Self, Error> {
        let settings = settings(role);
        let file = path.map(|path| file::read(path, &settings)).transpose()?;
        let mut file = file.unwrap_or_default();
        let mut values = BTreeMap::new();
        for arg in settings.get_arguments() {
            let name = arg.get_id().as_str();
            let typed = matches.and_then(|matches| {
                Some((matches.value_source(name)?, matches.get_one::<String>(name)?.clone()))
            });
            let (text, origin) = match (typed, file.values.remove(name), path) {
                (Some((ValueSource::CommandLine, text)), ..) => {
                    (text, format!("flag --{}", arg.get_long().unwrap_or_default()))
                }
                // `VESTA_X=` is how compose files say "not set".
                (Some((ValueSource::EnvVariable, text)), ..) if !text.is_empty() => {
                    (text, format!("env {}", variable(arg)))
                }
                (_, Some((text, line)), Some(path)) => {
                    (text, format!("file {} line {line}", path.display()))
                }
                _ => match default_of(arg) {
                    Some(default) => (default, DEFAULT.to_owned()),
                    None => continue,
                },
            };
            values.insert(name.to_owned(), Value { text, origin });
        }
        Ok(Self { role, values, custom: file.custom, tokens: file.tokens })
    }

    /// Checks each setting by its own parser.
    pub(super) fn sections(&self) -> Result<Sections, Error> {
        let layout = ids::layout(self)?;
        let settings = ids::bounded(machine::bounded(settings(self.role), layout), layout, self);
        let mut settings = settings
            .no_binary_name(true)
            .mut_args(|arg| arg.env(Resettable::Reset).default_value(Resettable::Reset));
        let flags = settings.get_arguments().filter_map(|arg| {
            let text = self.values.get(arg.get_id().as_str())?.text.as_str();
            Some(format!("--{}={text}", arg.get_long()?))
        });
        let flags: Vec<_> = flags.collect();
        let sections = settings
            .try_get_matches_from_mut(flags)
            .and_then(|matches| Sections::from_arg_matches(&matches));
        sections.map_err(|error| {
            let flag = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::String(flag)) => flag.as_str(),
                _ => "",
            };
            let arg = settings.get_arguments().find(|arg| arg.to_string() == flag);
            match (arg, error.source()) {
                (Some(arg), Some(must)) => self.refuse(arg.get_id().as_str(), must),
                _ => Error::setting(error.to_string()),
            }
        })
    }

    /// The value of a setting, if it has one.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).map_or("", |value| value.text.as_str())
    }

    /// True if a setting has a value other than by default.
    pub fn is_explicit(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.origin != DEFAULT)
    }

    /// A refusal that names the setting, what it must be, its value, and its origin.
    pub(super) fn refuse(&self, name: &str, must: impl fmt::Display) -> Error {
        let origin = self.get(name).map_or(DEFAULT, |value| &value.origin);
        let value = shown(name, self.text(name));
        Error::setting(format!("{name} {must}, but is `{value}` ({origin})"))
    }
}

/// The `VESTA_` variables among `names` that are no setting, each with a hint. Those that Kubernetes
/// sets for a service called `vesta` are left out.
pub(crate) fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<String> {
    let settings = settings(Role::Server);
    let known: Vec<_> =
        settings.get_arguments().map(variable).chain(["VESTA_CONFIG".into()]).collect();
    let of_kubernetes = |name: &str| name.contains("_SERVICE_") || name.contains("_PORT");
    let mut unknown: Vec<String> = names
        .filter(|name| name.starts_with("VESTA_") && !of_kubernetes(name) && !known.contains(name))
        .collect();
    unknown.sort();
    for name in &mut unknown {
        *name += &did_you_mean(name, known.iter().map(String::as_str));
    }
    unknown
}

/// `; did you mean X?` with the closest of the known names, if one is close.
pub(super) fn did_you_mean<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> String {
    let distances = known.map(|name| (strsim::osa_distance(typed, name), name));
    match distances.min_by_key(|it| it.0) {
        Some((distance, name)) if distance <= 1 + typed.len() / 4 => {
            format!("; did you mean {name}?")
        }
        _ => String::new(),
    }
}
