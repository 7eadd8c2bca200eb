//! Command line of a program: the settings, the flags that are none, and the commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{ArgAction, ArgMatches, Args, FromArgMatches as _, Subcommand as _};

use crate::commands::{Command, TokenCommand};
use crate::error::Error;
use crate::role::Role;
use crate::secret;
use crate::settings::{Values, settings};

/// The flags that are no settings.
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
}

/// The command line of a program, as its help shows it: settings, and commands in the place of serving.
/// Values stay text.
pub fn command(role: Role) -> clap::Command {
    // The description of the commands would be taken for that of the program.
    Command::augment_subcommands(serving(role)).subcommand_required(false).about(role.about())
}

/// The command line of a program that only serves.
pub fn serving(role: Role) -> clap::Command {
    let settings = settings(role).clone().mut_args(|arg| arg.value_parser(ValueParser::string()));
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
        Self::parse(role, command(role), args)
    }

    /// As [`read`](Self::read), with this command line.
    pub(crate) fn parse<I, S>(role: Role, command: clap::Command, args: I) -> Result<Self, Error>
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString> + Clone,
    {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        let mut command = command.no_binary_name(true);
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
        let values = values(role, &matches)?;
        Ok(match task {
            _ if matches.get_flag("print_config") => Invocation::PrintConfig(values),
            Some(command) => Invocation::Command(values, command),
            None => Invocation::Run(values),
        })
    }
}

/// The settings that a command line of [`serving`] gave, with the environment and the file they name.
///
/// # Errors
/// [`Error::Setting`] for a file that cannot be read.
pub fn values(role: Role, matches: &ArgMatches) -> Result<Values, Error> {
    let path = matches.get_one::<PathBuf>("config").filter(|path| !path.as_os_str().is_empty());
    Values::merge(role, Some(matches), path.map(PathBuf::as_path))
}

/// The explanation of a refused command line. It quotes what was typed, or a variable holds.
fn usage(error: &clap::Error, args: Vec<OsString>) -> Error {
    let variable = std::env::var_os("VESTA_IMPORT_FROM");
    let typed = args.into_iter().chain(variable).filter_map(|text| text.into_string().ok());
    Error::Usage(secret::hide_typed(&error.render().to_string(), typed))
}
